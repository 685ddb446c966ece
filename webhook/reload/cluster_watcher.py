"""Policies and facts of a cluster, followed by watches: a change is in force a moment later, and nothing is
in force before everything is listed.

One task per kind follows the API server (``cluster.watch.reflector``) and fills the delta queue; one takes
the queued changes, makes the next snapshot (``policies.state.updater``) and swaps it. Whatever happens to the
API server, the last snapshot goes on deciding.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cluster.client.api_client import Access, Client
from cluster.status.writer import StatusWriter
from cluster.watch.connectivity import Connectivity
from cluster.watch.delta_queue import DeltaQueue
from cluster.watch.kinds import KINDS
from cluster.watch.reflector import Reflector
from policies.facts.offered_devices import STACKS
from policies.state.objects import Key, ObjectEntry, id_of
from policies.state.snapshot import Snapshot
from policies.state.updater import Update, Updater
from sources.sources import ClusterSource, Sources, of_a_cluster, options
from telemetry import log
from telemetry.device_modes import collect_device_modes
from telemetry.watch_metrics import Watching, Writes, collect_watches
from webhook.reload.activation import activate
from webhook.reload.batches import Batches, merge_updates, pause
from webhook.reload.changed_files import beside, pauseless_collection
from webhook.reload.followed_kinds import candidate, count_rejected, ended, known_queues, knows_all_nodes, synced, watching
from webhook.reload.registration_check import RegistrationCheck
from webhook.reload.reload_results import ReloadResults

SETTLES = 0.01
"""Seconds that a change waits for others: `kubectl apply` of a folder arrives as one within a few ms, and
each swap costs a millisecond or two."""
FEW = 16
"""The most changes that are applied on the event loop: 0.2 ms each. More go to a thread, and calls go on."""
TOUCH_ALL = frozenset({"ClusterGPUPolicy", "GPUNodeTemplate", "Node", "NodePool", "ResourceSlice", *STACKS})
"""Kinds of which one object may change what all policies are compiled against (platforms, slices, instance
families, labels that are maintained), or is held against all nodes.

