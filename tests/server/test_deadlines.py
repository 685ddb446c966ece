"""A deadline that is put off costs no timer, and one that is missed is told once."""

from __future__ import annotations

import asyncio
import time

from server.deadlines import Deadline
from tests.support.calls.in_process import run


def test_a_deadline_is_missed_when_its_time_has_come() -> None:
    """Not where it was put off or set anew, be the new time sooner or later; with the reason of the last."""

    async def wait() -> tuple[list[str], float]:
        missed: list[str] = []
        begun = time.monotonic()
        deadline = Deadline(asyncio.get_running_loop(), missed.append)
        deadline.set("long", 60)
        deadline.set("short", 0.1)
        deadline.at = time.monotonic() + 0.4
        while not missed:
            await asyncio.sleep(0.01)
        return missed, time.monotonic() - begun

    missed, seconds = run(wait())
    assert missed == ["short"]
    assert seconds >= 0.4


def test_after_its_end_nothing_is_missed() -> None:
    """The connection is gone."""

    async def end() -> list[str]:
        missed: list[str] = []
        deadline = Deadline(asyncio.get_running_loop(), missed.append)
        deadline.set("soon", 0.05)
        deadline.end()
        await asyncio.sleep(0.2)
        return missed

    assert run(end()) == []
