"""Quotas that hold whole GPUs and not the slices that a policy puts in their place: a pod gets past them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from policies.compiled import Compiled
from policies.findings.reach import Reach
from policies.findings.words import MOST_NAMED, named
from policies.policy import MigDefault
from policies.slices import fits
from policies.snapshot import Snapshot
from policies.wording import cut

Quotas = Mapping[str, Sequence[Mapping[str, str]]]
"""namespace -> ``spec.hard`` of each of its ResourceQuotas"""
WHOLE_GPU = "nvidia.com/gpu"
WHOLE = f"requests.{WHOLE_GPU}"
"""Of extended resources quotas hold ``requests.`` alone (Kubernetes, resource quotas: they can't be overcommitted)."""
MOST_NAMES = 400
"""characters of the names that a quota lacks"""


class Covered:
    """The quotas on whole GPUs, and the names of slices."""

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
        """One, or none where no quota is got past."""
        mig = compiled.policy.default.mig
        if mig is None or not self._limited:
            return ()
        names = self._slices(mig)
        here = self._reach.of[compiled]
        lacking = [(namespace, names - limited) for namespace, bit, limited in self._limited if here & bit and names - limited]
        if not lacking:
            return ()
        places = named((namespace for namespace, _ in lacking[:MOST_NAMED]), len(lacking))
        missing = cut(", ".join(sorted({name for _, some in lacking for name in some})), MOST_NAMES)
        return (f"a slice gets past the ResourceQuota of namespace {places}: it limits {WHOLE} and not {missing}",)

    def _slices(self, mig: MigDefault) -> frozenset[str]:
        found = self._names.get(mig)
        if found is None:
            found = self._names[mig] = frozenset(f"requests.{name}" for name in slice_names(self._snapshot, mig))
        return found


def slice_names(snapshot: Snapshot, mig: MigDefault) -> Iterator[str]:
    """Resource names that ``slices.choose_slice`` may put in place of ``nvidia.com/gpu``."""
    for table in snapshot.tables.values():
        for offer in table.offers:
            gpu = offer.host.gpu
            if gpu is None or offer.sharing != "MIG" or offer.profile is None or offer.resource == WHOLE_GPU:
                continue
            if fits(next(p for p in gpu.mig if p.name == offer.profile), mig):
                yield offer.resource
