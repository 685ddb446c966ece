"""What is watched, and what is kept of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cluster.kinds import KINDS, Watched, key_of
from policies import cluster_facts
from policies.objects import definition

BY_KIND = {one.kind: one for one in KINDS}
CRDS = Path(__file__).parent.parent.parent / "deploy" / "crds"


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


def test_paths_of_the_core_group_and_of_others() -> None:
    """/api for the core group, /apis for all others."""
    assert BY_KIND["Node"].path("v1") == "/api/v1/nodes"
    assert BY_KIND["NodePool"].path("v1beta1") == "/apis/karpenter.sh/v1beta1/nodepools"


def test_of_nodes_only_labels_are_kept() -> None:
    """No taints, status or annotations; equal labels are one object in memory."""
    metadata = {
        "name": "n",
        "resourceVersion": "5",
        "labels": {"a.b": "".join(["x", "y"]), "odd": 5},
        "annotations": {"a": "b"},
        "managedFields": [],
    }
    kept = [BY_KIND["Node"].trim({"metadata": dict(metadata), "status": {}}, "v1", "Node") for _ in range(2)]
    assert kept[0] == {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "resourceVersion": "5", "labels": {"a.b": "xy"}}}
    assert kept[0]["metadata"]["labels"]["a.b"] is kept[1]["metadata"]["labels"]["a.b"]
    assert key_of("Node", kept[0]) == ("Node", "", "n")


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


def test_of_other_kinds_the_spec_is_kept() -> None:
    """Their status changes often."""
    kept = BY_KIND["ResourceClaim"].trim(
        {"metadata": {"name": "c"}, "spec": {"devices": {}}, "status": {}}, "resource.k8s.io/v1", "ResourceClaim"
    )
    assert kept == {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": {"devices": {}}}


def test_a_claim_that_was_made_for_a_pod_is_marked() -> None:
    """Nobody else names it, and there is one for every pod: its requests are not kept."""
    claims = next(one for one in KINDS if one.kind == "ResourceClaim")
    metadata = {"name": "a", "namespace": "n", "resourceVersion": "1"}
    named = claims.trim({"metadata": metadata, "spec": {"devices": {}}}, "resource.k8s.io/v1", "ResourceClaim")
    assert named["spec"] == {"devices": {}}
    assert "ofPod" not in named
    annotations = {"annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"}}
    made = claims.trim({"metadata": metadata | annotations, "spec": {"devices": {}}}, "resource.k8s.io/v1", "ResourceClaim")
    assert (made["ofPod"], made["spec"]) == (True, None)
