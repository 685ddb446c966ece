"""One writer of several, against a real API server: stopped, killed, cut off, and set against each other.

All times are two fifths of those in production: a Lease of six seconds.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.client.api_client import Access, Client
from cluster.status.leader_election import DURATION, GIVEN_UP, Lease
from tests.support.cluster.collecting_store import until
from tests.support.cluster.faulty_proxy import Proxy
from tests.support.cluster.lease_history import LEASES, LeaseHistory, closed, watching
from tests.support.cluster.writing_replica import LEASE
from tests.support.counts import PROVE, count
from tests.testcluster.controlplane.cluster import Cluster

PACE = 0.4
PAUSE = 0.005 if PROVE else 0.03
"""seconds between two writes of who holds"""
PROGRAM = "tests.support.cluster.writing_replica"
ROOT = Path(__file__).parent.parent.parent.parent


def quiet(event: str, /, **fields: Any) -> None:
    """Nothing is told."""


class World:
    """The API server, and replicas as processes of their own."""

    def __init__(self, plane: Cluster, client: Client, history: LeaseHistory) -> None:
        self.plane = plane
        self.client = client
        self.history = history
        self.replicas: dict[str, asyncio.subprocess.Process] = {}

    async def start(self, holder: str, lease_kubeconfig: Path | None = None) -> asyncio.subprocess.Process:
        kubeconfig = str(self.plane.kubeconfig)
        words = (sys.executable, "-m", PROGRAM, str(lease_kubeconfig or kubeconfig), kubeconfig, holder, str(PACE), str(PAUSE))
        self.replicas[holder] = await asyncio.create_subprocess_exec(*words, cwd=ROOT, stdout=asyncio.subprocess.DEVNULL)
        return self.replicas[holder]

    async def holding(self, holder: str) -> None:
        """Returns once it holds, and has written since."""
        await until(lambda: self.history.held[-1:] != [] and self.history.held[-1][1] == holder, f"{holder} to hold")
        written = self.history.writes_of(holder)
        await until(lambda: self.history.writes_of(holder) > written, f"{holder} to write")


@asynccontextmanager
async def world_of(plane: Cluster) -> AsyncIterator[World]:
    client = await Client.connect(Access(str(plane.kubeconfig)))
    try:
        async with watching(client) as history:
            world = World(plane, client, history)
            try:
                yield world
            finally:
                for process in world.replicas.values():
                    if process.returncode is None:
                        process.kill()
                    await process.wait()
    finally:
        await closed(client)


@contextmanager
def through(plane: Cluster, folder: Path) -> Iterator[tuple[Proxy, Path]]:
    """A proxy, and a kubeconfig that goes through it."""
    with Proxy("127.0.0.1", plane.api.port) as proxy:
        config = yaml.safe_load(plane.kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
        file = folder / "through-proxy"
        file.write_text(yaml.safe_dump(config))
        yield proxy, file


def test_of_several_one_holds_and_when_it_lets_go_another_does(plane: Cluster) -> None:
    """SIGTERM releases: the next need not wait for the Lease to end."""

    async def run() -> None:
        async with world_of(plane) as world:
            for name in ("a", "b", "c"):
                await world.start(name)
            await until(lambda: len(world.history.written) > 20, "writes")
            (first,) = set(world.history.holders)
            world.replicas[first].send_signal(signal.SIGTERM)
            await world.replicas[first].wait()
            await until(lambda: len(set(world.history.holders) - {""}) > 1, "another holder")
            assert world.history.holders[:2] == [first, ""]
            await world.holding(world.history.holders[2])
            assert not world.history.overlapping()

    asyncio.run(run())


def test_a_holder_that_is_stopped_past_its_lease_writes_nothing_when_it_wakes(plane: Cluster) -> None:
    """SIGSTOP, another takes over, SIGCONT: again and again, and no write is out of turn."""

    async def run() -> None:
        async with world_of(plane) as world:
            await world.start("a")
            await world.holding("a")
            await world.start("b")
            for holder, other in [("a", "b"), ("b", "a")] * count(1, 10):
                await world.holding(holder)
                os.kill(world.replicas[holder].pid, signal.SIGSTOP)
                await world.holding(other)
                os.kill(world.replicas[holder].pid, signal.SIGCONT)
                await asyncio.sleep(1.0)
            await until(lambda: len(world.history.written) > 100, "a hundred writes")
            assert not world.history.overlapping()

    asyncio.run(run())


def test_a_holder_that_is_killed_is_followed_when_its_lease_ends(plane: Cluster) -> None:
    """Not before: others judge by their own clocks."""

    async def run() -> None:
        async with world_of(plane) as world:
            for _ in range(count(1, 10)):
                await world.start("a")
                await world.holding("a")
                await world.start("b")
                await asyncio.sleep(1.0)
                loop = asyncio.get_running_loop()
                world.replicas["a"].kill()
                killed = loop.time()
                await world.holding("b")
                assert loop.time() - killed > (DURATION - 5.0 * 1.1) * PACE - 0.3  # it may have been renewed up to a renewal earlier
                assert not world.history.overlapping()
                world.replicas["b"].kill()

    asyncio.run(run())


def test_a_holder_that_can_not_renew_stops_before_another_begins(plane: Cluster, tmp_path: Path) -> None:
    """Its way to the Lease is cut in silence, its way to what it writes is not: the worst there is."""

    async def run() -> None:
        async with world_of(plane) as world:
            with through(plane, tmp_path) as (proxy, kubeconfig):
                await world.start("a", kubeconfig)
                await world.holding("a")
                await world.start("b")
                for _ in range(count(1, 10)):
                    proxy.blackhole()
                    await world.holding("b")
                    proxy.blackhole(on=False)
                    world.replicas["b"].send_signal(signal.SIGTERM)
                    await world.replicas["b"].wait()
                    await world.holding("a")
                    await world.start("b")
            assert not world.history.overlapping()

    asyncio.run(run())


def on_client(plane: Cluster, test: Callable[[Client], Any]) -> None:
    """Runs a test with a client of the API server and no Lease."""

    async def run() -> None:
        client = await Client.connect(Access(str(plane.kubeconfig)))
        try:
            await client.call("DELETE", f"{LEASES}/{LEASE}")
            await test(client)
        finally:
            await closed(client)

    asyncio.run(run())


@asynccontextmanager
async def electing(client: Client, holder: str, **options: Any) -> AsyncIterator[Lease]:
    lease = Lease(client, name=LEASE, namespace="default", holder=holder, tell=options.pop("tell", quiet), pace=PACE, **options)
    task = asyncio.create_task(lease.run())
    try:
        yield lease
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def spec(client: Client) -> dict[str, Any]:
    found: dict[str, Any] = (await client.call("GET", f"{LEASES}/{LEASE}")).body["spec"]
    return found


def test_clocks_of_others_are_not_read(plane: Cluster) -> None:
    """A Lease that was renewed in the next century, or the last, ends as long after it was last seen to change as any."""

    async def run(client: Client) -> None:
        for time in ("2126-01-01T00:00:00.000000Z", "1926-01-01T00:00:00.000000Z"):
            held = {"holderIdentity": "gone", "leaseDurationSeconds": 3, "renewTime": time, "acquireTime": time, "leaseTransitions": 4}
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE}, "spec": held}
            assert (await client.call("POST", LEASES, body=body)).ok
            loop = asyncio.get_running_loop()
            begun = loop.time()
            async with electing(client, "a") as lease:
                await until(lambda: lease.held, "the Lease")
                assert loop.time() - begun >= DURATION * PACE
                assert (await spec(client))["leaseTransitions"] == 5
            await client.call("DELETE", f"{LEASES}/{LEASE}")

    on_client(plane, run)


def test_an_absurd_duration_is_believed_for_a_minute_at_most(plane: Cluster) -> None:
    """Of a Lease that anyone may have written."""

    async def run(client: Client) -> None:
        held = {"holderIdentity": "gone", "leaseDurationSeconds": 2**31 - 1}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE}, "spec": held}
        assert (await client.call("POST", LEASES, body=body)).ok
        now = 0.0
        async with electing(client, "a", clock=lambda: now) as lease:
            await asyncio.sleep(1.0)
            assert not lease.held
            now = 61.0
            await until(lambda: lease.held, "the Lease")

    on_client(plane, run)


def test_a_release_leaves_no_holder_and_is_told(plane: Cluster) -> None:
    """And who holds is told once each time."""

    async def run(client: Client) -> None:
        events: list[str] = []
        async with electing(client, "a", tell=lambda event, /, **fields: events.append(event)) as lease:
            await until(lambda: lease.held, "the Lease")
            await asyncio.sleep(3 * PACE * 5.0)
            assert (lease.taken, events) == (1, ["lease_held"])
            assert 0 < lease.left <= GIVEN_UP * PACE
        assert not lease.held
        assert (await spec(client))["holderIdentity"] == ""

    on_client(plane, run)


def test_held_ends_by_its_own_clock(plane: Cluster) -> None:
    """Without a word from the event loop: whoever asks is told the truth at that moment."""

    async def run(client: Client) -> None:
        now = 100.0
        async with electing(client, "a", clock=lambda: now) as lease:
            await until(lambda: lease.held, "the Lease")
            now += GIVEN_UP * PACE - 0.01
            assert lease.held
            now += 0.02
            assert not lease.held

    on_client(plane, run)


def test_a_lease_that_is_deleted_or_given_away_is_not_fought_over(plane: Cluster) -> None:
    """Deleted, it is made again; written by another, it is let go of at once."""

    async def run(client: Client) -> None:
        async with electing(client, "a") as lease:
            await until(lambda: lease.held, "the Lease")
            await client.call("DELETE", f"{LEASES}/{LEASE}")
            await asyncio.sleep(2 * PACE * 5.0)
            assert (await spec(client))["holderIdentity"] == "a"
            other = {"spec": {"holderIdentity": "b", "leaseDurationSeconds": 3}}
            assert (await client.call("PATCH", f"{LEASES}/{LEASE}", body=other, content="application/merge-patch+json")).ok
            await until(lambda: not lease.held, "it to let go")

    on_client(plane, run)


@pytest.mark.parametrize("lease_spec", [None, {}, {"holderIdentity": "", "leaseDurationSeconds": 1}], ids=str)
def test_a_lease_without_a_holder_is_taken(plane: Cluster, lease_spec: dict[str, Any] | None) -> None:
    """Whatever else is, or is not, in it."""

    async def run(client: Client) -> None:
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE}, "spec": lease_spec}
        assert (await client.call("POST", LEASES, body=body)).ok
        async with electing(client, "a") as lease:
            await until(lambda: lease.held, "the Lease")

    on_client(plane, run)


def test_a_server_that_is_away_does_not_end_it(plane: Cluster, tmp_path: Path) -> None:
    """It is told once, and the Lease is held again when the server is back."""

    async def run() -> None:
        events: list[str] = []
        with through(plane, tmp_path) as (proxy, kubeconfig):
            client = await Client.connect(Access(str(kubeconfig)))
            async with electing(client, "a", tell=lambda event, /, **fields: events.append(event)) as lease:
                await until(lambda: lease.held, "the Lease")
                proxy.deny()
                proxy.cut()
                await until(lambda: not lease.held, "it to give up")
                assert events[1:] == ["lease_failed"] or events[1:] == ["lease_failed", "lease_lost"]
                proxy.deny(on=False)
                await until(lambda: lease.held, "the Lease")
            await closed(client)

    asyncio.run(run())
