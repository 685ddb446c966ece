"""Public reports and manifests as cases: each is an address, an input written for it, a command, and the outcome that follows from how
the report was resolved and from Kubernetes' own rules. The outcome was written down and committed before the command first ran on it.

A file of cases has ``firstRun`` (the commit of the code that the cases first ran on) and ``cases``. Keys of a case:

- ``id``; ``source``: the address of the report, or the project whose manifests or rules it follows (``own``: a trial of ours); ``about``:
  what happened there; ``changed``: why the outcome was changed after the first run.
- ``run``: a command, or a list of commands whose outputs are read together. ``@x`` is the input file ``IDx``, and a name of a file in
  ``inputs`` is that file. ``LIBRARY`` is the folder of the shipped policies, ``DEFAULT`` berth-default. ``why``, ``scan`` and
  ``effective`` run as text and as JSON.
- ``exit``: the exit code, or a list of possible ones (0). ``codes``, ``noCodes``: expressions for BERTH codes that must, or must not, be
  in the output.
- ``is``, ``isNot``: parts of the JSON output's top level. ``has``, ``lacks``: parts of any value in it. A part of a map has some of its
  keys, and a part of a list some of its items; a text that begins with ``~`` is an expression.
- ``says``, ``silent``: expressions for the text output, which must, or must not, match.
- ``first``: the outcome of the first run (``met``, or what was missing). ``unmet``: why the case is not met yet; such a case must fail.
  BERTH_WRITE_CASES=1 removes ``unmet`` from the cases that are met.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LIBRARY = str(ROOT / "policies" / "library")
IN_TWO_FORMS = ("why", "scan", "effective")
WRITE = "BERTH_WRITE_CASES" in os.environ
OUTCOME = {"codes", "noCodes", "is", "isNot", "has", "lacks", "says", "silent"}
KEYS = OUTCOME | {"id", "source", "about", "changed", "run", "exit", "first", "unmet"}


class NotMet(AssertionError):
    """The output differs from the expected outcome of a case."""


@dataclass(frozen=True, slots=True)
class Output:
    """The output of the commands of one case."""

    exit: int
    text: str
    """Of text output and standard error, in one line."""
    values: tuple[Any, ...]
    """Of JSON output."""


def load_cases() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield each case with the folder of its inputs."""
    for file in sorted(HERE.glob("*/*.yaml")):
        for case in yaml.safe_load(file.read_text())["cases"]:
            yield file.parent / "inputs", case


def parameters() -> Iterator[Any]:
    """Yield a test parameter for each case; one that is not met yet must fail."""
    for folder, case in load_cases():
        marks = [pytest.mark.xfail(strict=not WRITE, raises=NotMet, reason=case["unmet"])] if "unmet" in case else []
        yield pytest.param(folder, case, id=f"{folder.parent.name}/{case['id']}", marks=marks)


def split_command(command: str, folder: Path, name: str) -> list[str]:
    """Return the words of a command with the paths of its input files."""
    words = []
    for word in shlex.split(command):
        file = folder / (name + word[1:] if word.startswith("@") else word)
        assert not word.startswith("@") or file.exists(), f"{file} is missing"
        words.append(str(file) if file.exists() else word.replace("DEFAULT", "LIBRARY/berth-default.yaml").replace("LIBRARY", LIBRARY))
    return words


