"""docs/scan.md: its screen is what comes out, its commands can be typed, and its table has every kind of finding."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from analysis.scan.wording import ORDER
from cli.main import main
from tests.support.recorded import eks

PAGE = (Path(__file__).parents[2] / "docs" / "scan.md").read_text()
LEFT_OUT = "..."
"""A line of the screen that stands for others"""


@pytest.fixture
def dump(tmp_path: Path) -> str:
    (tmp_path / "dump.yaml").write_text(yaml.safe_dump_all(eks.objects()))
    return str(tmp_path / "dump.yaml")


def test_the_table_has_every_kind_and_no_other() -> None:
    """In its first column."""
    rows = [
        line.split("|")[1] for line in PAGE.partition("## What it finds")[2].partition("\n## ")[0].splitlines() if line.startswith("| `")
    ]
    assert {kind for row in rows for kind in re.findall(r"`([a-z-]+)`", row)} == set(ORDER)


def test_the_screen_is_what_comes_out(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Line by line, but for those that are left out."""
    (screen,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert main(["scan", "--from", dump]) == 0
    left = capsys.readouterr().out.splitlines()
    for part in screen.rstrip("\n").split(f"\n{LEFT_OUT}\n"):
        lines = part.splitlines()
        at = next(at for at in range(len(left)) if left[at : at + len(lines)] == lines)
        left = left[at + len(lines) :]


def test_its_commands_can_be_typed(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of this command, of a dump in place of the cluster."""
    typed = [line.partition("#")[0].partition(">")[0] for line in PAGE.splitlines() if line.startswith("berth scan")]
    assert len(typed) == 5
    for line in typed:
        words = shlex.split(line.replace("policies/", str(tmp_path / "policies")))[1:]
        words = [dump if word.endswith(".yaml") else word for word in words]
        assert main([*words, *(() if "--from" in words else ("--from", dump))]) == 0
    assert "wrote 5 policies" in capsys.readouterr().err
