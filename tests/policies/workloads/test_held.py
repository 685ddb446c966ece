"""Accelerators in objects of any kind, by path."""

from __future__ import annotations

from typing import Any

import pytest

from kube.tree import dotted
from policies.policy import PolicySet
from policies.workloads.held import find_held
from tests.support.cases import golden
from tests.support.snapshots import build

SNAPSHOT = build(PolicySet(policies=(), templates=()), golden.catalog_with())


def found(spec: Any, **fields: Any) -> list[str]:
    return [
        f"{one.name}{' in a text' if one.in_text else ''} at {dotted(one.path)}" for one in find_held({"spec": spec, **fields}, SNAPSHOT)
    ]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"limits": {"nvidia.com/gpu": 1}}, ['nvidia.com/gpu at spec.limits["nvidia.com/gpu"]']),
        ({"anything": {"nvidia.com/gpu": "2"}}, ['nvidia.com/gpu at spec.anything["nvidia.com/gpu"]']),
        ({"a": [{"b": {"requests": {"amd.com/gpu": "$N"}}}]}, ['amd.com/gpu at spec.a[0].b.requests["amd.com/gpu"]']),
        ({"limits": {"nvdia.com/gpu": 1}}, ['nvdia.com/gpu at spec.limits["nvdia.com/gpu"]']),
        ({"resources": {"custom": {"huawei.com/Ascend910": 1}}}, ['huawei.com/Ascend910 at spec.resources.custom["huawei.com/Ascend910"]']),
        ({"gpu": {"name": "nvidia.com/gpu", "quantity": 1}}, ["nvidia.com/gpu at spec.gpu.name"]),
        ({"gpuType": "nvidia.com/gpu", "gpu": "1"}, ["nvidia.com/gpu at spec.gpuType"]),
        ({"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}, ["a resource claim at spec.resourceClaims"]),
        ({"x": {"deviceClassName": "gpu.nvidia.com"}}, ["devices of the class gpu.nvidia.com at spec.x.deviceClassName"]),
        (
            {"t": {"metadata": {"annotations": {"gpu-fraction": "0.5"}}}},
            ["the annotation gpu-fraction at spec.t.metadata.annotations.gpu-fraction"],
        ),
        ({"patch": "limits:\n  nvidia.com/gpu: 2\n"}, ["nvidia.com/gpu in a text at spec.patch"]),
        ({"value": '{"accelerator":{"resourceCount":"1","resourceType":"nvidia.com/gpu"}}'}, ["nvidia.com/gpu in a text at spec.value"]),
        ({"value": '[{"key":"nvidia.com/gpu","value":"1"}]'}, []),
        ({"value": "{" * 9}, []),
        ({"value": '{"a":"b/c:' + "[" * 100_000}, []),
        ({"args": ['{"limits":{"nvidia.com/gpu":"1"}}']}, ["nvidia.com/gpu in a text at spec.args[0]"]),
    ],
    ids=str,
)
def test_what_asks_for_a_device_is_found(spec: Any, wanted: list[str]) -> None:
    """By name with an amount, wherever it stands; by claim, class and annotation; in a text that holds a manifest."""
    assert found(spec) == wanted


@pytest.mark.parametrize(
    "spec",
    [
        {"limits": {"nvidia.com/gpu": 0}},
        {"limits": {"nvidia.com/gpu": None}},
        {"limits": {"cpu": 1, "vpc.amazonaws.com/efa": 1, "nvidia.com/gpumem": 8}},
        {"nodeSelector": {"nvidia.com/gpu": "true"}, "labels": {"nvidia.com/gpu.count": "8"}},
        {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "tolerationSeconds": 30}]},
        {"taints": [{"key": "nvidia.com/gpu", "value": "1"}]},
        {"something": {"nvidia.com/gpu.count": "8"}},
        {"resourceClaims": []},
        {"text": "see https://nvidia.com/gpu: it is fast", "image": "nvcr.io/nvidia/cuda:12"},
        {"text": "nvidia.com/gpu: 0\n"},
    ],
    ids=str,
)
def test_what_speaks_of_nodes_or_of_nothing_is_none(spec: Any) -> None:
    """Zero is not asking; labels, selectors, taints and addresses ask for no device."""
    assert found(spec) == []


def test_a_status_says_what_others_do() -> None:
    """A Node's capacity, a pod's allocated resources."""
    assert found({}, status={"capacity": {"nvidia.com/gpu": 8}}) == []


def test_names_in_no_list_are_told_apart() -> None:
    """They are known by their look alone."""
    both = find_held({"limits": {"nvidia.com/gpu": 1, "acme.example/gpu-mem": 8}}, SNAPSHOT)
    assert [(one.name, one.known) for one in both] == [("nvidia.com/gpu", True), ("acme.example/gpu-mem", False)]


def test_any_depth_and_any_number() -> None:
    """An operator's schema may let pass more levels than Python calls, and more names than anybody reads."""
    deep: Any = {"limits": {"nvidia.com/gpu": 1}}
    for _ in range(3000):
        deep = {"x": [deep]}
    assert len(find_held({"spec": deep}, SNAPSHOT)) == 1
    assert len(find_held({"spec": [{"limits": {"nvidia.com/gpu": 1}}] * 1000}, SNAPSHOT)) == 64
