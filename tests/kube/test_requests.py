"""What pods ask of a node, added up as kube-scheduler does."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.pod import Pod
from kube.quantity import parse
from kube.requests import HostPort, amounts, host_ports, requests, shortfalls

CPU = st.sampled_from(["0", "1", "250m", "1500m", "0.3", "2e0", "100u"])
CONTAINERS = st.lists(
    st.tuples(CPU, st.booleans()).map(lambda one: {"resources": {"requests": {"cpu": one[0]}}, "sidecar": one[1]}), max_size=4
)


def _init(one: dict[str, Any]) -> dict[str, Any]:
    return {"resources": one["resources"], **({"restartPolicy": "Always"} if one["sidecar"] else {})}


def _cpu(one: dict[str, Any]) -> Fraction:
    return parse(one["resources"]["requests"]["cpu"])


@given(CONTAINERS, CONTAINERS)
def test_the_most_that_runs_at_once_is_asked_for(containers: list[dict[str, Any]], starting: list[dict[str, Any]]) -> None:
    """The request is the largest sum at any moment: each init container with the sidecars before it, then all containers with all
    sidecars."""
    moments = []
    running = Fraction(0)
    for one in starting:
        moments.append(running + _cpu(one))
        running += _cpu(one) if one["sidecar"] else 0
    moments.append(running + sum(map(_cpu, containers)))
    found = requests({"containers": containers, "initContainers": list(map(_init, starting))}).amounts
    assert found.get("cpu", 0) == ceil(max(moments) * 1000)


def test_a_limit_alone_is_the_request() -> None:
    """As the API server fills it in; the path is that of the container that asks most."""
    spec = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}, {"resources": {"limits": {"nvidia.com/gpu": "2"}}}]}
    found = requests(spec)
    assert found.amounts == {"nvidia.com/gpu": 3}
    assert found.paths["nvidia.com/gpu"] == ("spec", "containers", 1, "resources", "limits", "nvidia.com/gpu")


def test_requests_of_the_whole_pod_take_the_place_of_the_sum_and_overhead_comes_on_top() -> None:
    """Only cpu, memory and hugepages may be asked for the whole pod."""
    spec = {
        "containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
        "resources": {"requests": {"cpu": "3", "example.com/x": "9"}, "limits": {"memory": "2Gi", "cpu": "5"}},
        "overhead": {"cpu": "100m", "pods": "x"},
    }
    found = requests(spec)
    assert found.amounts == {"cpu": 3100, "memory": 2**30}
    assert found.unreadable == {"pods"}


def test_what_is_no_quantity_is_named_and_not_added() -> None:
    """An unreadable amount is left to the API server."""
    spec = {"containers": [{"resources": {"requests": {"cpu": "{{ .cpu }}", "memory": "1"}}}], "resources": {"limits": {"memory": []}}}
    found = requests(spec)
    assert found.amounts == {"memory": 1}
    assert found.unreadable == {"cpu", "memory"}


def test_resources_that_the_scheduler_does_not_count_are_left_out() -> None:
    """Names without a domain are its own, or nobody's."""
    assert amounts({"gpu": 1, "cpu": "1", "nvidia.com/gpu": 2, "hugepages-2Mi": "2Mi"}) == {
        "cpu": 1000,
        "nvidia.com/gpu": 2,
        "hugepages-2Mi": 2**21,
    }


def test_ports_conflict_on_all_addresses_or_the_same() -> None:
    """By protocol and number; a pod on the host's network takes all of its ports."""
    everywhere, local = HostPort("0.0.0.0", "TCP", 80), HostPort("127.0.0.1", "TCP", 80)
    assert everywhere.conflicts(local)
    assert local.conflicts(local)
    assert not local.conflicts(HostPort("127.0.0.2", "TCP", 80))
    assert not local.conflicts(HostPort("127.0.0.1", "UDP", 80))
    spec = {
        "hostNetwork": True,
        "containers": [{"ports": [{"containerPort": 80}]}],
        "initContainers": [{"ports": [{"containerPort": 81}]}],
    }
    assert list(host_ports(spec)) == [everywhere]


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
