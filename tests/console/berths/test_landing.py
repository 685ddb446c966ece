"""Who may land on a group: held against kube-scheduler's rules and the engine for each namespace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis.admission_preview import preview_admission
from analysis.world.world import World
from console.berths.groups import groups
from console.berths.landing import LandingResult, find_landing, of_group
from kube.scheduling import of_node, wants
from kube.tree import apply_patch
from policies.request import Request
from tests.support.console.large import large_objects, large_policies, namespaces
from tests.support.console.worlds import world
from tests.support.recorded import eks, on_premises
from tests.support.recorded.parts import GPU, TAINT, Raw, node, pod

TEAM: Raw = {"key": "team", "value": "vision", "effect": "NoSchedule"}


def _policy(name: str, **spec: Any) -> Raw:
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": {"mode": "Enforce", **spec}}


TOLERATES = _policy("tolerates", default={"acceleratorTaints": "Tolerate"})


def _asked(policies: Sequence[Raw], *taints: Raw, objects: Sequence[Raw] = (), **labels: str) -> LandingResult:
    known = {"node.kubernetes.io/instance-type": "p4d.24xlarge", "karpenter.sh/nodepool": "train", **labels}
    known |= {
        "karpenter.k8s.aws/instance-family": "p4d",
        "karpenter.k8s.aws/instance-gpu-name": "a100",
        "karpenter.sh/capacity-type": "spot",
    }
    found = world([node("n0", known, {GPU: 8}, *taints), *objects], policies)
    group = next(one for one in groups(found) if one.key.name == "train")
    return find_landing(found, "web", of_group(group, GPU, found.seen.fleet))


def test_a_pod_lands_by_itself_where_nothing_keeps_it_off() -> None:
    """Without a taint, or with one that a policy in Enforce has it tolerate; full or cordoned now, it may land all the same."""
    assert _asked([]).outcome == "itself"
    found = _asked([TOLERATES], TAINT)
    assert (found.outcome, found.wrote) == ("itself", ("ClusterGPUPolicy/tolerates",))
    assert _asked([TOLERATES], TAINT, objects=[pod("full", "web", {GPU: 8}, on="n0")]).outcome == "itself"
    cordoned: Raw = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    assert _asked([TOLERATES], TAINT, cordoned).outcome == "itself"


def test_a_policy_in_audit_writes_nothing() -> None:
    """The pod must then write the toleration itself."""
    audit = {**TOLERATES, "spec": {**TOLERATES["spec"], "mode": "Audit"}}
    found = _asked([audit], TAINT)
    assert found.outcome == "asks"
    assert found.spec == {"tolerations": [{"key": GPU, "operator": "Equal", "value": "present", "effect": "NoSchedule"}]}


def test_a_pod_that_must_ask_is_told_what_to_write() -> None:
    """A team's taint is tolerated by whoever writes it, and a default for other machines ends where the pod names this group."""
    assert [one["key"] for one in _asked([TOLERATES], TAINT, TEAM).spec["tolerations"]] == ["team"]
    found = _asked([_policy("small", default={"models": {"in": ["L4"]}})])
    assert found.outcome == "asks"
    assert found.spec == {"nodeSelector": {"karpenter.sh/nodepool": "train"}}


def test_a_denial_has_its_own_words() -> None:
    """Where a policy forbids the toleration, the answer is its violation."""
    forbids = _policy("forbids", require={"tolerations": {"forbid": [{"key": "team", "value": "vision"}]}})
    found = _asked([TOLERATES, forbids], TAINT, TEAM)
    assert found.outcome == "denied"
    assert [(one.code, one.policies) for one in found.violations] == [("BERTH-131", ("ClusterGPUPolicy/forbids",))]


def test_a_required_model_keeps_off_other_groups() -> None:
    """A pod that names the group's machines is denied by the policy, and not told to write something."""
    found = _asked([_policy("l4", require={"models": {"in": ["L4"]}})])
    assert (found.outcome, found.spec) == ("denied", {})
    assert [one.policies for one in found.violations] == [("ClusterGPUPolicy/l4",)]


def _claims_hold(found: World, named: Sequence[str]) -> int:
    """Hold every answer against the engine and the scheduler's rules, with what the answer says to write; return how many were."""
    count = 0
    for group in groups(found):
        for line in group.lines:
            landing = of_group(group, line.resource, found.seen.fleet)
            for namespace in named:
                one = find_landing(found, namespace, landing)
                amounts = {line.resource: "1"}
                container = {"name": "c", "image": "i", "resources": {"limits": amounts, "requests": amounts}}
                made: Raw = {"metadata": {"name": "x", "namespace": namespace}}
                made["spec"] = {"terminationGracePeriodSeconds": 30, "containers": [container], **one.spec}
                judged = preview_admission(Request(namespace=namespace, pod=made), found.snapshot.facts_for(namespace))
                admitted = wants(apply_patch(made, judged.mutate.patch))
                lands = not judged.violations and any(not of_node(admitted, place) for place in landing.fleet.nodes)
                assert lands == (one.outcome in ("itself", "asks")), (group.key, namespace, one)
                assert bool(one.spec) == (one.outcome == "asks")
                count += 1
    return count


def test_what_an_answer_says_is_so() -> None:
    """A pod with what the answer tells to write is admitted and has a node of the group; one of whom it says no has none."""
    for cluster in (eks, on_premises):
        found = world(cluster.objects())
        assert _claims_hold(found, ["web", "research", "physics", "made-up"]) >= 8
    found = world(large_objects(nodes=40, pods=40), large_policies(80))
    assert _claims_hold(found, namespaces()[::6]) >= 80


def test_an_excluded_namespace_has_no_policies() -> None:
    """Berth is not asked about pods of kube-system."""
    found = world([node("n0", {"karpenter.sh/nodepool": "train"}, {GPU: 1}, TAINT)], [TOLERATES])
    one = find_landing(found, "kube-system", of_group(groups(found)[0], GPU, found.seen.fleet))
    assert one.excluded
    assert one.outcome == "asks"
