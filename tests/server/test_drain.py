"""A replica that leaves while kube-apiserver's client calls it: no call is lost, and what is in flight is answered."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.calls.raw_tls import Wire, dialled, head, post, tcp
from tests.support.calls.server_process import LIBRARY, ROOT, Running, serving, until
from tests.support.calls.webhook_client import NAMES, Callers, calling
from tests.support.counts import PROVE, count
from tests.testcluster.calls import PATIENCE

REVIEW = (ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_bytes()
LAME_DUCK = [] if PROVE else ["--lame-duck", "1"]
ENDPOINT_LAG = 0.3
"""Seconds between SIGTERM and the end of new connections, either way round: a kubelet and the endpoints' controllers do not wait
for each other."""


@contextmanager
def replicas(folder: Path) -> Iterator[Callable[[], Running]]:
    """Starts one with each call. All have the certificate of one folder, as replicas have that of one Secret."""
    (folder / "shared").mkdir()
    with ExitStack() as stack:

        def start() -> Running:
            own = folder / f"replica-{len(list(folder.iterdir()))}"
            own.mkdir()
            (own / "tls").symlink_to(folder / "shared")
            return stack.enter_context(serving(own, "--policies", LIBRARY, "--platforms", "karpenter-aws", *NAMES, *LAME_DUCK))

        yield start


def withdraw_first(callers: list[Callers], leaving: Running, left: list[Running]) -> None:
    """The endpoint goes, then the process is told."""
    for each in callers:
        each.send_to(left)
    time.sleep(ENDPOINT_LAG)
    leaving.process.send_signal(signal.SIGTERM)


def signal_first(callers: list[Callers], leaving: Running, left: list[Running]) -> None:
    """The process is told, and for a moment it still gets new connections."""
    leaving.process.send_signal(signal.SIGTERM)
    time.sleep(ENDPOINT_LAG)
    for each in callers:
        each.send_to(left)


def test_replicas_are_replaced_under_load_and_no_call_fails(tmp_path: Path) -> None:
    """One of two is replaced, again and again; each ends with 0. One client is busy, another has more idle connections than calls."""
    with replicas(tmp_path) as start:
        now = [start(), start()]
        with calling(now, "-callers", "16", "-rate", str(count(100, 300))) as busy, calling(now, "-callers", "64", "-rate", "64") as idle:
            for leave in [withdraw_first, signal_first] * count(1, 25):
                busy.call_on(100)
                now.append(start())
                leaving = now.pop(0)
                leave([busy, idle], leaving, now)
                assert leaving.process.wait(PATIENCE) == 0
                assert b"Traceback" not in leaving.log.read_bytes()
            busy.call_on(100)
            tallies = [busy.stop(), idle.stop()]
    assert [(tally.failed, dict(tally.errors)) for tally in tallies] == [(0, {}), (0, {})], tallies


def in_flight(server: Running, number: int) -> None:
    """Returns once the server says so."""
    until(lambda: f"berth_requests_in_flight {number}.0".encode() in server.health("/metrics").body, f"{number} calls in flight")


def test_half_a_body_at_sigterm_is_answered(tmp_path: Path) -> None:
    """The rest of it comes during the lame duck, or while calls in flight are awaited; either way the answer closes its connection."""
    with serving(tmp_path, "--lame-duck", "1") as server, dialled(server) as early, dialled(server) as late:
        for wire in (early, late):
            wire.send(post(REVIEW)[:-1000])
        in_flight(server, 2)
        server.process.send_signal(signal.SIGTERM)
        server.event("stopping")
        early.send(REVIEW[-1000:])
        until(lambda: denied(server), "the end of the lame duck")
        late.send(REVIEW[-1000:])
        for wire in (early, late):
            reply = wire.reply()
            assert reply is not None
            assert (reply.status, reply.closes) == (200, True)
            assert wire.reply() is None
        assert server.process.wait(PATIENCE) == 0


def denied(server: Running) -> bool:
    """New connections are. (No TLS: of a connection that is reset before its handshake, CPython's ssl leaves a socket open.)"""
    try:
        with tcp(server):
            return False
    except OSError:
        return True


def test_the_drain_ends(tmp_path: Path) -> None:
    """A caller that never reads its answers, and one whose body is allowed a minute: the process goes after --drain all the same."""
    limits = ["--lame-duck", "0", "--drain", "1", "--request-deadline", "60"]
    with serving(tmp_path, *limits) as server, dialled(server) as slow, dialled(server, receive_buffer=4096) as deaf:
        slow.send(post(REVIEW)[:-1000])
        in_flight(server, 1)
        fill(deaf)
        begun = time.monotonic()
        assert server.stop(signal.SIGTERM) == 0
        assert time.monotonic() - begun < 60, "of the minute that the body may take, or of for ever"
        assert b"Traceback" not in server.log.read_bytes()


def fill(wire: Wire) -> None:
    """Ask without reading until the server reads no more."""
    wire.socket.settimeout(1)
    with contextlib.suppress(TimeoutError):
        while wire.send(post(REVIEW)):
            pass


def test_a_second_sigterm_skips_the_wait_and_not_the_answers(tmp_path: Path) -> None:
    """The lame duck of a minute ends at once; half a body still gets its answer."""
    with serving(tmp_path, "--lame-duck", "60") as server, dialled(server) as wire:
        wire.send(post(REVIEW)[:-1000])
        in_flight(server, 1)
        server.process.send_signal(signal.SIGTERM)
        server.event("stopping")
        server.process.send_signal(signal.SIGTERM)
        until(lambda: denied(server), "the end of the lame duck")
        wire.send(REVIEW[-1000:])
        reply = wire.reply()
        assert reply is not None
        assert (reply.status, reply.closes) == (200, True)
        assert server.process.wait(PATIENCE) == 0


def test_neither_idle_connections_nor_bodies_that_never_end_keep_the_process(tmp_path: Path) -> None:
    """Connections that asked once, those that never did, and half a head or body, which has until the request deadline: long before the
    drain would be over."""
    limits = ["--lame-duck", "0", "--drain", "300", "--request-deadline", "1"]
    with serving(tmp_path, *limits) as server, ExitStack() as stack:
        for begun in (b"", post(REVIEW), head(100)[:40]):
            wire = stack.enter_context(dialled(server))
            wire.send(begun)
            if begun.endswith(REVIEW):
                assert wire.reply() is not None
        wire = stack.enter_context(dialled(server))
        wire.send(post(REVIEW)[:-1000])
        in_flight(server, 1)
        assert server.stop(signal.SIGTERM) == 0
        assert [reply.status for reply in wire.replies()] in ([], [408])
