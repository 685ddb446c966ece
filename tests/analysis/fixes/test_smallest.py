"""Smallest changes: they mend, no smaller one does, and no policy denies them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from analysis.admission_preview import AdmittedPod
from analysis.fixes.edits import changed
from analysis.fixes.smallest import SearchResult, runs, smallest
from kube.node import Occupant
from policies.fixes import respell_label
from policies.messages import phrase
from policies.placement.fleet import Fleet, best, blockers, fleet_of
from policies.verdict import Remark, Violation
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.support.scheduling import random_places
from tests.support.scheduling.every_change import admitted_as, fits_after
from tests.support.scheduling.node_pools import node_pool, of_families, tables

GPU, GPU_NAME = "nvidia.com/gpu", "karpenter.k8s.aws/instance-gpu-name"
SEARCHED = count(12, 100)


def _fleet(*objects: dict[str, Any], occupants: Any = ()) -> Fleet:
    return fleet_of(objects, catalog=catalog(), tables=tables(), occupants=occupants)


def _node(name: str = "n", taints: Any = (), labels: dict[str, str] | None = None, amounts: dict[str, int] | None = None) -> dict[str, Any]:
    allocatable = {"pods": 10, "cpu": 8, **(amounts or {GPU: 8})}
    metadata = {"name": name, "labels": labels or {}}
    return {"kind": "Node", "metadata": metadata, "spec": {"taints": list(taints)}, "status": {"allocatable": allocatable}}


def _pod(limits: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "resources": {"limits": limits or {GPU: 1}}}], **spec}}


def _mended(found: SearchResult, pod: dict[str, Any]) -> Any:
    assert found.fix is not None
    return changed(pod, found.fix.edits)["spec"]


def _terms(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    written = [{"matchExpressions": term} for term in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": written}}}


def _in(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": [*values]}


def test_one_toleration_for_taints_of_one_key() -> None:
    """As narrow as they allow."""
    one = {"key": "team", "value": "ml", "effect": "NoSchedule"}
    pod = _pod()
    assert _mended(smallest(pod, _fleet(_node(taints=[one])), catalog(), admitted_as), pod)["tolerations"] == [{**one, "operator": "Equal"}]
    both = [one, {**one, "value": "web", "effect": "NoExecute"}, {"key": GPU, "effect": "NoSchedule"}]
    assert _mended(smallest(pod, _fleet(_node(taints=both)), catalog(), admitted_as), pod)["tolerations"] == [
        {"key": "team", "operator": "Exists"},
        {"key": GPU, "operator": "Exists", "effect": "NoSchedule"},
    ]


def test_a_selector_gets_the_value_that_is_there_or_goes() -> None:
    """Another value where the node has the label."""
    pod = _pod(nodeSelector={"zone": "b", "disk": "ssd"})
    assert _mended(smallest(pod, _fleet(_node(labels={"zone": "a"})), catalog(), admitted_as), pod)["nodeSelector"] == {"zone": "a"}


def test_expressions_that_fail_go_and_the_affinity_with_the_last() -> None:
    """A term without conditions would match no node."""
    place = _fleet(_node(labels={"zone": "a"}))
    pod = _pod(affinity=_terms([_in("zone", "a"), _in("disk", "ssd"), _in("rack", "1")]))
    assert _mended(smallest(pod, place, catalog(), admitted_as), pod)["affinity"] == _terms([_in("zone", "a")])
    pod = _pod(affinity=_terms([_in("disk", "ssd"), _in("rack", "1")]))
    assert "affinity" not in _mended(smallest(pod, place, catalog(), admitted_as), pod)
    pod = _pod(affinity=_terms([_in("zone", "b")]) | {"podAffinity": {}})
    assert _mended(smallest(pod, place, catalog(), admitted_as), pod)["affinity"] == _terms([_in("zone", "b", "a")]) | {"podAffinity": {}}


def test_a_resource_gets_the_name_that_is_there() -> None:
    """Of the same vendor, whole devices first; an amount only falls where no name would do."""
    pod = _pod({"nvidia.com/mig-1g.5gb": 1})
    mig = _fleet(_node(amounts={"nvidia.com/mig-1g.10gb": 7, "amd.com/gpu": 8}))
    assert _mended(smallest(pod, mig, catalog(), admitted_as), pod)["containers"][0]["resources"]["limits"] == {"nvidia.com/mig-1g.10gb": 1}
    pod = _pod({GPU: 9, "cpu": "9"})
    resources = _mended(smallest(pod, _fleet(_node()), catalog(), admitted_as), pod)["containers"][0]["resources"]
    assert resources == {"limits": {GPU: "8", "cpu": "9"}, "requests": {GPU: "8", "cpu": "8"}}


def test_several_devices_of_one_container_become_no_slices() -> None:
    """One program uses several GPUs, and one slice; of one GPU a slice may do."""
    mig = _fleet(_node(amounts={"nvidia.com/mig-1g.10gb": 7}))
    assert smallest(_pod({GPU: 4}), mig, catalog(), admitted_as).fix is None
    assert smallest(_pod({GPU: 1}), mig, catalog(), admitted_as).fix is not None


def test_what_is_not_free_may_be_asked_for_less() -> None:
    """A pod that waits for others to end runs now with what is left; with nothing left there is no change."""
    pod = _pod({GPU: 8})
    half = smallest(pod, _fleet(_node(), occupants=[Occupant("n", {GPU: 4})]), catalog(), admitted_as)
    assert _mended(half, pod)["containers"][0]["resources"]["limits"] == {GPU: "4"}
    assert smallest(pod, _fleet(_node(), occupants=[Occupant("n", {GPU: 8})]), catalog(), admitted_as).fix is None


def test_states_of_nodes_are_not_tolerated() -> None:
    """Neither a cordoned node nor one that is not ready is a place."""
    taints = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    assert smallest(_pod(), _fleet(_node(taints=taints)), catalog(), admitted_as).fix is None
    cordoned = {**_node(), "spec": {"unschedulable": True}}
    assert smallest(_pod(), _fleet(cordoned), catalog(), admitted_as).fix is None


def test_a_pod_with_a_place_needs_nothing() -> None:
    """A change of no step."""
    found = smallest(_pod(), _fleet(_node()), catalog(), admitted_as)
    assert found.fix is not None
    assert found.fix.steps == ()
    assert len(runs(_pod(), _fleet(_node("a"), _node("b")))) == 2


def test_a_node_pool_is_a_place_too() -> None:
    """What it would then make."""
    place = _fleet(node_pool("gpu", requirements=[of_families("p4d")], taints=[{"key": GPU, "effect": "NoSchedule"}]))
    pod = _pod({"nvidia.com/mig-1g.5gb": 1}, nodeSelector={"karpenter.k8s.aws/instance-family": "p5"})
    fixed = _mended(smallest(pod, place, catalog(), admitted_as), pod)
    assert fixed["nodeSelector"] == {"karpenter.k8s.aws/instance-family": "p4d"}
    assert fixed["containers"][0]["resources"]["limits"] == {GPU: 1}
    assert fixed["tolerations"][0]["key"] == GPU


def test_what_a_policy_denies_is_not_proposed() -> None:
    """The next larger change is, and the denial is there to be told."""
    denial = Violation(code="BERTH-131", found=phrase("fact"), advice=phrase("fix"), rule="tolerations")

    def admit(pod: Mapping[str, Any]) -> AdmittedPod:
        return admitted_as(pod, (denial,) if any(one.get("key") == "team" for one in pod["spec"].get("tolerations", ())) else ())

    taint = {"key": "team", "value": "ml", "effect": "NoSchedule"}
    pod = _pod(nodeSelector={"zone": "b", "disk": "ssd"})
    place = _fleet(_node("a", [taint], {"zone": "b", "disk": "ssd"}), _node("b", [], {"zone": "a"}))
    found = smallest(pod, place, catalog(), admit)
    assert _mended(found, pod)["nodeSelector"] == {"zone": "a"}
    assert found.forbidden == (denial,)
    assert smallest(_pod(tolerations=[{"key": "team"}]), place, catalog(), admit).fix is None


def test_what_a_policy_writes_is_not_the_authors_to_mend() -> None:
    """A selector that comes in at admission is in no word of the pod."""

    def admit(pod: Mapping[str, Any]) -> AdmittedPod:
        return admitted_as({"spec": {**pod["spec"], "nodeSelector": {"pool": "none"}}})

    assert smallest(_pod(), _fleet(_node()), catalog(), admit).fix is None


@pytest.mark.parametrize("seed", range(SEARCHED))
def test_no_smaller_change_is_found_by_searching_all(seed: int) -> None:
    """Of pods that fit nowhere: the change mends, and no change of fewer steps does; where none was found there is none of two."""
    random = Random(seed)
    names = [f"n{i}" for i in range(4)]
    fleet = _fleet(*(random_places.node(random, name) for name in names), occupants=[Occupant(name, {GPU: 1}) for name in names])
    pod = next(one for one in iter(lambda: random_places.pod(random, "p", names), None) if best(one, fleet) != "now")
    found = smallest(pod, fleet, catalog(), admitted_as).fix
    if found is not None:
        assert found.place is not None
        assert not blockers(changed(pod, found.edits), found.place, fleet)
    fewer = 2 if found is None else len(found.steps) - 1
    for steps in range(1, min(fewer, 2) + 1):
        assert (smaller := fits_after(pod, fleet, steps)) is None, f"{found} for {pod}, but {smaller}"


def _misspelt(pod: Mapping[str, Any]) -> AdmittedPod:
    """The pod as it is admitted, with the remark on the values that its selector misspells."""
    written = pod["spec"].get("nodeSelector", {}).get(GPU_NAME)
    fixes = respell_label(GPU_NAME, "h100-sxm", "h100") if written == "h100-sxm" else ()
    remark = Remark(code="BERTH-201", found=phrase("new", where="spec.nodeSelector", key=GPU_NAME, value="h100-sxm"), fixes=fixes)
    return replace(admitted_as(pod), remarks=(remark,))


def test_a_misspelt_value_is_spelt_right_before_any_other_is_taken() -> None:
    """A node that happens to have another GPU is not what the author meant; where it is unknown what a NodePool makes, neither is that."""
    pod = _pod(nodeSelector={GPU_NAME: "h100-sxm"})
    other = _node("t4", labels={GPU_NAME: "t4"})
    for group, then in (("karpenter.k8s.aws", None), ("example.com", "unknown")):
        result = smallest(pod, _fleet(other, node_pool("gpu", group=group)), catalog(), _misspelt)
        assert (_mended(result, pod)["nodeSelector"], result.then) == ({GPU_NAME: "h100"}, then)
    alone = smallest(pod, _fleet(other), catalog(), _misspelt)
    assert _mended(alone, pod)["nodeSelector"] == {GPU_NAME: "t4"}, "nothing else is there"
