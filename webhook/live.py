"""Policies and facts of a cluster, followed: what its API server says is in force a moment later, and nothing is before all of it is in.

One task per kind follows the API server (``cluster.reflector``) and fills the inbox; one takes what is in it, makes the next snapshot
(``policies.living``) and swaps it. Whatever becomes of the API server, the last snapshot goes on deciding.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from cluster.client import Access, Client
from cluster.gate import Gate
from cluster.inbox import Inbox
from cluster.kinds import KINDS
from cluster.lease import Lease
from cluster.reflector import Reflector
from cluster.statuses import Statuses, writer
from policies.living import AUTO, Lived, Living
from policies.snapshot import Snapshot
from policies.stored import Entry, Key, id_of
from webhook import logs
from webhook.following import beside, pauseless_collection
from webhook.health import Condition
from webhook.in_force import dissolve, swap, swap_facts
from webhook.registered import RegisteredCollector, RegistrationUpkeep
from webhook.settings import ClusterSource
from webhook.sources import Sources, options
from webhook.watching import WatchCollector, Watching, Writes

SETTLES = 0.01
"""Seconds that a change waits for others: `kubectl apply` of a folder comes as one a few ms, and each swap costs a millisecond or two"""
FEW = 16
"""Changes that are taken on the event loop: 0.2 ms each. More go to a thread, and calls go on."""
TOUCH_ALL = frozenset({"ClusterGPUPolicy", "GPUNodeTemplate", "Node", "NodePool"})
"""Kinds of which one object may change what all policies are compiled against (platforms, slices, instance families), which takes a second
for a thousand of them: never on the event loop. What a team writes is not among them."""
WAITS = 5.0
"""seconds after which it is said, and every so often again, what is still missing for a first snapshot"""
ENDINGS, ENDING = 3, 4.0
"""Times that tasks are cancelled at the end, and seconds that they get each time: to let the Lease go takes three at most"""
MOST_ERRORS = 16
"""of one object that are logged; its status has more"""
MOST_NAMED = 100
"""policies of each kind of change that one line of the log names"""
IN_ONE_TURN = 50
"""refused objects that are logged in one turn of the event loop"""


@dataclass(slots=True)
class ClusterUpkeep:
    """Puts into force what the cluster says. Made and used on the event loop."""

    source: ClusterSource
    sources: Sources
    condition: Condition
    inbox: Inbox = field(default_factory=Inbox)
    lived: Lived | None = None
    """what the newest batch has led to"""
    client: Client | None = None
    _living: Living | None = None
    _reflectors: list[Reflector] = field(default_factory=list)
    _statuses: Statuses | None = None
    _leading: asyncio.Task[Any] | None = None
    _tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    async def first(self) -> Snapshot:
        """In force once every kind is known as far as it can be. Raises SourcesError for options and a catalog that are wrong, AccessError
        where it is not told how the API server is reached."""
        catalog, chosen = options(_by_themselves(self.sources))
        self.client = await Client.connect(Access(self.source.kubeconfig, self.source.context))
        self._living = Living(catalog, chosen)
        gate = Gate(self.client)
        self._reflectors = [Reflector(self.client, one, self.inbox, gate, _told, float(self.source.watch)) for one in KINDS]
        self.condition.watching = self._watching
        self.condition.replica.metrics.also(WatchCollector(self._watching, self._refused, self._writes))
        self._tasks = [asyncio.create_task(one.run(), name=f"watch {one.kind}") for one in self._reflectors]
        await self._synced()
        await self._take()
        self._lead(self.client, gate)
        self._look_at_registration(self.client)
        assert self.condition.replica.snapshot is not None, "the first batch puts one in force"
        return self.condition.replica.snapshot

    def _lead(self, client: Client, gate: Gate) -> None:
        """Statuses and Events are written by the one replica that holds the Lease; every replica stands for it."""
        namespace, name = self.source.lease
        holder = f"{socket.gethostname()}_{secrets.token_hex(4)}"
        lease = Lease(client, namespace=namespace, name=name, holder=holder, tell=_told, reachable=lambda: gate.open)
        self._statuses, events = writer(client, lease, _told, lambda: gate.open)
        if self.lived is not None:
            self._statuses.take(self.lived.snapshot, self.lived.entries)
        self.condition.leading = lambda: lease.held
        self._tasks += [asyncio.create_task(self._statuses.run(), name="statuses"), asyncio.create_task(events.run(), name="events")]
        self._leading = asyncio.create_task(lease.run(), name="lease")

    def _look_at_registration(self, client: Client) -> None:
        replica, found = self.condition.replica, self.condition.registered
        replica.metrics.also(RegisteredCollector(found))
        upkeep = RegistrationUpkeep(client, lambda: replica.snapshot, found)
        self._tasks.append(asyncio.create_task(upkeep.run(), name="registration"))

    async def follow(self) -> None:
        """For ever."""
        while True:
            await self.inbox.filled.wait()
            await asyncio.sleep(SETTLES)
            try:
                await self._take()
            except Exception as error:  # noqa: BLE001 - one bad batch must not end the following
                logs.write("failed", "error", phase="following", error=logs.trace(error))

    async def close(self) -> None:
        """No task and no connection is left. The Lease is let go last, once nothing is written any more."""
        await _ended(self._tasks)
        if self._leading is not None:
            await _ended([self._leading])
        if self.client is not None:
            await self.client.close()

    async def _synced(self) -> None:
        """Every required kind is listed, and the others too as far as they may be read. What is missing is said now and then."""
        told = time.monotonic()
        while not all(one.synced for one in self._reflectors):
            await asyncio.sleep(SETTLES)
            if time.monotonic() - told > WAITS:
                told = time.monotonic()
                missing = {one.kind: one.error or "not listed yet" for one in self._reflectors if not one.synced}
                logs.write("cluster_waiting", "warning", missing=missing)

    async def _take(self) -> None:
        """What has come since the last time, as one batch."""
        assert self._living is not None
        living, changes = self._living, self.inbox.take()
        if len(changes) > FEW:
            lived = await beside(lambda: _applied(living, changes))
        elif any(kind in TOUCH_ALL for kind, _, _ in changes):
            lived = await beside(lambda: living.apply(changes))
        else:
            lived = living.apply(changes)
        self.lived = lived
        self.condition.entries = lived.entries
        if self._statuses is not None:
            self._statuses.take(lived.snapshot, lived.entries)
        if lived.policies_changed:
            gone = swap(self.condition, lived.snapshot)
            logs.write("policies_loaded", **_told_of(lived))
            await dissolve(gone)
        elif lived.changed:
            swap_facts(self.condition.replica, lived.snapshot)
        await self._tell_refused(lived.refused)

    async def _tell_refused(self, refused: tuple[Entry, ...]) -> None:
        for number, entry in enumerate(refused):
            acting = "its last good form" if entry.stale else "nothing of it"
            logs.write(
                "policy_refused", "error", object=id_of(entry.key), errors=list(entry.understood.errors[:MOST_ERRORS]), inForce=acting
            )
            if number % IN_ONE_TURN == 0:
                await asyncio.sleep(0)

    def _writes(self) -> Writes:
        if self._statuses is None:
            return Writes()
        counts = self._statuses.counts
        return Writes(self.condition.leading(), counts.written, counts.lost, counts.failed)

    def _refused(self) -> tuple[int, int]:
        refused = [entry for entry in self.condition.entries.values() if entry.understood.errors]
        return sum(entry.stale for entry in refused), sum(not entry.stale for entry in refused)

    def _watching(self) -> Iterator[Watching]:
        """Each kind, as ``/readyz`` and the metrics tell it."""
        sizes, now = self.inbox.sizes(), time.monotonic()
        for one in self._reflectors:
            kind = one.kind
            yield Watching(
                kind=kind,
                synced=one.synced,
                healthy=one.healthy,
                error=one.error,
                silent=now - one.heard_at if one.heard_at else None,
                objects=sizes.get(kind, 0),
                counts=asdict(one.counts),
                digest=lambda kind=kind: self.inbox.digest(kind),  # type: ignore[misc]
            )


async def _ended(tasks: list[asyncio.Task[Any]]) -> None:
    """Cancelled, and waited for; again where a library took the first one for its own timeout."""
    for _ in range(ENDINGS):
        pending = [task for task in tasks if not task.done()]
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=ENDING)


def _by_themselves(sources: Sources) -> Sources:
    """Platforms and MIG strategy, unless they are given, as the nodes of the cluster tell."""
    return replace(sources, platforms=sources.platforms or (AUTO,), mig_strategy=sources.mig_strategy or AUTO)


def _applied(living: Living, changes: Mapping[Key, Any]) -> Lived:
    """On a thread: see ``following.pauseless_collection``."""
    with pauseless_collection():
        return living.apply(changes)


def _told(event: str, /, **fields: Any) -> None:
    logs.write(event, "warning" if "error" in fields else "info", **fields)


def _told_of(lived: Lived) -> dict[str, Any]:
    return {
        "policies": len(lived.snapshot.policies),
        "maxMode": lived.snapshot.max_mode,
        "platforms": list(lived.snapshot.tables) if lived.snapshot.placed else [],
        "added": lived.added[:MOST_NAMED],
        "removed": lived.removed[:MOST_NAMED],
        "changed": lived.modified[:MOST_NAMED],
    }
