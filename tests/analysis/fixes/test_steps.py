"""Steps put together."""

from __future__ import annotations

from typing import Any

from analysis.fixes.edits import changed
from analysis.fixes.steps import Offered, alternatives, edits_of, steps_of
from kube.pod import TERMS
from kube.scheduling import Blocker
from policies.fixes import Fix
from tests.support.generators.random_worlds import catalog

NOTHING = Offered(labels={}, amounts={})


def test_a_port_of_the_host_goes() -> None:
    """With its address; a pod on the host's network has all of its ports there."""
    ports = [{"containerPort": 80, "hostPort": 80, "hostIP": "127.0.0.1"}, {"containerPort": 81, "hostPort": 81}]
    pod = {"spec": {"containers": [{"ports": ports}]}}
    found = alternatives([Blocker("ports", "80/TCP")] * 2, pod, NOTHING, catalog())
    assert found is not None
    after = changed(pod, edits_of([step for ways in found for step in ways[0]], pod))
    assert after["spec"]["containers"][0]["ports"] == [{"containerPort": 80}, ports[1]]
    assert alternatives([Blocker("ports", "80/TCP")], {"spec": {**pod["spec"], "hostNetwork": True}}, NOTHING, catalog()) is None


def test_what_no_step_mends() -> None:
    """A pool that makes nothing, a cordoned node, a label that is no word of the author's."""
    for blocker in (Blocker("static"), Blocker("unschedulable"), Blocker("label", "zone", path=("spec", "nodeSelector", "zone"))):
        assert alternatives([blocker], {"spec": {}}, NOTHING, catalog()) is None


def test_expressions_go_from_the_last_on() -> None:
    """So that each stands where it stood."""
    term = {"matchExpressions": [{"key": key, "operator": "Exists"} for key in "abcdefghijkl"]}
    required = {"nodeSelectorTerms": [term]}
    pod = {"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}}
    paths = [(*TERMS, 0, "matchExpressions", i) for i in (1, 2, 10, 11)]
    found = alternatives([Blocker("label", "abcdefghijkl"[int(path[-1])], "Exists", path=path) for path in paths], pod, NOTHING, catalog())
    assert found is not None
    after = changed(pod, edits_of([step for ways in found for step in ways[0]], pod))
    left = after["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]
    assert "".join(one["key"] for one in left["matchExpressions"]) == "adefghij"


def _selecting(*operators: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "zone", "operator": operator, "values": ["a"]}]} for operator in operators]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"spec": {"nodeSelector": {"zone": "a"}, "affinity": {"nodeAffinity": required}}}


def test_a_label_is_chosen_wherever_the_pod_selects_by_it() -> None:
    """If each expression lists values; any is left out."""
    (step,) = steps_of(Fix("relabel", name="zone", value="b"), _selecting("In"))
    assert [(edit.path[-1], edit.value) for edit in step.edits] == [("zone", "b"), ("values", ["b"])]
    assert steps_of(Fix("relabel", name="zone", value="b"), _selecting("In", "NotIn")) == ()
    pod = _selecting("In", "NotIn")
    steps = steps_of(Fix("unlabel", name="zone"), pod)
    assert len(steps) == 3
    assert changed(pod, edits_of(steps, pod)) == {"spec": {"nodeSelector": {}}}


def test_a_fix_of_what_the_author_did_not_write_changes_nothing() -> None:
    """What only policies wrote can't be left out, nor a resource renamed that is not requested."""
    pod = {"spec": {"terminationGracePeriodSeconds": 30, "containers": [{"name": "c"}]}}
    fixes = (
        Fix("unwrite", (("spec", "tolerations", 0),)),
        Fix("write", (("spec", "terminationGracePeriodSeconds"),), value=30),
        Fix("rename", name="nvdia.com/gpu", value="nvidia.com/gpu"),
        Fix("lower", name="nvidia.com/gpu", value=1),
        Fix("unlabel", name="zone"),
    )
    assert [steps_of(fix, pod) for fix in fixes] == [()] * len(fixes)
