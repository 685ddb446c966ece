"""Requests match limits: the sentence stays short whatever the names."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.resources import OF_A_CLASS
from policies.engine import evaluate
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_requests import DeviceClass
from policies.request import Request
from policies.verdict import Violation
from tests.support.cases import golden
from tests.support.snapshots import build

CATALOG = golden.catalog_with()
POLICY = {
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "x"},
    "spec": {"mode": "Enforce", "require": {"requestsEqualLimits": ["accelerators"]}},
}
FACTS = build(golden.policies_of([POLICY], CATALOG), CATALOG).facts_for("ml")


def violations(name: str, container: str, limit: Any, request: Any) -> tuple[Violation, ...]:
    pod = {"spec": {"containers": [{"name": container, "resources": {"limits": {name: limit}, "requests": {name: request}}}]}}
    return evaluate(Request(namespace="ml", pod=pod), FACTS).violations


@pytest.mark.parametrize("container", ["c", "c" * 40])
@pytest.mark.parametrize("name", ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb.shared", "deviceclass.resource.kubernetes.io/gpu.nvidia.com"])
@pytest.mark.parametrize(("limit", "request_"), [("2", "1"), ("$" * 100, "1"), ("1", None)], ids=["mismatch", "unreadable", "null"])
def test_the_fix_is_within_the_first_200_characters(name: str, container: str, limit: str, request_: object) -> None:
    """Long resource names are not said twice."""
    for violation in violations(name, container, limit, request_):
        assert len(f"{violation.code}: {violation.fact}; {violation.fix}.") <= 200


NAMED = {
    "whole": DeviceClass("gpu.nvidia.com", "example.com/gpu", (("gpu.nvidia.com/type", "gpu"),), plain=True),
    "acme": DeviceClass("dra.acme.example", "acme.example/device"),
    "odd": DeviceClass("", "odd.example/device"),
}


@pytest.mark.parametrize("name", [*(one.extended for one in NAMED.values()), *(f"{OF_A_CLASS}{name}" for name in (*NAMED, "nobody-knows"))])
@pytest.mark.parametrize(("request_", "equal"), [("1", False), (None, False), ("2", True)], ids=["less", "null", "equal"])
def test_every_name_of_a_class_has_equal_amounts(name: str, request_: Any, *, equal: bool) -> None:
    """Its own, the one that every class has, and that of a class of which nothing is known: the API server lets 1 of 2 pass."""
    facts = build(golden.policies_of([POLICY], CATALOG), CATALOG, cluster=ClusterFacts(device_classes=NAMED)).facts_for("ml")
    pod = {"spec": {"containers": [{"name": "c", "resources": {"limits": {name: "2"}, "requests": {name: request_}}}]}}
    assert bool(evaluate(Request(namespace="ml", pod=pod), facts).violations) is not equal


def test_a_null_amount_is_no_number_of_devices() -> None:
    """It is neither zero nor absent."""
    (violation,) = violations("nvidia.com/gpu", "c", 1, None)
    assert violation.code == "BERTH-102"


GUARANTEED = {
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "g"},
    "spec": {"mode": "Enforce", "require": {"requestsEqualLimits": ["cpuAndMemory"]}},
}
ONLY_GUARANTEED = build(golden.policies_of([GUARANTEED], CATALOG), CATALOG).facts_for("ml")


def sized(*containers: tuple[str, str]) -> dict[str, Any]:
    """A pod of containers with (request, limit) of cpu."""
    gpu, memory = {"nvidia.com/gpu": "1"}, {"memory": "1Gi"}
    listed = [
        {"name": f"c{i}", "resources": {"requests": {**gpu, **memory, "cpu": asked}, "limits": {**gpu, **memory, "cpu": limit}}}
        for i, (asked, limit) in enumerate(containers)
    ]
    return {"spec": {"containers": listed}}


@pytest.mark.parametrize(
    ("old", "new", "denied"),
    [
        ([("1", "1")], [("2", "2")], 0),
        ([("1", "1")], [("1", "2")], 1),
        ([("1", "2")], [("1", "4")], 0),
        ([("1", "2"), ("1", "1")], [("1", "2"), ("1", "2")], 1),
        ([("1", "2"), ("1", "2")], [("1", "2"), ("2", "2")], 0),
    ],
    ids=str,
)
@pytest.mark.parametrize("subresource", ["resize", ""])
def test_a_resize_is_denied_for_what_it_worsens(
    old: list[tuple[str, str]], new: list[tuple[str, str]], denied: int, subresource: str
) -> None:
    """A pod that was not Guaranteed before may be resized; another update can't change amounts, and is not judged by them."""
    request = Request(operation="UPDATE", phase="validate", subresource=subresource, namespace="ml", pod=sized(*new), old_pod=sized(*old))
    found = evaluate(request, ONLY_GUARANTEED).violations
    assert [v.code for v in found] == ["BERTH-103"] * (denied if subresource else 0)
