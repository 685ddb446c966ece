"""The audit of a cluster: policies, facts, pods and owners are followed, pods are judged where something changed, and what is
found is written by the holder of the Lease."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from analysis.audit.inventory import Inventory
from analysis.audit.ledger import PodKey
from analysis.audit.stored_pod import Controller, StoredPod, widest
from catalog import Catalog
from catalog.prices import Prices
from cluster.client.api_client import Client
from cluster.reports.causes import Causes
from cluster.reports.policy_counts import PolicyCounts
from cluster.reports.queues import OwnerQueue, PodQueue, WorkloadQueue
from cluster.reports.stored_reports import FORMS, ReportForm, StoredReports
from cluster.reports.writer import ReportWriter
from cluster.watch.connectivity import Connectivity
from cluster.watch.delta_queue import DeltaQueue
from cluster.watch.kinds import DECISIVE, PODS, REPLICA_SETS, Watched
from cluster.watch.reflector import Reflector
from cluster.watch.store import Store
from cluster.watch.trims import PodTrim
from cluster.watch.workload_kinds import workloads
from policies.state.objects import Key, ObjectEntry
from policies.state.updater import Options, Update, Updater
from sources.sources import ClusterSource
from telemetry import log
from telemetry.watch_metrics import Watching, Writes
from webhook import memory
from webhook.audit.custom_kinds import LONGER, CustomKinds
from webhook.reload.batches import AGAIN, Batches, pause
from webhook.reload.changed_files import beside
from webhook.reload.followed_kinds import candidate, count_rejected, ended, knows_all_nodes, synced, watching

SETTLES = 0.1
"""Seconds that a change waits for others: pods are bound and change in bursts."""
MOST_FAILED = 10
"""The most pods whose judging raised an error that are named at a time."""
SLICE = 0.02
"""Seconds for which pods are judged in one turn of the event loop: the Lease is renewed and probes are answered in between."""


class Auditor:
    """Follows, judges and writes. Made and used on the event loop; ``run`` ends by an error alone."""

    def __init__(self, catalog: Catalog, options: Options, prices: Prices, source: ClusterSource, client: Client) -> None:
        self._updater = Updater(catalog, options)
        self.inventory = Inventory(prices)
        self._client = client
        self._changed, self._judged = asyncio.Event(), asyncio.Event()
        self._facts, self._owners = DeltaQueue(), OwnerQueue(self._changed)
        self._pods = PodQueue(self._changed, self._owners)
        self._workloads = WorkloadQueue(self._changed)
        self._facts.filled = self._changed
        self._gate = Connectivity(client)
        self._watch = float(source.watch)
        self._reflectors = [self._following(kind, self._facts) for kind in DECISIVE]
        wide = widest(catalog)
        self._reflectors.append(self._following(replace(PODS, trim=PodTrim(wide, places=False)), self._pods))
        self._reflectors.append(self._following(REPLICA_SETS, self._owners))
        self._reflectors += [self._following(kind, self._workloads) for kind in workloads(catalog, wide)]
        self._custom = CustomKinds(client, self._gate, log.tell, partial(self._following, times=LONGER), catalog, wide, self._workloads)
        stored = [StoredReports(self._judged) for _ in FORMS]
        self._of_reports = [self._following(kind, store) for kind, store in zip(FORMS, stored, strict=True)]
        forms = tuple(ReportForm(*parts) for parts in zip(FORMS, self._of_reports, stored, strict=True))
        self._batches = Batches(self._facts, self._applied)
        self._untold: set[Key] = set()
        """Facts that have changed since the inventory took a snapshot."""
        self._every = False
        self._owned: dict[str, Controller | None] = {}
        self._moved: dict[PodKey, StoredPod | None] = {}
        self.update: Update | None = None
        self.settled_once = False
        self.lease, self._events = candidate(client, source.lease, self._gate)
        common: dict[str, Any] = {"client": client, "left": lambda: self.lease.left, "tell": log.tell, "ready": lambda: self.settled}
        self.counts = PolicyCounts(**common, ledger=self.inventory.ledger, entries=self.entries)
        self.reports = ReportWriter(
            **common,
            ledger=self.inventory.ledger,
            forms=forms,
            changed=self._judged,
            causes=Causes(self._events, self.inventory.ledger),
        )

    def _following(self, kind: Watched, store: Store, times: int = 1) -> Reflector:
        return Reflector(self._client, kind, store, self._gate, log.tell, self._watch * times)

    def entries(self) -> Mapping[Key, ObjectEntry]:
        """Return Berth's own objects as the cluster stores them."""
        return self.update.entries if self.update is not None else {}

    @property
    def settled(self) -> bool:
        """True while all pods are known and judged."""
        return self.settled_once and not self.inventory.due

    async def run(self) -> None:
        """Follow and write, forever. The Lease is released last, once nothing is written any more."""
        tasks = [asyncio.create_task(one.run(), name=f"watch {one.kind}") for one in (*self._reflectors, *self._of_reports)]
        tasks += [asyncio.create_task(one.run()) for one in (self.reports, self.counts, self._events, self._custom)]
        leading = asyncio.create_task(self.lease.run(), name="lease")
        try:
            await synced(self._reflectors)
            await self._custom.asked.wait()
            await self._custom.tried()
            failures = 0
            while True:
                try:
                    await self._take()
                    await self._judge()
                except Exception as error:  # noqa: BLE001 - nothing that happens to a batch must end the following
                    log.write("failed", "error", phase="audit", error=log.trace(error))
                    failures += 1
                    await asyncio.sleep(pause(failures))
                    continue
                failures = 0
                await self._changed.wait()
                await asyncio.sleep(SETTLES)
        finally:
            await ended(tasks)
            await ended([leading])

    async def _take(self) -> None:
        """Take all that has changed. Where this raises, nothing is lost."""
        self._changed.clear()
        if self._facts.waits or self._untold or self.update is None:
            await self._take_facts()
        self.inventory.versions_changed(self._workloads.versions)
        self._owned |= self._owners.take() | self._workloads.take()
        self.inventory.owners_changed(self._owned.items())
        self._owned = {}
        self._moved |= self._pods.take() | self._workloads.take_pods()
        while self._moved:
            key = next(iter(self._moved))
            self.inventory.pod_changed(key, self._moved.pop(key))

    async def _take_facts(self) -> None:
        keys, update = await self._batches.next()
        self._untold |= keys
        self._every |= update.policies_changed or not update.decisions_hold
        self.update = update
        if update.changed or self._every or not self.settled_once:
            self.inventory.snapshot_changed(update.snapshot, self._untold, every=self._every)
        self._untold, self._every = set(), False

    async def _applied(self, changes: Mapping[Key, Any]) -> Update:
        all_nodes = knows_all_nodes(self._reflectors, self._facts)
        return await beside(lambda: self._updater.apply(changes, all_nodes=all_nodes))

    async def _judge(self) -> None:
        """Judge the pods that are due, in slices. One that raises keeps its verdict, is named, and is judged again later."""
        until = time.perf_counter() + SLICE
        while self.inventory.judge(1):
            if time.perf_counter() > until:
                await asyncio.sleep(0)
                until = time.perf_counter() + SLICE
        if failed := self.inventory.take_failed():
            for (namespace, name), error in list(failed.items())[:MOST_FAILED]:
                log.write("pod_failed", "error", pod=f"{namespace}/{name}", error=log.trace(error))
            asyncio.get_running_loop().call_later(AGAIN, self._judge_again, tuple(failed))
        if not self.settled_once:
            self.settled_once = True
            log.write("audited", pods=len(self.inventory.ledger.pods))
            memory.trim()
        self._judged.set()

    def _judge_again(self, keys: Iterable[PodKey]) -> None:
        self.inventory.due_again(keys)
        self._changed.set()

    # --- what the second port shows ---

    def watching(self) -> Iterator[Watching]:
        """Return the state of each kind."""
        reflectors = *self._reflectors, *self._custom.reflectors, *self._of_reports
        return watching(reflectors, self._facts, self._batches.names, {"Pod": self.inventory.pods})

    def count_rejected(self) -> tuple[int, int]:
        """Return how many of Berth's objects are not understood: those of which a last good form acts, the others."""
        return count_rejected(self.entries().values())

    def writes(self) -> Writes:
        """Return what was written to statuses."""
        counts = self.counts.counts
        return Writes(self.lease.held, counts.written, counts.lost, counts.failed)
