"""Where pods ask for what they ask of a node, and what cannot be read; amounts are compared with kube-scheduler's code in
tests/kube/upstream."""

from __future__ import annotations

from typing import Any

import pytest

from kube.pod import Pod
from kube.requests import HostPort, requests, shortfalls


def test_a_limit_alone_is_the_request() -> None:
    """As the API server fills it in; the path is that of the container that asks most."""
    spec = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}, {"resources": {"limits": {"nvidia.com/gpu": "2"}}}]}
    found = requests(spec)
    assert found.amounts == {"nvidia.com/gpu": 3}
    assert found.paths["nvidia.com/gpu"] == ("spec", "containers", 1, "resources", "limits", "nvidia.com/gpu")


def test_what_is_no_quantity_is_named_and_not_added() -> None:
    """An unreadable amount is left to the API server."""
    spec = {
        "containers": [{"resources": {"requests": {"cpu": "{{ .cpu }}", "memory": "1"}}}],
        "resources": {"limits": {"memory": []}},
        "overhead": {"pods": "x"},
    }
    found = requests(spec)
    assert found.amounts == {"memory": 1}
    assert found.unreadable == {"cpu", "memory", "pods"}


def test_ports_conflict_on_all_addresses_or_the_same() -> None:
    """By protocol and number; a pod on the host's network takes all of its ports."""
    everywhere, local = HostPort("0.0.0.0", "TCP", 80), HostPort("127.0.0.1", "TCP", 80)
    assert everywhere.conflicts(local)
    assert local.conflicts(local)
    assert not local.conflicts(HostPort("127.0.0.2", "TCP", 80))
    assert not local.conflicts(HostPort("127.0.0.1", "UDP", 80))


Raw = dict[str, Any]
BOTH = {"cpu": "1", "memory": "1Gi"}


def names(spec: Raw) -> list[tuple[str, str]]:
    return [(level.who, name) for level, name in shortfalls(Pod({"spec": spec}))]


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
