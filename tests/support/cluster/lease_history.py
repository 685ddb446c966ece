"""Who wrote while who held the Lease, in the order in which etcd has it: revisions are one sequence for all objects."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from cluster.client.api_client import Client
from tests.support.cluster.writing_replica import LEASE, WRITTEN

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@dataclass
class LeaseHistory:
    """What was watched: (revision, holder)."""

    held: list[tuple[int, str]] = field(default_factory=list)
    written: list[tuple[int, str]] = field(default_factory=list)

    def overlapping(self) -> list[tuple[int, str]]:
        """Writes of whoever did not hold at that moment."""
        found = []
        for revision, writer in self.written:
            before = [holder for at, holder in self.held if at < revision]
            if not before or before[-1] != writer:
                found.append((revision, writer))
        return found

    @property
    def holders(self) -> list[str]:
        """One after another, "" where nobody held."""
        names = [holder for _, holder in self.held]
        return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]

    def writes_of(self, holder: str) -> int:
        return sum(1 for _, one in self.written if one == holder)


@asynccontextmanager
async def watching(client: Client) -> AsyncIterator[LeaseHistory]:
    """From now on; the object that is written is there. The Lease is not."""
    await client.call("DELETE", f"{LEASES}/{LEASE}")
    await client.call("DELETE", f"{CONFIG_MAPS}/{WRITTEN}")
    made = await client.call("POST", CONFIG_MAPS, body={"metadata": {"name": WRITTEN}})
    version = made.body["metadata"]["resourceVersion"]
    history = LeaseHistory()
    tasks = [
        asyncio.create_task(_follow(client, LEASES, LEASE, version, history.held)),
        asyncio.create_task(_follow(client, CONFIG_MAPS, WRITTEN, version, history.written)),
    ]
    try:
        yield history
        assert not [task for task in tasks if task.done()], "the watch of the test has ended"
    finally:
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def closed(client: Client) -> None:
    """Also its connections, which take their leave after that."""
    await client.close()
    await asyncio.sleep(0.1)


async def _follow(client: Client, path: str, name: str, version: str, into: list[tuple[int, str]]) -> None:
    query = {"watch": "true", "fieldSelector": f"metadata.name={name}", "resourceVersion": version}
    async with client.stream(path, query, 3600.0) as lines:
        while batch := await lines.batch():
            for line in filter(None, batch):
                value = json.loads(line)["object"]
                holder = value.get("spec", {}).get("holderIdentity") if path == LEASES else value.get("data", {}).get("holder")
                into.append((int(value["metadata"]["resourceVersion"]), holder or ""))
