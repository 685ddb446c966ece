"""Callers that hold connections and let the server wait (reliability.md E8): they are cut, and real calls never notice them."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread

from tests.support.calls.held_connections import (
    REVIEW,
    Attack,
    Attackers,
    make_room,
    never_read,
    nothing,
    stop_in_the_body,
    trickle_body,
    trickle_head,
)
from tests.support.calls.raw_tls import HOST, all_of, dialled, post, tcp
from tests.support.calls.server_process import Running, serving
from tests.support.calls.webhook_client import NAMES, Callers, calling, pausing
from tests.support.counts import PROVE, count
from tests.testcluster.calls import PATIENCE

DEADLINE = count(2, 5)
"""Seconds of the server's --request-deadline."""
SLOW: list[tuple[Attack, int]] = [
    (trickle_head, count(20, 400)),
    (trickle_body, count(15, 300)),
    (stop_in_the_body, count(10, 280)),
]
DEAF = count(5, 20)
"""Those that never read first fill what two kernels hold."""
IDLE = count(100, 2000)
RATE = ["-callers", "8", "-rate", "100"]


async def among_attackers(server: Running, callers: Callers, number_deaf: int) -> Attackers:
    """Idle connections, slow ones and deaf ones, until the server ended all that are not idle; real calls all the while."""
    attackers = Attackers(server)
    idle = attackers.start(nothing, IDLE)
    await asyncio.to_thread(callers.call_on, 20)  # at small counts both at once are more than all places, and push out whoever dials then
    slow = [task for attack, number in SLOW for task in attackers.start(attack, number)]
    with ThreadPoolExecutor(max(1, number_deaf)) as pool:
        deaf = [asyncio.wrap_future(pool.submit(never_read, server)) for _ in range(number_deaf)]
        assert all(await asyncio.gather(*deaf)), "one that never reads is never cut"
    left = (await asyncio.wait(slow, timeout=PATIENCE))[1]
    assert not left, f"{len(left)} are never cut"
    await asyncio.to_thread(callers.call_on, 50)
    for task in idle:
        task.cancel()
    await asyncio.gather(*idle, return_exceptions=True)
    return attackers


def attacked(folder: Path, connections: int, number_deaf: int) -> Attackers:
    """The attackers' account, once no real call among them has failed."""
    options = ["--request-deadline", str(DEADLINE), "--unread", "1", "--connections", str(connections)]
    with serving(folder, *NAMES, *options) as server, calling([server], *RATE) as callers:
        callers.call_on(20)
        attackers = asyncio.run(among_attackers(server, callers, number_deaf))
        tally = callers.stop()
        assert server.process.poll() is None
        assert b"Traceback" not in server.log.read_bytes()
    assert (tally.failed, dict(tally.errors)) == (0, {}), tally
    return attackers


def test_slow_and_idle_callers_harm_no_real_one(tmp_path: Path) -> None:
    """With room for all: each slow one is cut, none before its time; real calls are answered all the while."""
    attackers = attacked(tmp_path, IDLE + 2 * sum(number for _, number in SLOW), DEAF)
    for attack, number in SLOW:
        lived = attackers.lived[attack.__name__]
        assert len(lived) == number
        assert min(lived) > DEADLINE - 0.5


def test_more_callers_than_there_is_room_for_harm_no_real_one(tmp_path: Path) -> None:
    """The connections that never asked make room, so that a caller who wants to call can."""
    attacked(tmp_path, IDLE, count(0, DEAF))


def test_callers_that_never_shake_hands_make_room(tmp_path: Path) -> None:
    """They count from the moment they connect: those over the limit take nobody's place, and the others are cut."""
    options = ["--connections", "100", *NAMES]
    with serving(tmp_path, *options) as server, calling([server], *RATE) as callers, ExitStack() as stack:
        callers.call_on(20)
        make_room()
        mute = [stack.enter_context(tcp(server)) for _ in range(count(150, 1000))]
        callers.call_on(100)
        tally = callers.stop()
        assert (tally.failed, dict(tally.errors)) == (0, {}), tally
        with dialled(server) as wire:  # what is not over the limit has until the handshake's deadline
            for raw in mute if PROVE else mute[:50]:
                assert all_of(raw) == b""
            wire.send(post(REVIEW))
            reply = wire.reply()
            assert reply is not None
            assert reply.status == 200


def test_a_flood_of_connections_is_no_way_to_push_callers_out(tmp_path: Path) -> None:
    """Two thousand a second, each open and silent: a caller that dials now is judged before it is the oldest that never asked."""
    with serving(tmp_path, "--connections", "4000", *NAMES) as server:
        stop = Event()
        flood = Thread(target=flood_with_connections, args=(server, stop))
        flood.start()
        pauses = ["-from", "0.5s", "-to", "0.5s", "-spread", f"{count(2, 20)}s", "-timeout", "60s"]
        with pausing(server, "-connections", "100", *pauses) as callers:
            tally = callers.wait()
        stop.set()
        flood.join()
    assert (tally.calls, tally.failed, dict(tally.errors)) == (200, 0, {}), tally


def flood_with_connections(server: Running, stop: Event) -> None:
    """The newest six thousand stay open."""
    make_room()
    opened: deque[socket.socket] = deque()
    while not stop.wait(0.01):
        opened.extend(socket.create_connection((HOST, server.port), timeout=PATIENCE) for _ in range(20))
        while len(opened) > 6000:
            opened.popleft().close()
    for each in opened:
        each.close()


def test_a_call_that_takes_most_of_the_deadline_is_answered(tmp_path: Path) -> None:
    """In pieces, twice on one connection: the deadline is each request's own."""
    with serving(tmp_path, "--request-deadline", "8") as server, dialled(server) as wire:
        for _ in range(2):
            data = post(REVIEW)
            for piece in (data[:20], data[20:200], data[200:1000], data[1000:]):
                time.sleep(1.2)
                wire.send(piece)
            reply = wire.reply()
            assert reply is not None
            assert reply.status == 200
