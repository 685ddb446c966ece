"""What the command says on standard error, under the name by which it was called."""

from __future__ import annotations

import sys
from pathlib import Path

from policies.document import InputError

PLUGIN = "kubectl-berth"
"""By this name of a program kubectl finds it: https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/"""


def name() -> str:
    """Return ``kubectl berth`` for the program ``kubectl-berth``, else ``berth``."""
    return "kubectl berth" if Path(sys.argv[0]).name == PLUGIN else "berth"


def say(sentence: str) -> None:
    """Print a sentence to standard error, after the command's name."""
    print(f"{name()}: {sentence}", file=sys.stderr)


def line(error: InputError) -> str:
    """Return bad input as its line."""
    return f"{name()}: {error.place}: {error.message}"


def progress(kind: str, count: int) -> None:
    """Show what was read of a cluster, on a terminal."""
    if sys.stderr.isatty():
        say(f"read {count} of kind {kind}")
