"""Which connection makes room for which."""

from __future__ import annotations

import socket
import ssl
from contextlib import ExitStack
from pathlib import Path

import pytest

from server import places
from server.places import OPEN, ConnectionPlaces
from tests.support.calls.held_connections import make_room
from tests.support.calls.raw_tls import HOST, Wire, context, post
from tests.support.calls.server_process import ROOT, Running, serving
from tests.support.calls.webhook_client import NAMES, calling
from tests.support.counts import count
from tests.testcluster.calls import PATIENCE

REVIEW = (ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_bytes()
API_SERVER, STRANGER, OTHER = "10.0.0.1", "10.0.0.2", "10.0.0.3"


class Caller:
    """A connection in name only."""

    is_open = True

    def __init__(self, at: ConnectionPlaces, source: str, *, proven: bool = True, idle: bool = True) -> None:
        self.source, self.is_idle, self.evicted = source, idle, False
        self.has_place = at.enter(self)
        if proven:
            at.prove(self)

    def evict(self) -> None:
        self.evicted = True

    def say_goodbye(self) -> None:
        raise NotImplementedError

    def end_now(self) -> None:
        raise NotImplementedError


def gone(*callers: Caller) -> list[int]:
    return [number for number, caller in enumerate(callers) if caller.evicted]


def test_who_was_used_least_recently_makes_room() -> None:
    """Of those that are idle."""
    at = ConnectionPlaces(4)
    callers = [Caller(at, API_SERVER, idle=number != 1) for number in range(4)]
    at.use(callers[0])
    assert Caller(at, API_SERVER).has_place
    assert gone(*callers) == [2]


def test_who_holds_most_makes_room_first() -> None:
    """Whoever asks once and holds on pushes out its own connections, and never those of an address that has fewer."""
    at = ConnectionPlaces(8)
    real = [Caller(at, API_SERVER) for _ in range(2)]
    held = [Caller(at, (STRANGER, OTHER)[number % 2]) for number in range(100)]
    assert gone(*real) == []
    assert sum(not caller.evicted for caller in held) == 6


def test_a_flood_of_what_costs_nothing_makes_room_for_itself() -> None:
    """Connections that never asked, where they are more than those of any address that did."""
    at = ConnectionPlaces(16)
    real = [Caller(at, API_SERVER) for _ in range(5)]
    flood = [Caller(at, STRANGER, proven=False) for _ in range(100)]
    assert gone(*real) == []
    assert gone(*flood) == list(range(89))


def test_callers_that_dial_in_earnest_are_not_pushed_out_by_idle_ones() -> None:
    """A burst of new connections, more of them than an eighth of all, while strangers hold all places with calls of long ago."""
    at = ConnectionPlaces(80)
    held = [Caller(at, (STRANGER, OTHER)[number % 2]) for number in range(80)]
    burst = [Caller(at, API_SERVER, proven=False) for _ in range(20)]
    for caller in burst:
        at.reached(caller, OPEN)
    assert gone(*burst) == []
    assert len(gone(*held)) == 20


def test_an_address_with_more_than_its_share_makes_room_also_where_it_calls() -> None:
    """Half of all places: past it another address gets one. Up to it nobody is cut in a call, and the new one is told to come back."""
    at = ConnectionPlaces(4)
    busy = [Caller(at, STRANGER, idle=False) for _ in range(4)]
    assert Caller(at, API_SERVER, idle=False).has_place
    assert Caller(at, API_SERVER, idle=False).has_place
    assert gone(*busy) == [0, 1]
    assert not Caller(at, OTHER, proven=False).has_place
    assert not Caller(at, STRANGER, proven=False).has_place


def test_those_that_are_turned_away_make_room_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest first, and they hold no place."""
    monkeypatch.setattr(places, "TURNED_AWAY", 2)
    at = ConnectionPlaces(1)
    busy = Caller(at, STRANGER, idle=False)
    away = [Caller(at, STRANGER, proven=False) for _ in range(4)]
    assert gone(*away) == [0, 1]
    assert set(at) == {busy, *away[2:]}
    for caller in (busy, *away):
        at.leave(caller)
    assert list(at) == []
    assert Caller(at, STRANGER).has_place


def asked_once(server: Running, source: str, client: ssl.SSLContext, stack: ExitStack) -> Wire:
    """A connection from this address of our own, that had an answer."""
    raw = stack.enter_context(socket.create_connection((HOST, server.port), timeout=PATIENCE, source_address=(source, 0)))
    wire = Wire(stack.enter_context(client.wrap_socket(raw, server_hostname="localhost")))
    wire.send(post(REVIEW))
    reply = wire.reply()
    assert reply is not None
    assert reply.status == 200
    return wire


def test_callers_that_asked_once_and_hold_on_cost_no_real_call(tmp_path: Path) -> None:
    """As many as there are places, from four addresses: the API server's client, which needs more of them than are free, loses no call."""
    make_room()
    number = count(150, 2000)
    with serving(tmp_path, "--connections", str(number), *NAMES) as server, ExitStack() as stack:
        client = context(server.ca)
        for each in range(number):
            asked_once(server, f"127.0.0.{2 + each % 4}", client, stack)
        with calling([server], "-callers", "20", "-rate", "100") as callers:
            callers.call_on(count(150, 3000))
            for each in range(20):
                asked_once(server, f"127.0.0.{2 + each % 4}", client, stack)
            callers.call_on(100)
            tally = callers.stop()
        assert (tally.failed, dict(tally.errors)) == (0, {}), tally
