"""The manual page: what man takes without a word, with all that the parsers have."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cli.help.tree import commands

PAGE = Path(__file__).parents[3] / "docs" / "berth.1"
CHECKS = {
    "mandoc": ["mandoc", "-T", "lint", "-W", "warning", str(PAGE)],
    "man": ["man", "--warnings", "-E", "UTF-8", "-l", str(PAGE)],
}


@pytest.mark.parametrize("program", CHECKS)
def test_it_has_no_mistake(program: str) -> None:
    """Neither mandoc nor groff has a warning of it."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: the manual page is not checked by it on this machine")
    env = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"}
    done = subprocess.run(CHECKS[program], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert program == "man" or done.stdout == ""


def test_it_shows_every_option_and_example() -> None:
    """As text for a terminal, without what roff writes around it."""
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed: the manual page is not read on this machine")
    done = subprocess.run(["mandoc", "-T", "utf8", "-O", "width=500", str(PAGE)], capture_output=True, text=True, check=True)
    text = subprocess.run(["col", "-bx"], input=done.stdout, capture_output=True, text=True, check=True).stdout
    for command in commands():
        assert [flag for option in command.options for flag in option.flags if flag not in text] == []
        assert [line for _, line in command.parser.examples if command.name and line not in text] == []
