"""The command as it is typed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def berth(capsys: pytest.CaptureFixture[str]) -> Run:
    """Types `berth ...`: (exit code, standard output, standard error)."""

    def typed(*words: str) -> tuple[int, str, str]:
        try:
            code = main(words)
        except SystemExit as stopped:  # argparse's own way
            code = int(str(stopped.code))
        out, err = capsys.readouterr()
        return code, out, err

    return typed
