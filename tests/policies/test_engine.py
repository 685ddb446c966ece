"""What an admitted pod holds: models, devices and prices, on the pod as the last word has it."""

from __future__ import annotations

from typing import Any

import pytest

from policies.engine import evaluate
from policies.offers.device_costs import ANY, DeviceCosts
from policies.request import Request
from policies.state.snapshot import Snapshot
from policies.verdict import NOTHING, Holding
from tests.policies.rules.test_no_place import asking, snapshot
from tests.support.call_counts import work

GPU_NAME, TYPE = "karpenter.k8s.aws/instance-gpu-name", "node.kubernetes.io/instance-type"
SEEN = snapshot([], platforms=("karpenter-aws",))


def held(pod: dict[str, Any], seen: Snapshot = SEEN, **request: Any) -> Holding:
    return evaluate(Request(namespace="ml", pod=pod, **{"phase": "validate", **request}), seen.facts_for("ml")).holding


def usd(machine: str) -> float:
    """Of one device."""
    found = SEEN.costs.prices.of_machine(machine, "")
    assert found is not None
    return found


def test_the_model_is_known_where_one_is_left() -> None:
    """Its price is that of the cheapest machine."""
    assert held(asking(2, nodeSelector={GPU_NAME: "t4"})) == Holding((("T4", 2.0),), 2 * usd("g4dn.xlarge"))


def test_of_several_models_the_family_is_told() -> None:
    """A100-40GB and A100-80GB are on machines of different prices."""
    terms = [{"matchExpressions": [{"key": TYPE, "operator": "In", "values": ["p4d.24xlarge", "p4de.24xlarge"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    assert held(asking(8, affinity=affinity)) == Holding((("ampere", 8.0),), 8 * min(usd("p4d.24xlarge"), usd("p4de.24xlarge")))


def test_terms_count_together_and_their_offers_once() -> None:
    """Two machines in two terms are as two in one; a hundred terms that leave every machine cost hardly more than three."""

    def among(*terms: list[str]) -> dict[str, Any]:
        selected = [{"matchExpressions": [{"key": TYPE, "operator": "In", "values": values}]} for values in terms]
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": selected}}}

    one, two = among(["p4d.24xlarge", "p4de.24xlarge"]), among(["p4d.24xlarge"], ["p4de.24xlarge"])
    assert held(asking(8, affinity=two)) == held(asking(8, affinity=one))
    table = SEEN.tables["karpenter-aws"]

    def calls(number: int) -> int:
        return work(lambda: DeviceCosts(SEEN.costs.prices).of([(table, table.all)] * number))

    assert calls(100) < calls(3) * 1.5


def test_of_several_families_none_is_told() -> None:
    """The price is the least that it can be."""
    model, price = held(asking(1))
    assert (model, 0 < price < 1) == (((ANY, 1.0),), True)


def test_a_slice_counts_as_its_part() -> None:
    """Where slices are resources of their own. Of machines on premises no price is known, but of their models."""
    [(model, devices)], price = held(asking(7, "nvidia.com/mig-1g.10gb"), snapshot([], platforms=("gfd",), mig_strategy="mixed"))
    assert (model, 0 < devices <= 1, price > 0) == (ANY, True, True)


def test_what_no_offer_can_hold_has_no_model_and_no_price() -> None:
    """Devices of two makers in one pod: it may be a machine that nobody knows yet."""
    pod = asking(1, nodeSelector={TYPE: "p5.48xlarge"})
    pod["spec"]["containers"].append({"name": "d", "resources": {"limits": {"habana.ai/gaudi": "2"}}})
    assert held(pod) == Holding(((ANY, 3.0),), 0.0)


@pytest.mark.parametrize("amount", ["1e400", "9223372036854775807", "-5", "1.5", "x", "0"])
def test_an_amount_that_is_none_spoils_no_counter(amount: str) -> None:
    """What the API server would deny is bounded."""
    devices, price = held(asking(amount))
    assert sum(number for _, number in devices) <= 10**6
    assert 0 <= price < 10**8


@pytest.mark.parametrize("request_", [{"phase": "mutate"}, {"operation": "UPDATE", "old_pod": asking(1)}])
def test_only_the_last_word_counts(request_: dict[str, Any]) -> None:
    """Not /mutate, which may be called twice, and no update."""
    assert held(asking(1), **request_) == NOTHING


def test_sets_of_offers_are_remembered() -> None:
    """Until the tables change: the next snapshot of the same tables has the same memory."""
    pod = asking(1, nodeSelector={GPU_NAME: "t4"})
    held(pod)
    seen = SEEN.with_policies([])
    assert seen.costs is SEEN.costs
    assert held(pod, seen) == held(pod)
