"""A cluster and its policies as they were read at one moment: immutable, swapped by reference, as snapshots of the server are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from analysis.audit.ledger import Ledger
from analysis.audit.stored_report import StoredReport
from analysis.conditions import ObjectStatus
from analysis.scan.report import ScanReport
from analysis.scan.seen import ScannedCluster
from analysis.world.counts import WorldCounts
from analysis.world.happenings import Happening
from analysis.world.recorded import ByPolicy
from catalog.prices import Prices
from kube.tree import Raw
from policies.state.objects import Change, Key, ObjectEntry
from policies.state.snapshot import Snapshot
from policies.state.updater import Options


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class World:
    """Everything that pages are made of."""

    at: datetime
    """When it was read."""
    snapshot: Snapshot
    options: Options
    """The settings of ``snapshot``, for those that the playground makes."""
    objects: Mapping[Key, Change]
    """Berth's own objects and the facts, by key, trimmed: what ``snapshot`` was made of."""
    entries: Mapping[Key, ObjectEntry]
    """Berth's own objects, with what is wrong with them."""
    seen: ScannedCluster
    """Nodes, pods with devices, and the places where pods could run."""
    ledger: Ledger
    """What policies say of every pod with devices. It is not changed any more."""
    counts: WorldCounts
    report: ScanReport
    """What `berth scan` finds."""
    prices: Prices
    conditions: Mapping[Key, ObjectStatus]
    """Problems of Berth's own objects, as their statuses say; quotas are not looked at."""
    happenings: Sequence[Happening]
    """The newest first."""
    reports: Sequence[StoredReport]
    replayed: ByPolicy | None
    """What policies would have done to recorded creations; None where none were given."""
    installed: bool
    """False if the cluster does not have Berth's kinds: there are no policies then, unless files name some."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Kind -> why it could not be read, in one sentence."""
    dumped: Mapping[Key, Raw] | None = None
    """Every object of the files in place of a cluster, whole; None where a cluster is read."""

    @property
    def policies(self) -> Sequence[str]:
        """The ids of the policies in force, sorted: ``ClusterGPUPolicy/training``."""
        return [compiled.id for compiled in self.snapshot.policies]

    @property
    def modes(self) -> Mapping[str, str]:
        """The mode of each policy in force, as ``--max-mode`` leaves it."""
        return {compiled.id: compiled.mode for compiled in self.snapshot.policies}
