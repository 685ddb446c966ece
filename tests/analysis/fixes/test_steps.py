"""Steps put together."""

from __future__ import annotations

from analysis.fixes.edits import changed
from analysis.fixes.steps import Offered, alternatives, edits_of
from kube.pod import TERMS
from kube.scheduling import Blocker
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
