"""A replica that follows a real API server, works out findings, and writes statuses: as ``berth serve`` has it, without reviews."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from cluster.client.api_client import Access, Client
from cluster.status.events import Events
from cluster.status.writer import StatusWriter
from cluster.watch.connectivity import Connectivity
from cluster.watch.delta_queue import DeltaQueue
from cluster.watch.kinds import KINDS
from cluster.watch.reflector import Reflector
from policies.policy import API_VERSION
from policies.state.updater import Options, Updater
from tests.support.cases import golden
from tests.support.cluster.lease_history import closed
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.cluster import Cluster

Raw = dict[str, Any]
FOLLOWED = [one for one in KINDS if one.ours or one.kind == "Namespace"]


class Holding:
    """A Lease that is held, or not, as a test has it."""

    def __init__(self) -> None:
        self.left = 10.0


class Replica:
    """What it has written: ``statuses.counts``; what it logged: ``logged``."""

    def __init__(self, client: Client, lease: Any, **options: Any) -> None:
        self.client = client
        self.lease = lease
        self.logged: list[tuple[str, Raw]] = []
        self.events = Events(client, instance="berth-0", held=lambda: lease.left > 0, tell=self.tell)
        self.statuses = StatusWriter(client=client, left=lambda: lease.left, tell=self.tell, events=self.events, rest=0.02, **options)
        self.inbox = DeltaQueue()
        self.updater = Updater(golden.catalog_with(), Options(platforms=("karpenter-aws", "gfd")))

    def tell(self, event: str, /, **fields: Any) -> None:
        self.logged.append((event, fields))

    async def follow(self) -> None:
        """For ever. What waits is taken at once."""
        while True:
            await self.inbox.filled.wait()
            self.statuses.take(self.updater.apply(self.inbox.take()))
            await asyncio.sleep(0.01)

    async def settled(self) -> None:
        """Returns once a second has gone by without a write: what was under way has come back by the watch."""
        async with asyncio.timeout(PATIENCE):
            while await self.quiet():
                pass

    async def quiet(self, seconds: float = 1.0) -> int:
        """Writes in so many seconds."""
        before = self.statuses.counts.written
        await asyncio.sleep(seconds)
        return self.statuses.counts.written - before


@asynccontextmanager
async def replica(plane: Cluster, lease: Any = None, **options: Any) -> AsyncIterator[Replica]:
    """One that is synced."""
    client = await Client.connect(Access(str(plane.kubeconfig)))
    one = Replica(client, lease or Holding(), **options)
    gate = Connectivity(client)
    reflectors = [Reflector(client, watched, one.inbox, gate, one.tell, 300.0) for watched in FOLLOWED]
    tasks = [asyncio.create_task(r.run()) for r in reflectors]
    try:
        while not all(r.synced for r in reflectors):
            await asyncio.sleep(0.01)
        tasks += [asyncio.create_task(run()) for run in (one.follow, one.statuses.run, one.events.run)]
        yield one
        assert not [task for task in tasks if task.done()], "nothing of it ever ends"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await closed(client)


def policy(name: str, **spec: Any) -> Raw:
    return {"apiVersion": API_VERSION, "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": {"mode": "Enforce", **spec}}


async def beside(call: Callable[..., Any], *words: Any, **more: Any) -> Any:
    """A call of the test's own client, which blocks."""
    return await asyncio.to_thread(call, *words, **more)
