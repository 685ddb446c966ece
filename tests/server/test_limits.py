"""The numbers: what they must hold together, and the sentence for one that is out of bounds."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from server.limits import BOUNDS, Limits, flag, read_limits
from tests.support.calls.server_process import ROOT


def test_every_number_has_bounds_that_hold_its_default() -> None:
    """And a reason."""
    assert asdict(Limits()).keys() == BOUNDS.keys()
    for name, value in asdict(Limits()).items():
        assert BOUNDS[name].least <= value <= BOUNDS[name].most
        assert BOUNDS[name].reason


def test_the_manual_has_every_limit() -> None:
    """Every flag with its meaning, its bounds and its default; docs/command.md names the flags."""
    manual = " ".join((ROOT / "docs" / "berth.1").read_text().replace("\\-", "-").replace("\\(aq", "'").split())
    for name, default in asdict(Limits()).items():
        bound = BOUNDS[name]
        assert f"{bound.what} ({bound.least} to {bound.most} {bound.unit}; default: {default}). {bound.reason}" in manual
        assert f"`{flag(name)}`" in (ROOT / "docs" / "command.md").read_text()


def test_connections_outlive_the_api_servers_patience() -> None:
    """The API server keeps idle connections 90 s; ours can't be set to end before."""
    assert BOUNDS["keep_alive"].least > 90


def test_what_is_not_given_is_the_default() -> None:
    """Only what was typed differs."""
    assert read_limits({}) == Limits()
    assert read_limits({"drain": "5", "body": None}) == Limits(drain=5)


@pytest.mark.parametrize("text", ["", "-1", "90", "3601", "1e3", "two", "120.5", "²"])
def test_a_wrong_number_says_bounds_and_reason(text: str) -> None:
    """With the flag to change."""
    with pytest.raises(ValueError, match=rf'^--keep-alive "{text}" is not between 91 and 3600 seconds\. The API server keeps idle'):
        read_limits({"keep_alive": text})


def test_all_that_is_wrong_is_told_at_once() -> None:
    """A line each."""
    with pytest.raises(ValueError, match=r"--lame-duck .*\n--drain"):
        read_limits({"drain": "0", "lame_duck": "x"})


def test_a_flag_is_its_name_with_hyphens() -> None:
    """As argparse reads it back."""
    assert flag("request_deadline") == "--request-deadline"
