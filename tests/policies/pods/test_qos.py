"""QoS class: Guaranteed exactly where ComputePodQOS says so."""

from __future__ import annotations

from typing import Any

import pytest

from policies.pods.qos import shortfalls
from policies.pods.view import Pod

Raw = dict[str, Any]
BOTH = {"cpu": "1", "memory": "1Gi"}


def names(spec: Raw) -> list[tuple[str, str]]:
    return [(one.level.who, one.name) for one in shortfalls(Pod({"spec": spec}))]


def container(limits: Raw | None, requests: Raw | None = None, name: str = "c") -> Raw:
    return {"name": name, "resources": {"limits": limits, "requests": requests}}


@pytest.mark.parametrize(
    ("limits", "requests", "wrong"),
    [
        (BOTH, BOTH, []),
        (BOTH, None, []),
        (BOTH, {"cpu": "1000m"}, []),
        (BOTH, {"cpu": "500m"}, ["cpu"]),
        (BOTH, {"cpu": "0"}, ["cpu"]),
        ({"cpu": "0", "memory": "1Gi"}, {"cpu": "0"}, ["cpu"]),
        ({"cpu": "-1", "memory": "1Gi"}, None, ["cpu"]),
        ({"memory": "1Gi"}, {"cpu": "1"}, ["cpu"]),
        ({"cpu": "one", "memory": "1Gi"}, None, ["cpu"]),
        (BOTH, {"memory": "much"}, ["memory"]),
        (None, None, ["cpu", "memory"]),
        ({**BOTH, "ephemeral-storage": "1Gi"}, {"ephemeral-storage": "1Mi"}, []),
    ],
    ids=str,
)
def test_one_container(limits: Raw | None, requests: Raw | None, wrong: list[str]) -> None:
    """Limits of both above zero, and requests equal to them; what can't be read is neither."""
    assert [name for _, name in names({"containers": [container(limits, requests)]})] == wrong


def test_every_container_counts() -> None:
    """Init containers and sidecars too."""
    spec = {"initContainers": [container({}, name="init")], "containers": [container(BOTH)]}
    assert names(spec) == [("init", "cpu"), ("init", "memory")]


def test_requests_are_summed_up_over_the_containers() -> None:
    """As Kubernetes does: what one asks too much of, another may ask too little of (the API server denies such a pod)."""
    spec = {"containers": [container(BOTH, {"cpu": "2"}), container({"cpu": "2", "memory": "1Gi"}, {"cpu": "1"})]}
    assert names(spec) == []


@pytest.mark.parametrize(
    ("own", "wrong"),
    [
        ({"limits": BOTH, "requests": BOTH}, []),
        ({"limits": BOTH, "requests": {"cpu": "1"}}, []),
        ({"limits": BOTH, "requests": {"cpu": "500m"}}, ["cpu"]),
        ({"limits": {"cpu": "1"}, "requests": BOTH}, ["memory"]),
        ({"limits": {"memory": "1Gi"}}, ["cpu"]),
        ({}, ["cpu", "memory"]),
    ],
    ids=str,
)
def test_the_pods_own_resources_alone_decide(own: Raw, wrong: list[str]) -> None:
    """A container without any does not matter then, and an empty map is resources too."""
    assert [name for _, name in names({"resources": own, "containers": [container(None)]})] == wrong


def test_a_pod_level_request_that_nobody_wrote_is_not_the_limit_where_a_container_says_another() -> None:
    """The API server fills in what the containers ask for together."""
    assert names({"resources": {"limits": BOTH}, "containers": [container({"cpu": "500m"})]}) == [("", "cpu")]
