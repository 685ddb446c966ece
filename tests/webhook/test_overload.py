"""How far behind the process is: told by a timer that should have rung, over again by itself."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from webhook import overload
from webhook.overload import Overload


def test_a_loop_that_stands_still_is_behind_while_it_does(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls within the long turn and those that waited for its end are turned away, later ones are not; the log has one line for the
    beginning and one for the end."""
    monkeypatch.setattr(overload, "QUIET", 0.3)

    async def stand_still() -> tuple[bool, ...]:
        watched = Overload(0.5)
        watched.watch(asyncio.get_running_loop())
        await asyncio.sleep(0.25)
        before = watched.sheds(time.monotonic())
        time.sleep(1)
        during = watched.sheds(time.monotonic())
        await asyncio.sleep(0)
        next_turn = watched.sheds(time.monotonic())
        await asyncio.sleep(0.5)
        after = watched.sheds(time.monotonic())
        while "overload_over" not in "".join(said):
            await asyncio.sleep(0.05)
            said.append(capsys.readouterr().err)
        return before, during, next_turn, after

    said: list[str] = []
    assert asyncio.run(stand_still()) == (False, True, True, False)
    events = [json.loads(line) for line in "".join(said).splitlines()]
    assert [(event["event"], event.get("calls")) for event in events] == [("overloaded", None), ("overload_over", 2)]


def test_who_is_not_watched_is_never_behind() -> None:
    """As in a test without an event loop."""
    assert not Overload(0.1).sheds(time.monotonic())
