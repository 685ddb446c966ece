"""What pods ask of a node, added up as kube-scheduler does."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policies.scheduling.amounts import HostPort, amounts, host_ports, requests
from policies.values.quantity import parse

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
