"""Phrases of the private dialect that Berth was once written in: none is left in what people read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.module_imports import LAYERS, ROOT, tree

PHRASES = re.compile(
    r"""(?<!connection\ )\brefus(e|es|ed|al|als|ing)\b | \bmend(s|ed|ing)?\b | \bjudg(e|es|ed|ing|ement)\b | \bdear(er|est)?\b
    | \bat\ (Ignore|Fail)\b
    | \bway\ round\b | \bhonest\b | \bwhere\ it\ names\ none\b | \bof\ its\ name\b | \bin\ vain\b | \banew\b | \bnobody\b | \bwhoever\b
    | \bof\ no\ use\b | \bwholly\b | \blargest\ hole\b | \bamiss\b | \bwhat\ acts\ where\b | \bas\ it\ is\ written\b | \bwho\ says\ what\b
    | \bis\ no\ (property|whole|value)\b | \bthere\ is\ no\ place\ for\b | \bof\ before\b
    | \boff\ at\ once\b | \bthe\ way\ there\b | \bin\ the\ night\b | \btold\ of\b | \bso\ (is|are)\ (its|the)\b | \bof\ which\b""",
    re.VERBOSE | re.IGNORECASE,
)
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "deploy/**/*.yaml", "deploy/**/*.txt", "deploy/**/*.json")


def files() -> Iterator[Path]:
    for pattern in (*PAGES, *(f"{package}/**/*.{suffix}" for package in LAYERS for suffix in ("py", "html", "js", "yaml"))):
        yield from sorted(ROOT.glob(pattern))


def read_by_people(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line of a page without its code, and each string of a module that has a space and is no docstring."""
    if path.suffix != ".py":
        yield from enumerate((re.sub(r"`[^`]*`|{%.*?%}", "", line) for line in path.read_text().splitlines()), 1)
        return
    nodes = [*ast.walk(tree(path))]
    documentation = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value and id(node) not in documentation:
            yield node.lineno, node.value


def test_no_phrase_of_the_dialect_is_left() -> None:
    """Pages, manifests, templates and the strings of modules are in the field's English."""
    lines = ((path, number, text) for path in files() for number, text in read_by_people(path))
    left = [f"{path.relative_to(ROOT)}:{number}: {match[0]}" for path, number, text in lines if (match := PHRASES.search(text))]
    assert not left, "\n".join(left)
