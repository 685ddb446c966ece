"""What a user meets is documented: every message code, every rule, every flag. And nothing is documented that is not there."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from cli import crds, effective, gpus, serve, try_, webhooks
from policies.rules import RULES
from tests import golden, golden_claims

ROOT = Path(__file__).parent.parent
CODES = ROOT / "docs" / "codes.md"
CODE = re.compile(r"BERTH-\d{3}")
RENDERED = {"BERTH-001", "BERTH-002", "BERTH-003", "BERTH-004", "BERTH-005", "BERTH-006", "BERTH-007"}
"""codes that the answer adds, not a decision: no golden case says them"""
SECTION = re.compile(
    r"^### (BERTH-\d{3}): .+\n\n(?P<when>[^#]+?)\n\n```text\n(?P<example>.+)\n```\n\n\*\*What to do\.\*\* .+", re.MULTILINE
)


@cache
def sections() -> dict[str, str]:
    """code -> the sentence that its section shows."""
    return {match[1]: match["example"] for match in SECTION.finditer(CODES.read_text())}


def codes_in_source() -> set[str]:
    """Every code in a string that is said, docstrings left out."""
    said = re.compile(r'f?"(BERTH-\d{3})[":]')
    return {
        code
        for folder in ("policies", "webhook", "cli")
        for file in (ROOT / folder).rglob("*.py")
        for code in said.findall(file.read_text())
    }


def test_every_code_has_a_section_and_every_section_a_code() -> None:
    """With when it appears, an example and what to do; in order."""
    assert set(sections()) == codes_in_source()
    assert CODE.findall("\n".join(re.findall(r"^### .+", CODES.read_text(), re.MULTILINE))) == sorted(sections(), key=_as_shown)


def _as_shown(code: str) -> tuple[bool, str]:
    """Refusals, then warnings."""
    return not code.startswith("BERTH-1"), code


@cache
def sentences() -> frozenset[str]:
    return frozenset(sentence for case in (*golden.cases(), *golden_claims.cases()) for sentence in _sentences(case.expected))


def _sentences(expected: object) -> Iterator[str]:
    if isinstance(expected, dict):
        for part in expected.values():
            yield from _sentences(part)
    elif isinstance(expected, list):
        for part in expected:
            yield from _sentences(part)
    elif isinstance(expected, str):
        yield expected


@pytest.mark.parametrize("code", sorted(set(sections()) - RENDERED))
def test_an_example_is_what_berth_says(code: str) -> None:
    """Each is a sentence of a golden case, to the letter."""
    assert sections()[code].startswith(f"{code}: ")
    assert sections()[code] in sentences()


@cache
def documentation() -> str:
    return "\n".join(file.read_text() for file in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])


@pytest.mark.parametrize("rule", [rule.name for rule in RULES])
def test_every_rule_is_mentioned(rule: str) -> None:
    """By its name, as it stands in berth.dev/applied."""
    assert rule in documentation()


def flags() -> list[str]:
    """Every long option of the subcommands."""
    parser = argparse.ArgumentParser()
    subcommands = parser.add_subparsers()
    for module in (try_, serve, effective, gpus, crds, webhooks):
        module.add_parser(subcommands)
    found = {option for sub in subcommands.choices.values() for action in sub._actions for option in action.option_strings}
    return sorted(option for option in found if option.startswith("--"))


@pytest.mark.parametrize("flag", flags())
def test_every_flag_is_mentioned(flag: str) -> None:
    """In the README or under docs/."""
    assert re.search(rf"{re.escape(flag)}\b", documentation())
