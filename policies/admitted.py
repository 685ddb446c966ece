"""What an admitted pod will hold: its devices by model, and what they cost an hour. Nothing is decided by it: it is counted
(``telemetry.admitted_devices``)."""

from __future__ import annotations

from fractions import Fraction

from policies.offers.device_costs import ANY
from policies.planning.devices import RequestedDevice, share
from policies.planning.plan import ReviewedPod
from policies.state.snapshot import Snapshot
from policies.verdict import Holding

_MOST_DEVICES = 10**6
"""Of one pod: more than are in any machine. A quantity of Kubernetes may be 1e400, and one such pod must not spoil a counter for good."""


def holding(subject: ReviewedPod, snapshot: Snapshot) -> Holding:
    """Return what a pod will hold, with its node affinity written. A model is one of the catalog where the placement leaves only that,
    else the family, else ``ANY``; a slice counts as the part of a device that it is at least."""
    names, devices, usd = list(subject.space.wanted), dict[str, float](), 0.0
    for one in subject.devices.asked:
        number, model, each = _devices(one, snapshot), ANY, None
        if one.resource.name in names:
            at = names.index(one.resource.name)
            model, each = snapshot.costs.of((cell.table, cell.offered[at]) for cell in subject.space.cells if cell.possible)
        devices[model] = devices.get(model, 0.0) + number
        usd += number * (each or 0.0)
    for claim in subject.devices.claimed:
        devices[ANY] = devices.get(ANY, 0.0) + float(min(claim.count.least, _MOST_DEVICES))
    return Holding(tuple([(model, devices[model]) for model in sorted(devices) if devices[model]]), usd)


def _devices(asked: RequestedDevice, snapshot: Snapshot) -> float:
    least = min(asked.count.least, _MOST_DEVICES)
    if asked.resource.parts is None and asked.resource.kind != "mig":
        return float(least)
    return float(Fraction(least) * share(asked.resource, snapshot.catalog)[0])
