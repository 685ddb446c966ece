"""The name under which the command speaks: the one by which it was called."""

from __future__ import annotations

import sys

import pytest

from cli.main import plugin
from cli.output import stderr
from policies.document import InputError


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("/usr/bin/kubectl-berth", "kubectl berth"),
        ("kubectl-berth", "kubectl berth"),
        ("/usr/bin/berth", "berth"),
        ("cli/main.py", "berth"),
    ],
)
def test_the_name_is_that_of_the_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: str, name: str
) -> None:
    """In any folder."""
    monkeypatch.setattr(sys, "argv", [program])
    stderr.say("something")
    assert capsys.readouterr().err == f"{name}: something\n"


def test_bad_input_is_its_own_line_under_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its place; under the name berth it is what the error itself says."""
    error = InputError(file="x.yaml", message="is wrong", path=("spec", "mode"))
    monkeypatch.setattr(sys, "argv", ["kubectl-berth"])
    assert stderr.line(error) == "kubectl berth: x.yaml, spec.mode: is wrong"
    monkeypatch.setattr(sys, "argv", ["berth"])
    assert stderr.line(error) == str(error)


def test_the_plugin_has_its_name_whatever_file_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A PEX unpacks itself to a file of another name."""
    monkeypatch.setattr(sys, "argv", ["/home/a/.cache/pex/venvs/1/pex", "--help"])
    with pytest.raises(SystemExit):
        plugin()
    assert capsys.readouterr().out.startswith("usage: kubectl berth ")
