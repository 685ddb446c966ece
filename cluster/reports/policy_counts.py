"""The counts in the statuses of policies: to how many pods each applies, and what it says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from analysis.audit.ledger import Ledger, PolicyTotals
from cluster.reconciler import Correction, Reconciler
from cluster.status.patch import stored_version
from cluster.watch.kinds import status_path
from policies.objects.crd import AUDIT
from policies.state.objects import Key, ObjectEntry, id_of


@dataclass(kw_only=True)
class PolicyCounts(Reconciler[Key]):
    """Writes ``status.audit`` of policies wherever it differs."""

    task: ClassVar[str] = "counts"

    ledger: Ledger
    entries: Callable[[], Mapping[Key, ObjectEntry]]
    """Returns Berth's objects as they are stored."""
    rate: float = 200.0
    rest: float = 10.0
    """Seconds between two writes of the counts of one policy: pods come and go all the time."""
    _totals: Mapping[str, PolicyTotals] = field(default_factory=dict)

    async def collect(self) -> bool:
        """Count, and add all policies."""
        self._totals, entries = self.ledger.totals(), self.entries()
        for key in self._attempts.keys() - entries.keys():
            self.drop(key)
        self.add(key for key in entries if key[0] != "GPUNodeTemplate")
        return True

    def correction(self, key: Key) -> Correction | None:
        """Return the patch of the counts, of this policy and of no later one with its name."""
        entry, wanted = self.entries().get(key), self._totals.get(id_of(key), PolicyTotals())
        if entry is None or entry.status.get(AUDIT) == wanted.status():
            return None
        return Correction(
            subject=id_of(key),
            desired=(entry.uid, wanted),
            stored=entry.resource_version,
            answered=stored_version,
            path=status_path(key),
            body={"metadata": {"uid": entry.uid}, "status": {AUDIT: wanted.status()}},
        )
