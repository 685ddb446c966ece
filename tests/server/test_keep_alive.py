"""Gaps between calls on kept connections: the server never ends one that kube-apiserver's client is about to use."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from tests.support.calls.server_process import Running, serving
from tests.support.calls.short_keep_alive import serving_briefly
from tests.support.calls.webhook_client import NAMES, Tally, pausing
from tests.support.counts import count, only_in_prove

KEEP_ALIVE = 12
"""Seconds of the small server, and the client's below it in the proportion of 90 to 120, in which both really are. Three seconds between
them are more than a busy machine takes to run a timer."""
CLIENT_IDLE = 9


def called_after(server: Running, gaps: Iterable[tuple[float, float]], connections: int, *options: str) -> list[Tally]:
    """For each range of gaps, in seconds, so many connections with a gap each (within 2 ms), all at the same time."""
    with ExitStack() as stack:
        each = [["-connections", str(connections), "-from", f"{least}s", "-to", f"{most}s", *options] for least, most in gaps]
        callers = [stack.enter_context(pausing(server, *pauses)) for pauses in each]
        return [caller.wait() for caller in callers]


def lost(tallies: Iterable[Tally], connections: int) -> list[Tally]:
    """Those in which a call is missing or failed, or found its connection ended."""
    return [tally for tally in tallies if tally.calls != 2 * connections or tally.failed or tally.retried]


def test_no_gap_loses_a_call(tmp_path: Path) -> None:
    """As long as the client keeps a connection, as long as the server does, and all between: the client ends them first.

    Of those that are shorter each connection is dialled once and used twice.
    """
    gaps = [(CLIENT_IDLE, CLIENT_IDLE), (KEEP_ALIVE, KEEP_ALIVE), (0, KEEP_ALIVE + 1), (0, 0.5)]
    connections = count(40, 450)
    with serving_briefly(tmp_path, KEEP_ALIVE) as server:
        tallies = called_after(server, gaps, connections, "-idle", f"{CLIENT_IDLE}s", "-spread", "6s", "-timeout", "60s")
    assert lost(tallies, connections) == []
    assert tallies[-1].dials == connections


def test_a_server_that_ends_connections_first_is_found_out(tmp_path: Path) -> None:
    """What these tests would see: the client's real 90 s against a server's 1 s, with gaps of just that, lose calls."""
    with serving_briefly(tmp_path, 1) as server:
        (tally,) = called_after(server, [(1, 1)], count(300, 1000), "-spread", "3s")
    assert tally.failed + tally.retried > 0, tally


@only_in_prove
def test_no_gap_of_the_real_times_loses_a_call(tmp_path: Path) -> None:
    """The client's own 90 s and the server's own 120 s: a thousand gaps around each, and a thousand from 0.5 to 95 s.

    ``make test`` has the same proportions in seconds, above."""
    with serving(tmp_path, "--connections", "4000", *NAMES) as server:
        assert lost(called_after(server, [(0.5, 95), (90, 90), (120, 120)], 1000, "-spread", "5s"), 1000) == []
