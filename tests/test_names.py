"""How the source names things: a class name means one class, and a local variable is named after what it holds."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from tests.support.module_imports import LAYERS, ROOT, files, tree

VAGUE = ("one", "found", "asked", "made")
MOST = {
    "analysis": (229, 124, 21, 10),
    "catalog": (8, 4, 0, 0),
    "certs": (18, 5, 1, 1),
    "cli": (123, 92, 7, 3),
    "cluster": (45, 8, 4, 2),
    "console": (91, 58, 7, 5),
    "documents": (12, 16, 0, 0),
    "kube": (0, 2, 0, 0),
    "policies": (138, 184, 26, 34),
    "registration": (2, 2, 1, 2),
    "server": (0, 0, 0, 0),
    "sources": (6, 5, 0, 0),
    "telemetry": (2, 3, 0, 0),
    "webhook": (25, 5, 0, 0),
}
"""Package -> how often it binds each of the names in ``VAGUE``. A change may only lower these numbers."""


def test_a_class_name_is_used_once() -> None:
    """Leading underscores ignored: two things of one name are one thing, or one of them is misnamed."""
    places = defaultdict(list)
    for path in (path for package in LAYERS for path in files(package)):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert len(places) > 500, "the test sees classes"
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def bound(module: ast.AST) -> Iterator[str]:
    """Yield each name that is bound: assigned, a loop's or a comprehension's, a parameter."""
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


@pytest.mark.parametrize("package", LAYERS)
def test_vague_names_become_fewer(package: str) -> None:
    """``one``, ``found``, ``asked`` and ``made`` say nothing of what they hold. Lower the number in ``MOST`` with each that goes."""
    names = Counter(name for path in files(package) for name in bound(tree(path)) if name in VAGUE)
    assert all(names[name] <= most for name, most in zip(VAGUE, MOST[package], strict=True))


def test_the_reader_sees_every_binding() -> None:
    """The test above would notice an assignment, a loop, a comprehension and a parameter."""
    text = "one = 1\nfor found in []: pass\n[asked for asked in []]\ndef f(made): ...\n"
    assert sorted(bound(ast.parse(text))) == ["asked", "found", "made", "one"]
