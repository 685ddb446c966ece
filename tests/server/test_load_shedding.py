"""How far behind the process is: told by a timer that should have rung, over again by itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from server import load_shedding
from server.http import Answer, Call, Later, Rejection, text_answer
from server.limits import Limits
from server.load_shedding import LoadShedding
from tests.support.calls.in_process import StandIn, port, read_answer, run
from tests.testcluster.calls import PATIENCE


def test_a_loop_that_stands_still_is_behind_while_it_does(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls within the long turn and those that waited for its end are turned away, later ones are not; the log has one line for the
    beginning and one for the end."""
    loop, watched = Turns(), LoadShedding(0.5)
    monkeypatch.setattr(load_shedding, "monotonic", lambda: loop.now)
    watched.watch(loop)  # type: ignore[arg-type]
    loop.turns(0.25)
    before = watched.sheds(loop.now)
    loop.now += 1
    during = watched.sheds(loop.now)
    loop.turns(0)
    next_turn = watched.sheds(loop.now)
    loop.turns(0.5)
    after = watched.sheds(loop.now)
    loop.turns(load_shedding.QUIET + 1)
    assert (before, during, next_turn, after) == (False, True, True, False)
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(event["event"], event.get("calls")) for event in events] == [("overloaded", None), ("overload_over", 2)]


class Turns:
    """An event loop whose time passes only when it is told to, in turns of a hundredth of a second. Timers come first in a turn."""

    def __init__(self) -> None:
        self.now = 100.0
        self._soon: list[Callable[..., object]] = []
        self._later: list[tuple[float, Callable[[], object]]] = []

    def call_soon(self, done: Callable[..., object], *words: object) -> None:
        self._soon.append(partial(done, *words))

    def call_later(self, seconds: float, done: Callable[[], object]) -> None:
        self._later.append((self.now + seconds, done))

    def turns(self, seconds: float) -> None:
        """One, and more until so many have passed."""
        end = self.now + seconds
        while True:
            due = [done for at, done in self._later if at <= self.now]
            self._later = [(at, done) for at, done in self._later if at > self.now]
            turn, self._soon = [*self._soon, *due], []
            for done in turn:
                done()
            if self.now >= end:
                return
            self.now += 0.01


GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Watching(StandIn):
    """Answers whether a call is to be turned away. Its clock stands but for the second that a call to /stand-still takes."""

    room = most = 1000

    def __init__(self) -> None:
        self.overload = LoadShedding(0.5)
        self.now = 100.0
        self.stands, self.goes_on = threading.Event(), threading.Event()

    def begin(self, call: Call) -> Rejection | None:
        return None

    def answer(self, call: Call, later: Later) -> Answer:
        if call.path == b"/stand-still":
            self.stands.set()
            assert self.goes_on.wait(PATIENCE)
            time.sleep(3 * load_shedding.TICK)  # by the loop's own clock the timer is due
            self.now += 1
        return text_answer(200, f"sheds: {self.overload.sheds(self.now)}")

    def lost(self, call: Call) -> None:
        pass


def test_only_who_waited_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that came while the event loop stood still; not the one after it, though the timer has not rung in time since. (On a busy
    machine the kernel may hand the call on so late that it did not wait.)"""

    async def call_on() -> list[str]:
        app = Watching()
        monkeypatch.setattr(load_shedding, "monotonic", lambda: app.now)
        app.overload.watch(asyncio.get_running_loop())
        async with port(app, Limits(), []) as (_, number):
            return await asyncio.to_thread(call_behind_each_other, app, number)

    wanted = ["sheds: False", "sheds: True", "sheds: True", "sheds: False"]
    assert any(run(call_on()) == wanted for _ in range(5))


def call_behind_each_other(app: Watching, number: int) -> list[str]:
    with contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(socket.create_connection(("127.0.0.1", number), timeout=PATIENCE)) for _ in range(2))
        second.sendall(GET)
        found = [read_answer(second)]
        first.sendall(GET.replace(b"/", b"/stand-still", 1))
        assert app.stands.wait(PATIENCE)
        second.sendall(GET)
        app.goes_on.set()
        found += [read_answer(first), read_answer(second)]
        second.sendall(GET)
        found.append(read_answer(second))
        return [answer.body.decode().strip() for answer in found]


def test_who_is_not_watched_is_never_behind() -> None:
    """As in a test without an event loop."""
    assert not LoadShedding(0.1).sheds(time.monotonic())
