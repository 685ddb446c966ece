"""How far behind the process is: told by a timer that should have rung, over again by itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time

import pytest

from tests.webhook.asked import port, run, told
from webhook import overload
from webhook.http import Answer, Call, Refusal, said
from webhook.limits import Limits
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
        for _ in range(200):
            lines.append(capsys.readouterr().err)
            if "overload_over" in "".join(lines):
                break
            await asyncio.sleep(0.05)
        return before, during, next_turn, after

    lines: list[str] = []
    assert asyncio.run(stand_still()) == (False, True, True, False)
    events = [json.loads(line) for line in "".join(lines).splitlines()]
    assert [(event["event"], event.get("calls")) for event in events] == [("overloaded", None), ("overload_over", 2)]


GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Watching:
    """Answers whether a call is to be turned away."""

    room = most = 1000

    def __init__(self) -> None:
        self.overload = Overload(0.5)

    def begin(self, call: Call) -> Refusal | None:
        return None

    def answer(self, call: Call) -> Answer:
        if call.path == b"/stand-still":
            time.sleep(1)
        return said(200, f"sheds: {self.overload.sheds(time.monotonic())}")

    def lost(self, call: Call) -> None:
        pass


def test_only_who_waited_is_turned_away() -> None:
    """A call that came while the event loop stood still; not the one after it, though the timer has not rung in time since."""

    async def call_on() -> list[str]:
        app = Watching()
        app.overload.watch(asyncio.get_running_loop())
        async with port(app, Limits(), []) as (_, number):
            return await asyncio.to_thread(call_behind_each_other, number)

    assert run(call_on()) == ["sheds: False", "sheds: True", "sheds: True", "sheds: False"]


def call_behind_each_other(number: int) -> list[str]:
    with contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(socket.create_connection(("127.0.0.1", number), timeout=30)) for _ in range(2))
        second.sendall(GET)
        found = [second.recv(1000)]
        first.sendall(GET.replace(b"/", b"/stand-still", 1))
        time.sleep(0.3)
        second.sendall(GET)
        found += [first.recv(1000), second.recv(1000)]
        second.sendall(GET)
        found.append(second.recv(1000))
        return [told(answer).body.decode().strip() for answer in found]


def test_who_is_not_watched_is_never_behind() -> None:
    """As in a test without an event loop."""
    assert not Overload(0.1).sheds(time.monotonic())
