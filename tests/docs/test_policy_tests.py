"""docs/policy-tests.md is run as it stands, on a copy of docs/examples/policy-tests, its commands in order.

BERTH_WRITE_POLICY_TESTS=1 writes what comes out into the page instead: read the difference before you keep it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from cli.main import BAD_INPUT, main
from cli.policy_cases.case import DEFAULTS
from cli.policy_cases.outcome import PARTS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "policy-tests.md"
EXAMPLES = ROOT / "docs" / "examples" / "policy-tests"
SWITCH = "BERTH_WRITE_POLICY_TESTS"
FILE = re.compile(r"^```yaml\n(# (\S+\.yaml)\n.*?)^```\n", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^```sh\n(?P<command>.*?)\n```\n(?P<shown>(?:\n```text\n.*?^```\n)?)", re.MULTILINE | re.DOTALL)
HINT = f"docs/policy-tests.md shows something else; if the new one is right: {SWITCH}=1 python -m pytest tests/docs/test_policy_tests.py"


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_the_files_on_the_page_are_those_of_the_folder() -> None:
    """Each is shown whole, none is missing on either side."""
    shown = {name: body for body, name in FILE.findall(page())}
    assert shown == {str(file.relative_to(EXAMPLES)): file.read_text(encoding="utf-8") for file in EXAMPLES.rglob("*.yaml")}


def test_each_command_shows_what_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the letter, one after the other on the same files; no input is bad, one run fails and one passes."""
    monkeypatch.chdir(shutil.copytree(EXAMPLES, tmp_path / "copy"))
    codes = []
    for found in COMMAND.finditer(page()):
        codes.append(main(shlex.split(found["command"])[1:]))
        out, err = capsys.readouterr()
        shown = f"\n```text\n{err}{out}```\n"
        if os.environ.get(SWITCH):
            text = page()
            at = text.index(found["command"] + "\n```\n") + len(found["command"]) + 5
            after = re.sub(r"\A\n```text\n.*?^```\n", "", text[at:], flags=re.MULTILINE | re.DOTALL)
            PAGE.write_text(text[:at] + shown + after, encoding="utf-8")
        else:
            assert found["shown"] == shown, HINT
    assert BAD_INPUT not in codes
    assert set(codes) == {0, 1}


def test_every_key_is_explained() -> None:
    """Those of a case, and those of an outcome, each in a row of its table."""
    keys, parts = (set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE)))) for table in tables())
    assert keys == {"why", "policies", *DEFAULTS}
    assert parts == set(PARTS)


def tables() -> tuple[str, str]:
    """The table of keys and the table of parts."""
    _, keys, parts = re.split(r"^\| (?:key|part of `expect`) \|", page(), flags=re.MULTILINE)
    return keys, parts.split("\n## ")[0]
