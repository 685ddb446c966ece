"""Who may import whom: read from the source, imports inside functions included."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = ("certs", "cli", "cluster", "policies", "webhook")
MAY_IMPORT = {
    "policies": {"policies"},
    "certs": {"certs"},
    "cluster": {"cluster", "policies", "certs"},
    "webhook": {"webhook", "policies", "certs", "cluster"},
    "cli": {"cli", "webhook", "policies", "certs", "cluster"},
}
IMPURE = {
    "asyncio", "datetime", "fcntl", "http", "io", "logging", "multiprocessing", "os", "pathlib", "random", "secrets", "select",
    "shutil", "signal", "socket", "ssl", "subprocess", "sys", "tempfile", "threading", "time", "urllib", "uuid",
}  # fmt: skip
"""What a decision may not touch: clocks, files, the environment, chance, sockets, processes and logs."""


def files(layer: str) -> list[Path]:
    return sorted((ROOT / layer).rglob("*.py"))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """(line, full name) of each import; ``from a import b`` is ``a.b``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def offences(layer: str, allowed: set[str]) -> list[str]:
    """Imports of our own layers, or of ``kubernetes``, that ``layer`` may not make."""
    ours = {*LAYERS, "kubernetes", "tests", "bench"}
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files(layer)
        for line, name in imported(path)
        if name.partition(".")[0] in ours - allowed
    ]


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_what_is_below_it(layer: str) -> None:
    """No step calls back up, and only cluster/ knows the Kubernetes client."""
    extra = {"kubernetes"} if layer == "cluster" else set()
    assert offences(layer, MAY_IMPORT[layer] | extra) == []


def test_a_decision_needs_only_the_standard_library() -> None:
    """Nothing under policies/ imports a third-party package: text is parsed outside."""
    foreign = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files("policies")
        for line, name in imported(path)
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "policies"}
    ]
    assert foreign == []


def test_a_decision_is_pure() -> None:
    """Nothing under policies/ imports a clock, a file, the environment, chance, a socket or a log, or opens or prints."""
    impure = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files("policies")
        for line, name in imported(path)
        if name.partition(".")[0] in IMPURE
    ]
    assert impure == []


def test_a_decision_opens_and_prints_nothing() -> None:
    """Neither open, print nor input is called under policies/."""
    called = [
        f"{path.relative_to(ROOT)}:{node.lineno} calls {node.func.id}"
        for path in files("policies")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"open", "print", "input", "eval", "exec"}
    ]
    assert called == []


def test_the_reader_sees_imports_of_every_form(tmp_path: Path) -> None:
    """The test above would notice an import inside a function, and one of a submodule."""
    file = tmp_path / "x.py"
    file.write_text("import os.path\ndef f():\n    from webhook import app\n")
    assert list(imported(file)) == [(1, "os.path"), (3, "webhook.app")]