def run_commands(folder: Path, case: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> Output:
    """Run the commands of a case and return what they print, with the highest exit code."""
    commands = [case["run"]] if isinstance(case["run"], str) else case["run"]
    exits, texts, values = [], [], []
    for command in commands:
        words = split_command(command, folder, case["id"])
        forms: list[list[str]] = [["-o", "json"]] if words[0] not in IN_TWO_FORMS else [[], ["-o", "json"]]
        for form in forms:
            try:
                exits.append(main([*words, *form]))
            except SystemExit as stopped:
                exits.append(int(str(stopped.code)))
            out, err = capsys.readouterr()
            texts.append(err)
            if form:
                values += read_json(out)
            else:
                texts.append(out)
    return Output(max(exits), " ".join(" ".join(texts).split()), tuple(values))


def read_json(text: str) -> list[Any]:
    """Return the JSON values that stand one after another in a text."""
    values, decoder, at = [], json.JSONDecoder(), 0
    while at < len(text.rstrip()):
        value, at = decoder.raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
        values.append(value)
    return values


def matches(value: Any, part: Any) -> bool:
    """Return whether a value has a part: see the module's docstring."""
    if isinstance(part, dict):
        return isinstance(value, dict) and all(key in value and matches(value[key], inner) for key, inner in part.items())
    if isinstance(part, list):
        return isinstance(value, list) and all(any(matches(item, inner) for item in value) for inner in part)
    if isinstance(part, str) and part.startswith("~"):
        return not isinstance(value, dict | list) and re.search(part[1:], str(value)) is not None
    return bool(value == part)


def find_part(value: Any, part: Any) -> bool:
    """Return whether a value, or any value in it, has a part."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return matches(value, part) or any(find_part(item, part) for item in inner)


def differences(case: dict[str, Any], output: Output) -> Iterator[str]:
    """Yield each way in which the output of a case is not as expected."""
    expected_exits = case.get("exit", 0)
    if output.exit not in (expected_exits if isinstance(expected_exits, list) else [expected_exits]):
        yield f"exit code {output.exit}"
    codes = sorted(set(re.findall(r"BERTH-\d{3}", f"{output.text} {json.dumps(output.values)}")))
    for key, expected in (("codes", True), ("noCodes", False)):
        yield from (f"{key}: {code}" for code in case.get(key, ()) if any(re.fullmatch(code, found) for found in codes) != expected)
    for key, expected in (("is", True), ("isNot", False)):
        if (part := case.get(key)) and any(matches(value, part) for value in output.values) != expected:
            yield f"{key}: {part}"
    for key, expected in (("has", True), ("lacks", False)):
        for part in case.get(key, ()):
            if any(find_part(value, part) for value in output.values) != expected:
                yield f"{key}: {part}"
    for key, expected in (("says", True), ("silent", False)):
        for words in case.get(key, ()):
            if (re.search(words, output.text, re.IGNORECASE) is not None) != expected:
                yield f"{key}: {words}"


def remove_unmet(folder: Path, name: str) -> None:
    """Remove the key ``unmet`` of a case from its file."""
    for file in folder.parent.glob("*.yaml"):
        text = re.sub(rf"(?s)(\n- id: {name}\n(?:(?!\n- id: ).)*?)\n  unmet: [^\n]*(?:\n    [^\n]*)*", r"\1", file.read_text())
        file.write_text(text)


@pytest.mark.parametrize(("folder", "case"), list(parameters()))
def test_a_public_case_has_the_expected_outcome(folder: Path, case: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """The command answers as the report was resolved; a case that is not met yet fails, so that its mark is removed when it is met."""
    output = run_commands(folder, case, capsys)
    if missing := list(differences(case, output)):
        raise NotMet("\n".join([*missing, "", output.text, json.dumps(output.values)[:4000]]))
    if WRITE and "unmet" in case:
        remove_unmet(folder, case["id"])


def test_cases_are_complete() -> None:
    """Each case has its own id, an address, a command and an expected outcome, and only known keys; each input is used."""
    names, used = [], set[Path]()
    for folder, case in load_cases():
        names.append(case["id"])
        assert {"id", "source", "about", "run"} <= case.keys() <= KEYS, case["id"]
        assert case.keys() & OUTCOME, case["id"]
        for command in [case["run"]] if isinstance(case["run"], str) else case["run"]:
            used |= {Path(word) for word in split_command(command, folder, case["id"])}
    assert len(names) == len(set(names))
    assert set(HERE.glob("*/inputs/**/*.*")) <= used


@pytest.mark.parametrize("part", [{"a": 1}, {"b": [{"c": "~^x"}]}, {"c": "xy"}, "~y$"])
def test_a_part_is_found(part: Any) -> None:
    """A part of a map, of a list or of a text is found at any depth."""
    assert find_part({"a": 1, "b": [{"c": "xy", "d": 0}]}, part)


@pytest.mark.parametrize("part", [{"a": 2}, {"b": ["x"]}, {"e": 1}, "~^y"])
def test_a_part_that_is_not_there_is_not_found(part: Any) -> None:
    """Another value, an item that no list has, an unknown key and an expression without a match are not found."""
    assert not find_part({"a": 1, "b": [{"c": "xy", "d": 0}]}, part)
