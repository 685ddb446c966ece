"""What the command says on standard error, under the name by which it was called."""

from __future__ import annotations

import sys
from pathlib import Path

from cli.terminal import progress, screen
from documents.printable import printable
from policies.document import InputError

PLUGIN = "kubectl-berth"
"""By this name of a program kubectl finds it: https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/"""


def name() -> str:
    """Return ``kubectl berth`` for the program ``kubectl-berth``, else ``berth``."""
    return "kubectl berth" if Path(sys.argv[0]).name == PLUGIN else "berth"


def say(sentence: str) -> None:
    """Print a sentence to standard error, after the command's name."""
    progress.clear()
    print(f"{name()}: {printable(sentence)}", file=sys.stderr)


def wrong(sentence: str) -> None:
    """Print what is wrong with the input, likewise."""
    progress.clear()
    print(_wrong(sentence), file=sys.stderr)


def line(error: InputError) -> str:
    """Return bad input as its line."""
    return _wrong(f"{error.place}: {error.message}")


def _wrong(sentence: str) -> str:
    return f"{screen.errors().paint('bad', f'{name()}:')} {printable(sentence)}"
