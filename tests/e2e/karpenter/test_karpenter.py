"""What Karpenter buys for a pod and does to it later, with Berth and without: every NodePool begins without a node.

What must be bought is computed from the catalog: the cheapest machine that the policy allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import yaml

from catalog import MachineType
from tests.e2e.karpenter.cases import POLICIES, PRODUCT, SIZES, cheapest
from tests.e2e.karpenter.scenario import Scenario, opened, running
from tests.support.counts import only_in_prove
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons.berth import LIBRARY
from tests.testcluster.addons.karpenter import RESERVED
from tests.testcluster.controlplane.api import Raw

FAMILIES = {gpu.model: gpu.family for gpu in catalog().gpus}
LATE = f'label "{PRODUCT}" does not have known values'
"""What Karpenter says of a label that nodes have only once they run"""
MOVING_SECONDS = 180
"""Until Karpenter has moved a pod to a cheaper node: 45 s on an idle machine (tests/testcluster/karpenter.py)"""
GRACE = 600
"""Seconds of the NodePool's terminationGracePeriod"""
SLACK = 60
"""Seconds that may pass between the beginning of a drain and the pod's deletion"""


@pytest.fixture(scope="module")
def scenario(request: pytest.FixtureRequest) -> Iterator[Scenario]:
    """Where all cases are bought for."""
    with opened(request.session) as there:
        yield there


def inside(spec: Raw) -> Callable[[MachineType], bool]:
    """Whether a machine is inside ``families`` and ``instanceFamilies`` of a policy's require or default."""
    families, out = spec.get("families", {}).get("in"), spec.get("instanceFamilies", {}).get("notIn", ())
    return lambda machine: (families is None or FAMILIES[machine.model] in families) and machine.family not in out


AMPERE = inside(POLICIES["ampere"]["require"])


def test_nothing_is_bought_for_a_pod_that_does_not_tolerate_the_taint(scenario: Scenario) -> None:
    """An untouched pod stays Pending before a tainted NodePool: Karpenter names the taint, and buys for the other pod alone."""
    assert "did not tolerate taint (taint=nvidia.com/gpu=true:NoSchedule)" in scenario.denied("untouched")
    assert len(scenario.claims("tolerated")) == 1


def test_the_same_pod_with_berth_gets_an_allowed_family_and_capacity(scenario: Scenario) -> None:
    """Berth adds the toleration and the policy's terms: the cheapest Ampere machine is bought on spot, where by hand it was a T4."""
    assert scenario.bought("tolerated") == cheapest(1, "spot", AMPERE)
    assert scenario.bought("by-hand") == cheapest(1, "spot") != cheapest(1, "spot", AMPERE)


def test_a_pod_of_another_vendor_tolerates_that_vendors_taint(scenario: Scenario) -> None:
    """An AMD machine behind the taint amd.com/gpu is bought too."""
    assert scenario.bought("amd") == cheapest(1, "spot", resource="amd.com/gpu")


@pytest.mark.parametrize(("case", "capacity"), [("short", "spot"), ("long", "on-demand"), ("unknown", "on-demand")])
def test_the_length_of_a_run_decides_its_capacity(scenario: Scenario, case: str, capacity: str) -> None:
    """45 minutes go to spot, six hours and no word to on-demand."""
    assert scenario.bought(case) == cheapest(1, capacity)


def test_without_berth_a_long_run_lands_on_spot(scenario: Scenario) -> None:
    """Karpenter takes the cheapest offering, and knows nothing of six hours."""
    assert scenario.bought("by-hand").capacity == "spot"


def test_reserved_capacity_is_used_first_where_it_exists(scenario: Scenario) -> None:
    """A long run goes to the reservation that is paid already, and to on-demand in a NodePool without one."""
    assert scenario.bought("reserved") == cheapest(8, "reserved")
    assert scenario.bought("reserved").type == RESERVED
    assert scenario.bought("none-reserved") == cheapest(8, "on-demand")


