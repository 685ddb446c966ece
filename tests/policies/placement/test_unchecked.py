"""What was not checked, as data and in words."""

from __future__ import annotations

from typing import Any, get_args

from kube.scheduling import wants
from policies.placement import unchecked
from policies.placement.fleet import fleet_of
from tests.support.generators.random_worlds import catalog

NODE = {"kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "4", "pods": 10}}}


def test_everything_that_may_be_unchecked_has_words() -> None:
    """Also each field of a pod that other filters of kube-scheduler read."""
    spec: dict[str, Any] = {
        "affinity": {name: {"requiredDuringSchedulingIgnoredDuringExecution": [{}]} for name in ("podAffinity", "podAntiAffinity")},
        "topologySpreadConstraints": [{"maxSkew": 1}],
        "volumes": [{"persistentVolumeClaim": {}}],
        "resourceClaims": [{}],
        "schedulingGates": [{}],
    }
    assert set(get_args(unchecked.Unchecked)) == unchecked.WORDS.keys()
    assert set(wants({"spec": spec}).unjudged) <= unchecked.WORDS.keys()


def test_words_are_in_one_order_and_each_is_said_once() -> None:
    """However they were collected."""
    assert unchecked.words(["volumes", "queues", "volumes"]) == "queues, volumes"
    assert unchecked.words([]) == ""


def test_pods_on_nodes_are_checked_where_they_are_known() -> None:
    """Nodes without the list of pods say nothing of what is free."""
    assert "podsOnNodes" in fleet_of([NODE], catalog=catalog(), tables={}).unchecked(wants({}))
    assert "podsOnNodes" not in fleet_of([NODE], catalog=catalog(), tables={}, occupants=[]).unchecked(wants({}))
