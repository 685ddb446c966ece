"""Which modules the source has, and whom each imports, read from the text: nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from deploy.release.wheel import packages

ROOT = Path(__file__).resolve().parents[2]
LAYERS = tuple(sorted(packages()))
"""The top folders of the source, as pyproject.toml lists them."""
Graph = Mapping[str, AbstractSet[str]]


@dataclass(frozen=True)
class Modules:
    """``files``: dotted name -> file. ``imports``: dotted name -> the modules of ours that it imports, in functions and for types too."""

    files: Mapping[str, Path]
    imports: Graph


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """(line, full name) of each import, inside functions too; ``from a import b`` is ``a.b``."""
    yield from ((line, name) for line, name, _ in _imports(path))


def imported_when_run(path: Path) -> Iterator[str]:
    """As ``imported``, without what only the type checker reads."""
    yield from (name for _, name, only_types in _imports(path) if not only_types)


@cache
def tree(path: Path) -> ast.Module:
    """The parsed file, of which nothing may be changed."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _imports(path: Path) -> tuple[tuple[int, str, bool], ...]:
    """(line, full name, whether the type checker alone reads it) of each import of a file, in the order of the tree."""
    nodes = [*ast.walk(tree(path))]
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    only_types = {
        inner.lineno
        for node in nodes
        if _is_for_types_alone(node)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    }
    return tuple(
        (node.lineno, f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name, node.lineno in only_types)
        for node in imports
        for alias in node.names
    )


def _is_for_types_alone(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def files(layer: str, root: Path = ROOT) -> list[Path]:
    """The modules of one layer."""
    return sorted((root / layer).rglob("*.py"))


@cache
def modules(root: Path = ROOT, layers: tuple[str, ...] = LAYERS) -> Modules:
    """Every module of these layers; a package's is its ``__init__``."""
    found = {}
    for path in (path for layer in layers for path in files(layer, root)):
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return Modules(found, {name: {one for one in _nearest(path, found) if one != name} for name, path in found.items()})


def _nearest(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The imported modules of ours; of a name that a module defines, the module."""
    for _, name in imported(path):
        if (one := name if name in known else name.rpartition(".")[0]) in known:
            yield one
