"""The devices that a pod asks for, and what they cost an hour where the pod may go at the least."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from catalog.prices import Prices
from kube.pod import Pod
from policies.offers.device_costs import DeviceCosts
from policies.planning.plan import review_pod
from policies.pods.projection import extract
from policies.request import Request
from policies.state.snapshot import NamespaceFacts

_MOST_DEVICES = 10**9
"""More than there are in the world; a quantity of Kubernetes may be 1e400, which is no number of the machine."""


class Stake(NamedTuple):
    """Of one pod."""

    gpus: int
    """The devices that it holds at least; a slice counts as one."""
    usd: float | None
    """USD an hour on the cheapest machines that it may run on; None where no price is known."""
    devices: float = 0.0
    """Whole devices that it takes at least: a slice counts as its part."""

    def on(self, each: float | None) -> Stake:
        """Return the stake of a pod that runs, on a node where a device costs so much; None: that is not known."""
        return self._replace(usd=None if each is None else each * self.devices)


NOTHING = Stake(0, None)


class Stakes:
    """The stakes of pods under one snapshot."""

    def __init__(self, prices: Prices) -> None:
        self._costs = DeviceCosts(prices)

    def of(self, request: Request, facts: NamespaceFacts) -> Stake:
        """Return the stake of a pod as it is admitted, with its node affinity written. Raises PodError."""
        reviewed = review_pod(request, facts, Pod(extract(request.pod, facts.reads)))
        cells = (cell for cell in reviewed.space.cells if cell.possible)
        usd = self._costs.of((cell.table, rows) for cell in cells for rows in cell.offered).usd
        devices = float(min(reviewed.devices.at_least(facts.snapshot.catalog), Fraction(_MOST_DEVICES)))
        return Stake(min(reviewed.devices.units.least, _MOST_DEVICES), None if usd is None else usd * devices, devices)
