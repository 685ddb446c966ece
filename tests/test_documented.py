"""What a user meets is documented: every message code, every rule, every flag. And nothing is documented that is not there."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cli.help.tree import commands
from cli.main import SUBCOMMANDS
from policies.rules import RULES
from tests.support.cases import golden, golden_workloads
from tests.support.module_imports import LAYERS, tree

ROOT = Path(__file__).parent.parent
CODES = ROOT / "docs" / "codes.md"
CODE = re.compile(r"BERTH-\d{3}")
RENDERED = {"BERTH-001", "BERTH-002", "BERTH-003", "BERTH-004", "BERTH-005", "BERTH-006", "BERTH-007", "BERTH-008"}
"""codes that the answer adds, not a decision: no golden case says them"""
SECTION = re.compile(r"^### (BERTH-\d{3}): .+\n\n(?P<when>(?:[^#]|#(?!#))+?)\n\n    (?P<example>.+)\n\n\*\*Fix\.\*\* .+", re.MULTILINE)


@cache
def sections() -> dict[str, str]:
    """code -> the sentence that its section shows."""
    return {match[1]: match["example"] for match in SECTION.finditer(CODES.read_text())}


def codes_in_source() -> set[str]:
    """Every code in a string that is said, docstrings left out."""
    quoted = re.compile(r'f?"(BERTH-\d{3})[":]')
    return {
        code
        for folder in ("analysis", "policies", "webhook", "cli")
        for file in (ROOT / folder).rglob("*.py")
        for code in quoted.findall(file.read_text())
    }


def test_every_code_has_a_section_and_every_section_a_code() -> None:
    """With when it appears, an example and what to do; in order."""
    assert set(sections()) == codes_in_source()
    assert CODE.findall("\n".join(re.findall(r"^### .+", CODES.read_text(), re.MULTILINE))) == sorted(sections(), key=_as_shown)


def _as_shown(code: str) -> tuple[bool, str]:
    """Denials, then warnings."""
    return not code.startswith("BERTH-1"), code


@cache
def sentences() -> frozenset[str]:
    """Every sentence of a golden case."""
    expected = [case.expected for case in (*golden.cases(), *golden.claim_cases())]
    return frozenset(_sentences([*expected, *(case.expected for case in golden_workloads.cases())]))


def _sentences(expected: object) -> Iterator[str]:
    if isinstance(expected, dict):
        for part in expected.values():
            yield from _sentences(part)
    elif isinstance(expected, list):
        for part in expected:
            yield from _sentences(part)
    elif isinstance(expected, str):
        yield expected


def test_an_example_is_what_berth_says() -> None:
    """Each is a sentence of a golden case to the letter, or its beginning: the details and who requires it may be left out."""
    examples = {code: example for code, example in sections().items() if code not in RENDERED}
    assert {code: text for code, text in examples.items() if not text.startswith(f"{code}: ") or not begins(text)} == {}


def begins(text: str) -> bool:
    """Return whether a golden case has a sentence that begins with the text and then a detail or a policy."""
    return any(
        sentence.startswith(text) and (sentence in (text, f"{text}.") or sentence[len(text) :].startswith((". ", " (")))
        for sentence in sentences()
    )


@cache
def documentation() -> str:
    return "\n".join(file.read_text() for file in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])


def test_every_rule_is_mentioned() -> None:
    """By its name, as it stands in berth.dev/applied."""
    assert [rule.name for rule in RULES if rule.name not in documentation()] == []


def test_every_flag_is_mentioned() -> None:
    """Every long option of a subcommand, in the README or under docs/."""
    flags = {flag for command in commands() for option in command.options for flag in option.flags if flag.startswith("--")}
    assert len(flags) > 50
    assert sorted(flag for flag in flags if not re.search(rf"{re.escape(flag)}\b", documentation())) == []


def test_every_subcommand_has_a_section() -> None:
    """In docs/command.md."""
    text = (ROOT / "docs" / "command.md").read_text()
    assert [name for name in SUBCOMMANDS if not re.search(rf"^## .*`berth {name}\b", text, re.MULTILINE)] == []


SOURCE = sorted(file for room in LAYERS for file in (ROOT / room).rglob("*.py"))
OURS = re.compile(rf"(?<![\w./-])(?:{'|'.join(LAYERS)})(?:[./][a-z_]\w*)+(?![\w/-])")
"""``policies.state.snapshot``, ``policies/state/snapshot``, with ``.py`` or what a module has behind it"""


def there(name: str) -> bool:
    """Whether a dotted name or a path of ours is a room, a file, a module, or what a module defines."""
    if (ROOT / name).exists():
        return True
    steps = name.removesuffix(".py").replace("/", ".").split(".")
    for size in range(len(steps), 1, -1):
        place = ROOT.joinpath(*steps[:size])
        if (file := place.with_suffix(".py")).exists() or (file := place / "__init__.py").exists():
            return size == len(steps) or re.search(rf"\b{re.escape(steps[size])}\b", file.read_text()) is not None
        if size == len(steps) and place.exists():
            return True
    return ROOT.joinpath(*steps[:1]).exists() and len(steps) == 1


def test_what_a_docstring_names_of_ours_exists() -> None:
    """Whoever follows a name in the documentation of a module, class or function finds it."""
    nodes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    documented = ((file, node) for file in SOURCE for node in ast.walk(tree(file)) if isinstance(node, nodes))
    names = [(file, name) for file, node in documented for name in OURS.findall(ast.get_docstring(node) or "")]
    assert len(names) > 50
    assert [f"{file.relative_to(ROOT)} names {name}" for file, name in names if not there(name)] == []


MEMBER = re.compile(r"``([A-Za-z_]\w*)\.([A-Za-z_]\w*)(?:\.\w+)*(?:\(\))?``")
"""``module.name`` or ``Class.name``"""
ELSEWHERE = {"Requirement", "Resource", "facts", "status"}
"""Names of modules and classes of ours that are also a type of Go, a field of an object, or a variable."""


def test_what_a_docstring_names_by_its_module_exists() -> None:
    """A module or class of ours, in whatever folder, has the name behind the dot."""
    places = defaultdict(list)
    for file in SOURCE:
        places[file.parent.name if file.name == "__init__.py" else file.stem].append(file)
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(file)
    texts = ((file, text) for file in SOURCE for text in documentation_in(file))
    named = [(file, *name) for file, text in texts for name in MEMBER.findall(text) if name[0] in places.keys() - ELSEWHERE]
    assert len(named) > 150
    assert [
        f"{file.relative_to(ROOT)} names {place}.{name}"
        for file, place, name in named
        if not any(re.search(rf"\b{name}\b", one.read_text()) or any(one.parent.glob(f"{name}*")) for one in places[place])
    ] == []


def documentation_in(file: Path) -> Iterator[str]:
    """Yield each statement that is a string alone: a docstring, or what documents an assignment."""
    for node in ast.walk(tree(file)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield text


def test_what_a_room_says_is_in_it_is_in_it() -> None:
    """Each bare name in the docstring of a package is one of its modules or rooms, or a room or module beside them."""
    assert [f"{room.relative_to(ROOT)} names {name}" for room in {file.parent for file in SOURCE} for name in _not_in_it(room)] == []


def _not_in_it(room: Path) -> list[str]:
    names = re.findall(r"``([a-z_][a-z_0-9]*)``", ast.get_docstring(tree(room / "__init__.py")) or "")
    folders = (room, *room.parents[: len(room.relative_to(ROOT).parts)])
    known = {path.stem for folder in folders for path in folder.iterdir()} | {"kubernetes"}
    return [name for name in names if name not in known]


def test_the_ways_through_the_code_name_what_is_there() -> None:
    """Every room and module that docs/architecture.md names exists."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = [name for name in re.findall(r"`([^`]+)`", text) if OURS.fullmatch(name)]
    assert len(named) > 20
    assert [name for name in named if not there(name)] == []