def test_who_writes_on_demand_by_hand_misses_the_reservation(scenario: Scenario) -> None:
    """Without Berth: the nodeSelector on-demand buys a machine while the reservation waits."""
    assert scenario.bought("reserved-missed") == cheapest(8, "on-demand")


@pytest.mark.parametrize("gpus", SIZES)
def test_an_excluded_instance_family_is_never_bought(scenario: Scenario, gpus: int) -> None:
    """Not even where it is the cheapest, which it is for every count here."""
    allowed = inside(POLICIES["excluding"]["require"])
    assert scenario.bought(f"excluding-{gpus}") == cheapest(gpus, "spot", allowed)
    assert cheapest(gpus, "spot") != cheapest(gpus, "spot", allowed)


def test_a_whole_machine_is_bought_with_its_network(scenario: Scenario) -> None:
    """The pod asks for the four EFA interfaces of a p4d beside its eight GPUs, and such a machine is bought and runs it."""
    assert scenario.bought("whole-machine") == cheapest(8, "spot", lambda machine: machine.family == "p4d")
    (container,) = scenario.pod("whole-machine")["spec"]["containers"]
    efa = {side: container["resources"][side]["vpc.amazonaws.com/efa"] for side in ("limits", "requests")}
    assert efa == {"limits": "4", "requests": "4"}


def test_nothing_is_bought_for_gfd_labels_alone(scenario: Scenario) -> None:
    """The trap: a node that does not run yet has no product label, so a pod that requires one waits for ever."""
    assert LATE in scenario.denied("gfd-alone")
    assert not scenario.claims("gfd-alone")


def test_berth_cannot_mend_gfd_labels_alone_and_says_so(scenario: Scenario) -> None:
    """What the author requires stands, so the pod waits; the warning names the label to use."""
    assert LATE in scenario.denied("gfd-alone-judged")
    assert not scenario.claims("gfd-alone-judged")
    assert any(
        message.startswith("BERTH-206") and "use karpenter.k8s.aws/" in message for message in scenario.replies["gfd-alone-judged"].warnings
    )


@pytest.mark.parametrize("case", ["gfd-or-family", "family-or-gfd"])
def test_berths_terms_beside_an_authors_own_gfd_term(scenario: Scenario, case: str) -> None:
    """Where another term of the author's can be bought for, it is, in either order, inside what the policy requires."""
    g5 = cheapest(1, "spot", lambda machine: machine.family == "g5" and AMPERE(machine))
    assert len(_terms(scenario.pod(case))) == 2
    assert scenario.bought(case) == g5


def test_terms_for_two_platforms_scale_from_zero(scenario: Scenario) -> None:
    """Berth writes a term for Karpenter's nodes and one for bare metal's, on GFD's labels: Karpenter buys for its own."""
    late = [
        any(one["key"] == "nvidia.com/gpu.family" for one in term["matchExpressions"]) for term in _terms(scenario.pod("both-platforms"))
    ]
    assert sorted(late) == [False, True]
    assert scenario.bought("both-platforms") == cheapest(1, "spot", inside(POLICIES["either"]["default"]))


@pytest.mark.parametrize(
    ("case", "policy", "gpus", "capacity"),
    [
        ("train-unknown", "training", 8, "on-demand"),
        ("train-reserved", "training", 8, "reserved"),
        ("train-short", "training", 8, "spot"),
        ("train-4", "training", 4, "spot"),
        ("batch-unknown", "batch-on-spot", 1, "on-demand"),
        ("batch-short", "batch-on-spot", 1, "spot"),
        ("batch-2", "batch-on-spot", 2, "spot"),
    ],
)
def test_what_the_shipped_policies_buy(scenario: Scenario, case: str, policy: str, gpus: int, capacity: str) -> None:
    """A Job under policies/library gets the cheapest machine inside the defaults of the policy that is meant for it."""
    shipped = next(yaml.safe_load_all((LIBRARY / f"{policy}.yaml").read_text()))
    assert scenario.bought(case) == cheapest(gpus, capacity, inside(shipped["spec"]["default"]))


