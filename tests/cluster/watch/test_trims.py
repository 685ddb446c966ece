"""What is kept of pods."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.audit.stored_pod import Controller, StoredPod, may_hold_devices, widest
from cluster.watch.trims import PodTrim, amounts_alone
from tests.support.generators.random_worlds import catalog

Raw = dict[str, Any]
TRIM = PodTrim(widest(catalog()), places=False)


def pod(spec: Raw, annotations: Raw | None = None, phase: str = "Running") -> Raw:
    metadata = {"name": "p", "namespace": "ns", "resourceVersion": "1", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def with_resources(resources: Raw, field: str = "containers") -> Raw:
    return {field: [{"name": "c", "resources": resources}]}


@pytest.mark.parametrize(
    ("value", "may"),
    [
        (pod(with_resources({"limits": {"nvidia.com/gpu": "1"}})), True),
        (pod(with_resources({"requests": {"example.com/npu": "1"}}, "initContainers")), True),
        (pod({"resourceClaims": [{"name": "gpu"}]}), True),
        (pod({}, {"gpu-fraction": "0.5"}), True),
        (pod(with_resources({"limits": {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "2Mi"}})), False),
        (pod({}), False),
        ({"metadata": {}, "spec": {"containers": [None, {"resources": []}, 7]}}, False),
    ],
)
def test_pods_that_may_hold_devices_are_told_from_all_others(value: Raw, *, may: bool) -> None:
    """By their fields alone, whatever the catalog knows."""
    assert may_hold_devices(value) == may


def test_of_all_others_only_the_name_is_held() -> None:
    """And of those that have ended."""
    asks = with_resources({"limits": {"nvidia.com/gpu": "1"}})
    assert isinstance(TRIM(pod(asks), "v1", "Pod")["pod"], StoredPod)
    for other in (pod({}), pod(asks, phase="Succeeded"), pod(asks, phase="Failed")):
        metadata = {"name": "p", "namespace": "ns", "resourceVersion": "1"}
        assert TRIM(other, "v1", "Pod") == {"metadata": metadata, "pod": None, "uid": "", "owner": None}


@pytest.mark.parametrize(
    ("labels", "leads"),
    [
        ({"leaderworkerset.sigs.k8s.io/worker-index": "0"}, True),
        ({"leaderworkerset.sigs.k8s.io/worker-index": "1"}, False),
        ({"spark-role": "driver"}, True),
        ({"spark-role": "executor"}, False),
    ],
)
def test_a_pod_that_owns_others_tells_its_owner(labels: Raw, *, leads: bool) -> None:
    """Whether it has devices or not: through it the others belong to a workload."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "s", "controller": True}
    value = pod({})
    value["metadata"] |= {"uid": "u", "labels": labels, "ownerReferences": [owner]}
    found = TRIM(value, "v1", "Pod")
    assert (found["uid"], found["owner"]) == (("u", Controller("apps/v1", "StatefulSet", "s", "s")) if leads else ("", None))


@pytest.mark.parametrize(
    ("spec", "kept"), [({"hard": {"pods": 9}, "scopes": []}, {"hard": {"pods": "9"}}), ({"hard": None}, None), (None, None)]
)
def test_a_quota_keeps_its_amounts_as_texts(spec: Raw | None, kept: Raw | None) -> None:
    """One without amounts bounds nothing."""
    value = {"metadata": {"name": "q", "namespace": "ns", "labels": {"x": "y"}}, "spec": spec}
    assert amounts_alone(value, "v1", "ResourceQuota") == {"metadata": {"name": "q", "namespace": "ns"}, "spec": kept}
