"""Find quotas that limit whole GPUs but not the slices that a policy puts in their place, so that a pod
gets past them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analysis.conditions.reach import Reach
from analysis.conditions.words import MOST_NAMED, list_names
from policies.messages import cut_text
from policies.offers.constraints import Compiled
from policies.planning.mig_slice import fits
from policies.policy import MigDefault
from policies.state.snapshot import Snapshot

Quotas = Mapping[str, Sequence[Mapping[str, str]]]
"""Namespace -> ``spec.hard`` of each of its ResourceQuotas."""
WHOLE_GPU = "nvidia.com/gpu"
WHOLE = f"requests.{WHOLE_GPU}"
"""Quotas on extended resources limit ``requests.`` alone (Kubernetes, resource quotas: they can't be
overcommitted)."""
MOST_NAMES = 400
"""Characters of the list of names that a quota lacks."""


class CoveredQuotas:
    """The quotas that limit whole GPUs, and the names of the slices that may replace them."""

    def __init__(self, snapshot: Snapshot, reach: Reach, quotas: Quotas) -> None:
        self._snapshot = snapshot
        self._reach = reach
        self._limited = [
            (namespace, reach.namespaces.bit.get(namespace, 0), frozenset(name for hard in hards for name in hard))
            for namespace, hards in sorted(quotas.items())
            if any(WHOLE in hard for hard in hards)
        ]
        self._names: dict[MigDefault, frozenset[str]] = {}

    def sentences(self, compiled: Compiled) -> tuple[str, ...]:
        """Return one sentence, or none if the policy's slices get past no quota."""
        mig = compiled.policy.default.mig
        if mig is None or not self._limited:
            return ()
        names = self._slices(mig)
        here = self._reach.of[compiled]
        lacking = [(namespace, names - limited) for namespace, bit, limited in self._limited if here & bit and names - limited]
        if not lacking:
            return ()
        places = list_names((namespace for namespace, _ in lacking[:MOST_NAMED]), len(lacking))
        missing = cut_text(", ".join(sorted({name for _, some in lacking for name in some})), MOST_NAMES)
        return (f"MIG slices bypass the ResourceQuota of namespace {places}: it limits {WHOLE} but not {missing}",)

    def _slices(self, mig: MigDefault) -> frozenset[str]:
        found = self._names.get(mig)
        if found is None:
            found = self._names[mig] = frozenset(f"requests.{name}" for name in slice_names(self._snapshot, mig))
        return found


def slice_names(snapshot: Snapshot, mig: MigDefault) -> Iterator[str]:
    """Yield the resource names that ``policies.planning.mig_slice`` may put in place of
    ``nvidia.com/gpu``."""
    for table in snapshot.tables.values():
        for offer in table.offers:
            gpu = offer.host.gpu
            if gpu is None or offer.sharing != "MIG" or offer.profile is None or offer.resource == WHOLE_GPU:
                continue
            if fits(next(p for p in gpu.mig if p.name == offer.profile), mig):
                yield offer.resource
