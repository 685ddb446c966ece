"""README.md shows what ``berth try`` prints, and the commands that it names are in the Makefile.

BERTH_WRITE_README=1 writes the output into the page instead: read the difference before you keep it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "README.md"
SCREEN = re.compile(r"^```console\n\$ \.venv/bin/berth (?P<command>.+)\n(?P<output>(?:.*\n)*?)```$", re.MULTILINE)
SWITCH = "BERTH_WRITE_README"
MOST_WORDS = 900


def test_the_screen_is_the_output_of_its_command() -> None:
    """On a terminal, where errors and results are on one screen."""
    text = PAGE.read_text(encoding="utf-8")
    (screen,) = SCREEN.finditer(text)
    command = [sys.executable, "-P", "-m", "cli.main", *shlex.split(screen["command"])]
    output = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
    if os.environ.get(SWITCH):
        PAGE.write_text(text[: screen.start("output")] + output + text[screen.end("output") :], encoding="utf-8")
    else:
        assert screen["output"] == output, f"if the new output is right: {SWITCH}=1 python -m pytest tests/docs/test_readme.py"


def test_every_make_target_is_in_the_makefile() -> None:
    """A command that README names can be typed."""
    targets = set(re.findall(r"^make ([a-z]+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert targets == {"run", "cluster", "image"}
    assert targets <= set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_the_page_is_short() -> None:
    """Everything else is a page of docs."""
    assert len(PAGE.read_text(encoding="utf-8").split()) <= MOST_WORDS
