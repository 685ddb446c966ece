"""What is watched, and what is kept of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cluster.watch.kinds import KINDS, ROWS, Watched, key_of
from policies.facts import cluster_facts
from policies.objects import definition

BY_KIND = {one.kind: one for one in KINDS}
CRDS = Path(__file__).parent.parent.parent.parent / "deploy" / "crds"


def test_every_kind_that_is_used_is_watched() -> None:
    """Ours, and those that facts are read from."""
    assert sorted(BY_KIND) == sorted((*definition.KINDS, *cluster_facts.KINDS))


@pytest.mark.parametrize("watched", [one for one in KINDS if one.ours], ids=lambda one: one.kind)
def test_ours_are_watched_where_their_definitions_put_them(watched: Watched) -> None:
    """Group, version, plural and scope are those of deploy/crds."""
    value = yaml.safe_load((CRDS / f"{watched.group}_{watched.plural}.yaml").read_text())
    spec = value["spec"]
    assert (spec["group"], spec["names"]["plural"], spec["names"]["kind"]) == (watched.group, watched.plural, watched.kind)
    assert (spec["scope"] == "Namespaced") == watched.namespaced
    assert {one["name"] for one in spec["versions"] if one["served"]} >= set(watched.versions)
    assert watched.definition == f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{value['metadata']['name']}"


def test_every_optional_kind_says_what_berth_does_without_it() -> None:
    """A clause for the log, and the same in the table of docs/operations.md; a required kind has none."""
    docs = (CRDS.parent.parent / "docs" / "operations.md").read_text()
    rows = re.findall(r"^\| ([\w, ]+) \| (required|decisive|advice) \| (.+) \|$", docs, re.MULTILINE)
    documented = {kind: (need, text) for kinds, need, text in rows for kind in kinds.split(", ")}
    for watched in KINDS:
        assert bool(watched.without) != watched.required
        assert documented[watched.kind] == (watched.need, watched.without or "no replica becomes ready")


def test_paths_of_the_core_group_and_of_others() -> None:
    """/api for the core group, /apis for all others."""
    assert BY_KIND["Node"].path("v1") == "/api/v1/nodes"
    assert BY_KIND["NodePool"].path("v1beta1") == "/apis/karpenter.sh/v1beta1/nodepools"


def test_of_nodes_little_is_kept() -> None:
    """Labels, taints and the amounts of extended resources; no images or annotations. Equal texts are one object in memory."""
    metadata = {
        "name": "n",
        "resourceVersion": "5",
        "labels": {"a.b": "".join(["x", "y"]), "odd": 5},
        "annotations": {"a": "b"},
        "managedFields": [],
    }
    taint = {"key": "nvidia.com/gpu", "value": "".join(["t", "rue"]), "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
    status = {
        "capacity": {"cpu": "8", "nvidia.com/gpu": "4"},
        "allocatable": {"cpu": "8", "nvidia.com/gpu": "4", "x.io/y": "1"},
        "images": [1],
    }
    spec = {"taints": [taint, "odd"], "podCIDR": "10.0.0.0/24", "providerID": "aws:///us-east-1a/i-0123"}
    value = {"metadata": dict(metadata), "spec": spec, "status": status}
    kept = [BY_KIND["Node"].trim(value, "v1", "Node") for _ in range(2)]
    assert kept[0] == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "resourceVersion": "5", "labels": {"a.b": "xy"}},
        "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}], "providerID": "aws://"},
        "status": {"capacity": {"nvidia.com/gpu": "4"}, "allocatable": {"nvidia.com/gpu": "4", "x.io/y": "1"}},
    }
    assert kept[0]["metadata"]["labels"]["a.b"] is kept[1]["metadata"]["labels"]["a.b"]
    assert kept[0]["spec"]["taints"][0]["value"] is kept[1]["spec"]["taints"][0]["value"]
    assert key_of("Node", kept[0]) == ("Node", "", "n")


@pytest.mark.parametrize(
    "parts",
    [{}, {"spec": None, "status": None}, {"spec": [], "status": 5}, {"spec": {"taints": {}}, "status": {"capacity": ["a/b"]}}],
)
def test_a_node_of_whatever_shape_is_kept(parts: dict[str, object]) -> None:
    """What is no map or list says nothing."""
    kept = BY_KIND["Node"].trim({"metadata": {"name": "n", "resourceVersion": "5"}, **parts}, "v1", "Node")
    assert kept == {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "resourceVersion": "5"}}


def test_of_ours_every_field_is_kept_but_managed_fields() -> None:
    """An unknown field is an error that must be told."""
    value = {"metadata": {"name": "p", "namespace": "ns", "generation": 2, "managedFields": [1]}, "spec": {}, "status": {"a": 1}, "odd": 1}
    kept = BY_KIND["GPUPolicy"].trim(value, "berth.dev/v1alpha1", "GPUPolicy")
    assert kept == value | {
        "apiVersion": "berth.dev/v1alpha1",
        "kind": "GPUPolicy",
        "metadata": {"name": "p", "namespace": "ns", "generation": 2},
    }
    assert key_of("GPUPolicy", kept) == ("GPUPolicy", "ns", "p")


def test_of_a_resource_slice_the_number_of_its_devices_is_kept() -> None:
    """With whose they are: a device has up to 32 attributes. Read again, the facts are the same."""
    devices = [{"name": f"gpu-{n}", "attributes": {"productName": {"string": "NVIDIA L4"}}} for n in range(8)]
    pool = {"name": "n", "generation": 3, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": "n", "pool": pool, "devices": devices}
    value = {"metadata": {"name": "n-gpu.nvidia.com-x7", "resourceVersion": "5", "managedFields": []}, "spec": spec}
    kept = BY_KIND["ResourceSlice"].trim(value, "resource.k8s.io/v1", "ResourceSlice")
    assert kept["spec"] == {"driver": "gpu.nvidia.com", "nodeName": "n", "pool": {"name": "n", "generation": 3}, "devices": 8}
    assert key_of("ResourceSlice", kept) == ("ResourceSlice", "", "n-gpu.nvidia.com-x7")
    assert cluster_facts.read_facts("ResourceSlice", kept) == cluster_facts.read_facts("ResourceSlice", value)


@pytest.mark.parametrize(
    ("kind", "spec"), [("ClusterPolicy", {"gfd": {"enabled": False, "image": "x"}, "driver": {}}), ("GPUCluster", None), ("GPUCluster", [])]
)
def test_of_the_gpu_operators_objects_one_setting_is_kept(kind: str, spec: object) -> None:
    """Whether GPU Feature Discovery runs, and since when; the specs are hundreds of lines. Read again, the facts are the same."""
    metadata = {"name": "x", "creationTimestamp": "2026-11-01T00:00:00Z", "managedFields": []}
    value = {"apiVersion": "nvidia.com/v1", "metadata": metadata, "spec": spec}
    kept = BY_KIND[kind].trim(value, "nvidia.com/v1", kind)
    assert kept["spec"] == {"gfd": {"enabled": False if kind == "ClusterPolicy" else None}}
    assert cluster_facts.read_facts(kind, kept) == cluster_facts.read_facts(kind, value) != ()


def test_of_other_kinds_the_spec_is_kept() -> None:
    """Their status changes often."""
    kept = BY_KIND["NodePool"].trim({"metadata": {"name": "c"}, "spec": {"limits": {}}, "status": {}}, "karpenter.sh/v1", "NodePool")
    assert kept == {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "c"}, "spec": {"limits": {}}}


WAYS: st.SearchStrategy[Any] = st.dictionaries(
    st.sampled_from(["deviceClassName", "count", "allocationMode", "adminAccess", "tolerations", "selectors", "capacity"]),
    st.sampled_from(["gpu.nvidia.com", 2, 0, True, "All", "ExactCount", [{"key": "a"}, 5], None, {}]),
)
REQUESTS: st.SearchStrategy[Any] = st.one_of(
    WAYS,
    st.builds(lambda way: {"name": "r", "exactly": way}, WAYS),
    st.builds(lambda ways: {"firstAvailable": ways}, st.lists(st.one_of(WAYS, st.just("odd")), max_size=3)),
    st.sampled_from(["odd", None, {"exactly": []}, {"firstAvailable": {}}]),
)


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
@given(requests=st.one_of(st.lists(REQUESTS, max_size=4), st.sampled_from([None, "odd", {}])))
def test_of_claims_the_requests_are_kept(kind: str, requests: object) -> None:
    """Without selectors and parameters of drivers. Read again, the facts are the same, whatever the request holds."""
    spec = {"devices": {"requests": requests, "config": [{"opaque": {"parameters": {"x": "y"}}}]}}
    metadata = {"name": "c", "namespace": "ns", "resourceVersion": "1", "annotations": {"a": "b"}}
    value = {"metadata": metadata, "spec": {"spec": spec} if kind == "ResourceClaimTemplate" else spec}
    kept = BY_KIND[kind].trim(value, "resource.k8s.io/v1", kind)
    assert cluster_facts.read_facts(kind, kept) == cluster_facts.read_facts(kind, value) != ()
    assert "opaque" not in str(kept)
    assert "selectors" not in str(kept)


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.kind)
def test_an_object_without_contents_is_trimmed(row: Watched) -> None:
    """Each kind that is read has a trim that needs names alone, and a path below its API group."""
    assert row.trim({"metadata": {"name": "n", "namespace": "ns", "resourceVersion": "1"}}, row.api_version(row.versions[0]), row.kind)
    assert row.path(row.versions[0], "ns", "n").startswith(f"/apis/{row.group}/" if row.group else "/api/v1/")
