"""Makes one world after another of what was read: what has not changed since is not compiled, nor judged, again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from analysis.admission_preview import Admission
from analysis.audit.inventory import Inventory
from analysis.audit.ledger import PodKey
from analysis.audit.stored_pod import Controller, StoredPod
from analysis.audit.stored_report import StoredReport
from analysis.conditions import compute_conditions
from analysis.conditions.server_options import as_served
from analysis.scan.objects_read import Cluster
from analysis.scan.report import scan
from analysis.scan.seen import see
from analysis.world.counts import counts
from analysis.world.happenings import Happening
from analysis.world.recorded import ByPolicy, Recorded
from analysis.world.world import World
from catalog import Catalog
from catalog.prices import Prices
from kube.tree import Raw
from policies.state.objects import Change, Key
from policies.state.snapshot import Snapshot
from policies.state.updater import Options, Update, Updater

SLICE = 20
"""Pods that are judged at a time: some ten milliseconds of a cluster with many policies in Audit."""


class WorldBuilder:
    """Makes worlds, one at a time, on any thread. ``recorded``: creations that are judged too; ``pause`` is called between slices of
    work, so that pages are served meanwhile."""

    def __init__(
        self, catalog: Catalog, options: Options, prices: Prices, recorded: Recorded | None = None, pause: Callable[[], None] = lambda: None
    ) -> None:
        self._catalog = catalog
        self._options = options
        self._updater = Updater(catalog, options)
        self._prices = prices
        self._recorded = recorded
        self._pause = pause
        self._known: dict[Key, Change] = {}
        self._pods: dict[PodKey, StoredPod] = {}
        self._nodes: dict[str, Raw] = {}
        self._owners: dict[str, Controller] = {}
        self._inventory = Inventory(prices)
        self._admission: tuple[Snapshot, Admission] | None = None
        self._replayed: tuple[Snapshot, ByPolicy] | None = None

    def build(
        self,
        objects: Mapping[Key, Change],
        cluster: Cluster,
        at: datetime,
        *,
        installed: bool = True,
        unread: Mapping[str, str] = {},
        dumped: Mapping[Key, Raw] | None = None,
        happenings: Sequence[Happening] = (),
        reports: Sequence[StoredReport] = (),
    ) -> World:
        """Return the world of these objects and this cluster. Raises nothing, whatever the objects are."""
        objects, cluster = self._shared(objects, cluster)
        update = self._updated(objects, all_nodes=not {"Node", "NodePool"} & unread.keys())
        snapshot = update.snapshot
        self._pause()
        self._judge(cluster)
        seen = see(cluster, snapshot, self._prices)
        self._pause()
        ledger = self._inventory.ledger.copied()
        return World(
            at=at,
            snapshot=snapshot,
            options=self._updater.options,
            objects=dict(objects),
            entries=update.entries,
            seen=seen,
            ledger=ledger,
            counts=counts(ledger.pods.values(), (compiled.id for compiled in snapshot.policies)),
            report=scan(seen, self._admission_of(snapshot)),
            prices=self._prices,
            conditions=compute_conditions(snapshot, update.entries, {}),
            happenings=happenings,
            reports=reports,
            replayed=self._under(snapshot),
            installed=installed,
            unread=dict(unread),
            dumped=dumped,
        )

    def _shared(self, objects: Mapping[Key, Change], cluster: Cluster) -> tuple[Mapping[Key, Change], Cluster]:
        """Return the same with what is as it was before in the form that is held already: pods and nodes are most of a world, and
        two worlds are held while the next one is made."""
        known, pods = self._known, self._pods
        same: dict[Key, Change] = {key: known[key] if known.get(key) == value else value for key, value in objects.items()}
        nodes = [self._nodes[name] if self._nodes.get(name := one["metadata"]["name"]) == one else one for one in cluster.nodes]
        self._nodes = {one["metadata"]["name"]: one for one in nodes}
        held = [before if (before := pods.get((pod.namespace, pod.name))) is not None and before == pod else pod for pod in cluster.pods]
        return same, replace(cluster, pods=held, nodes=nodes)

    def _updated(self, objects: Mapping[Key, Change], *, all_nodes: bool) -> Update:
        served = as_served(self._options, objects, self._catalog)
        if served != self._updater.options:  # the server's options were changed
            self._updater, self._known = Updater(self._catalog, served), {}
        first = not self._known
        changes: dict[Key, Change] = {key: value for key, value in objects.items() if self._known.get(key) != value}
        changes |= dict.fromkeys(self._known.keys() - objects.keys())
        self._known = dict(objects)
        update = self._updater.apply(changes, all_nodes=all_nodes)
        if update.changed or first:
            every = update.policies_changed or not update.decisions_hold
            self._inventory.snapshot_changed(update.snapshot, changes, every=every)
        return update

    def _judge(self, cluster: Cluster) -> None:
        """Judge the pods that are new, or of which something changed."""
        owners = dict(cluster.owners)
        gone: dict[str, Controller | None] = dict.fromkeys(self._owners.keys() - owners.keys())
        changed = {uid: one for uid, one in owners.items() if self._owners.get(uid) != one}
        self._inventory.owners_changed((gone | changed).items())
        pods = {(pod.namespace, pod.name): pod for pod in cluster.pods}
        for key in self._pods.keys() - pods.keys():
            self._inventory.pod_changed(key, None)
        for key, pod in pods.items():
            self._inventory.pod_changed(key, pod)
        self._owners, self._pods = owners, pods
        while self._inventory.evaluate_due(SLICE):
            self._pause()

    def _admission_of(self, snapshot: Snapshot) -> Admission:
        if self._admission is None or self._admission[0] is not snapshot:
            self._admission = snapshot, Admission(snapshot)
        return self._admission[1]

    def _under(self, snapshot: Snapshot) -> ByPolicy | None:
        if self._recorded is None:
            return None
        if self._replayed is None or self._replayed[0] is not snapshot:
            self._replayed = snapshot, self._recorded.under(snapshot)
        return self._replayed[1]