def test_a_training_pod_is_marked_for_karpenter(scenario: Scenario) -> None:
    """Berth's protectFor: Always tells Karpenter not to disrupt the pod, and its unprotected twin has no such mark."""
    assert scenario.before["protected"]["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] == "true"
    assert "karpenter.sh/do-not-disrupt" not in scenario.before["twin"]["metadata"]["annotations"]


@only_in_prove
def test_do_not_disrupt_keeps_a_training_pod_through_consolidation(scenario: Scenario) -> None:
    """Of twins on half-empty machines Karpenter moves the unprotected one to a cheaper one, and keeps the other. `make test` has the mark
    that it obeys, above."""
    machine, smaller = cheapest(3, "on-demand"), cheapest(1, "on-demand")
    scenario.cluster.wait_for(lambda: _moved(scenario, "twin"), "Karpenter to move the unprotected twin", MOVING_SECONDS)
    assert scenario.bought("twin") == smaller
    _wait_for_two_looks(scenario)
    assert not _moved(scenario, "protected")
    assert scenario.bought("protected") == machine
    assert _would_be_moved(scenario.claims("filler-of-protected"))


def _moved(scenario: Scenario, name: str) -> bool:
    """Whether another pod runs in place of the first."""
    pod = scenario.pod(name)
    return running(pod) and pod["metadata"]["uid"] != scenario.before[name]["metadata"]["uid"]


def _wait_for_two_looks(scenario: Scenario) -> None:
    """Karpenter moves one pod after the other: it has looked once more since, from beginning to end, at what else could be moved."""
    name, which = "karpenter_voluntary_disruption_decision_evaluation_duration_seconds_count", {"consolidation_type": "single"}
    enough = scenario.karpenter.metric(name, **which) + 2
    scenario.cluster.wait_for(lambda: scenario.karpenter.metric(name, **which) >= enough, "Karpenter to look twice", MOVING_SECONDS)


def _would_be_moved(claims: list[Raw]) -> bool:
    """Whether the one node's NodePool lets it be consolidated, by Karpenter's own word."""
    (claim,) = claims
    conditions = {one["type"]: one["status"] for one in claim["status"]["conditions"]}
    return conditions.get("Consolidatable") == "True"


def test_a_grace_above_the_nodepools_is_cut(scenario: Scenario) -> None:
    """30 minutes become the ten that the NodePool's terminationGracePeriod leaves; that is the platform team's to read."""
    reply = scenario.replies["grace-cut"]
    assert reply.body["spec"]["terminationGracePeriodSeconds"] == 600
    assert not any("BERTH-211" in message for message in reply.warnings)


@pytest.mark.parametrize(("case", "asked", "short"), [("grace-by-hand", 1800, True), ("grace-cut", 600, False)])
def test_a_drained_node_grants_no_more_than_the_nodepools_grace(scenario: Scenario, case: str, asked: int, *, short: bool) -> None:
    """Without Berth a pod that counts on 30 minutes gets ten; one that Berth cut gets the ten that it was told.

    Karpenter may evict a pod with all of its grace before it sees how long the node has still, and then deletes it again.
    """
    for claim in scenario.claims(case):
        scenario.cluster.api.delete({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", **claim})
    granted = scenario.cluster.wait_for(lambda: _granted(scenario.pod(case)), f"Karpenter to delete the pod of {case}")
    assert scenario.pod(case)["spec"]["terminationGracePeriodSeconds"] == asked
    assert (granted < asked - SLACK) is short


def _granted(pod: Raw) -> int | None:
    """The seconds in which a pod must end; None while they are more than the NodePool's."""
    seconds: int | None = pod["metadata"].get("deletionGracePeriodSeconds")
    return seconds if seconds is not None and seconds <= GRACE else None


def _terms(pod: Raw) -> list[Raw]:
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms: list[Raw] = required["nodeSelectorTerms"]
    return terms