That takes a second for a thousand policies, so it never happens on the event loop. Kinds that teams write are
not among them.
"""
MOST_ERRORS = 16
"""The most errors of one object that are logged; its status has more."""
IN_ONE_TURN = 50
"""Rejected objects that are logged in one turn of the event loop."""


@dataclass(slots=True)
class ClusterWatcher:
    """Activates the policies and facts of the cluster. Made and used on the event loop."""

    source: ClusterSource
    sources: Sources
    results: ReloadResults
    inbox: DeltaQueue = field(default_factory=DeltaQueue)
    update: Update | None = None
    """The result of the newest batch."""
    client: Client | None = None
    _updater: Updater | None = None
    _batches: Batches = field(init=False)
    _waiting: Update | None = None
    """What was applied and is not activated yet."""
    _reflectors: list[Reflector] = field(default_factory=list)
    _failures: int = 0
    _statuses: StatusWriter | None = None
    _leading: asyncio.Task[Any] | None = None
    _writing: list[asyncio.Task[Any]] = field(default_factory=list)
    _is_stopping: bool = False
    _tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._batches = Batches(self.inbox, self._applied)

    async def first(self) -> Snapshot:
        """Activate and return the first snapshot, once every kind is known as far as it can be.

        Raises SourcesError for wrong options and a wrong catalog, AccessError where it is not given how to
        reach the API server.
        """
        catalog, chosen = await beside(lambda: options(of_a_cluster(self.sources)))
        self.client = await Client.connect(Access(self.source.kubeconfig, self.source.context))
        self._updater = Updater(catalog, chosen)
        gate = Connectivity(self.client)
        self._reflectors = [Reflector(self.client, one, self.inbox, gate, log.tell, float(self.source.watch)) for one in KINDS]
        self.results.watching = self._watching
        admission = self.results.admission
        admission.metrics.also(lambda: collect_watches(self._watching(), self._count_rejected(), self._writes()))
        admission.metrics.also(lambda: collect_device_modes(admission.snapshot))
        self._tasks = [asyncio.create_task(one.run(), name=f"watch {one.kind}") for one in self._reflectors]
        await synced(self._reflectors)
        while self.results.admission.snapshot is None:
            await self._take_or_log()
        if not self._is_stopping:
            self._lead(self.client, gate)
        self._look_at_registration(self.client)
        return self.results.admission.snapshot

    def _lead(self, client: Client, gate: Connectivity) -> None:
        """Start the writers and the leader election.

        Statuses and Events are written by the one replica that holds the Lease; every replica is a candidate.
        """
        lease, events = candidate(client, self.source.lease, gate)
        self._statuses = StatusWriter(client=client, left=lambda: lease.left, tell=log.tell, events=events)
        if self.update is not None:
            self._statuses.take(self.update)
        self.results.leading = lambda: lease.held
        self._writing = [asyncio.create_task(self._statuses.run(), name="statuses"), asyncio.create_task(events.run(), name="events")]
        self._leading = asyncio.create_task(lease.run(), name="lease")

    def _look_at_registration(self, client: Client) -> None:
        admission, found = self.results.admission, self.results.registered
        admission.metrics.also(found.collect_metrics)
        upkeep = RegistrationCheck(client, lambda: admission.snapshot, found)
        self._tasks.append(asyncio.create_task(upkeep.run(), name="registration"))

    async def follow(self) -> None:
        """Apply changes, for ever."""
        while True:
            await self.inbox.filled.wait()
            await asyncio.sleep(SETTLES)
            await self._take_or_log()

    async def _take_or_log(self) -> None:
        """Take the changes; where that fails, log why, and let the next turn take them again."""
        try:
            await self._take()
        except Exception as error:  # noqa: BLE001 - nothing that happens to a batch must end the following
            log.write("failed", "error", phase="following", error=log.trace(error))
            self._failures += 1
            await asyncio.sleep(pause(self._failures))
            self.inbox.filled.set()
        else:
            self._failures = 0

    async def stop_writing(self) -> None:
        """End the writers, and then release the Lease."""
        self._is_stopping = True
        await ended(self._writing)
        if self._leading is not None:
            await ended([self._leading])

    async def close(self) -> None:
        """End all tasks and connections."""
        await ended(self._tasks)
        await self.stop_writing()
        if self.client is not None:
            await self.client.close()

    async def _take(self) -> None:
        """Apply the changes since the last time, and activate what comes of them. Where this raises, nothing is lost."""
        update = (await self._batches.next()).update
        self._waiting = update = update if self._waiting is None else merge_updates([self._waiting, update])
        self.update = update
        if self._statuses is not None:
            self._statuses.take(update)
        await activate(self.results, update)
        self._waiting = None
        await self._tell_rejected(update.denied)

    async def _applied(self, taken: Mapping[Key, Any]) -> Update:
        assert self._updater is not None, "see first"
        updater, changes = self._updater, {**taken, **known_queues(self._reflectors, self.inbox)}
        all_nodes = knows_all_nodes(self._reflectors, self.inbox)
        if len(taken) > FEW:
            return await beside(lambda: _applied(updater, changes, all_nodes=all_nodes))
        if any(kind in TOUCH_ALL for kind, _, _ in taken):
            return await beside(lambda: updater.apply(changes, all_nodes=all_nodes))
        return updater.apply(changes, all_nodes=all_nodes)

    async def _tell_rejected(self, rejected: tuple[ObjectEntry, ...]) -> None:
        for number, entry in enumerate(rejected):
            acting = "its last valid version" if entry.stale else "nothing"
            log.write(
                "policy_rejected", "error", object=id_of(entry.key), errors=list(entry.understood.errors[:MOST_ERRORS]), inForce=acting
            )
            if number % IN_ONE_TURN == 0:
                await asyncio.sleep(0)

    def _writes(self) -> Writes:
        if self._statuses is None:
            return Writes()
        counts = self._statuses.counts
        return Writes(self.results.leading(), counts.written, counts.lost, counts.failed)

    def _count_rejected(self) -> tuple[int, int]:
        return count_rejected(self.results.entries.values())

    def _watching(self) -> Iterator[Watching]:
        return watching(self._reflectors, self.inbox, self._batches.names)


def _applied(updater: Updater, changes: Mapping[Key, Any], *, all_nodes: bool) -> Update:
    """Apply changes on a thread: see ``changed_files.pauseless_collection``."""
    with pauseless_collection():
        return updater.apply(changes, all_nodes=all_nodes)
