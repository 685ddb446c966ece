"""Pods of a file on the places of a cluster: a DaemonSet's, those that limits of the namespace refuse, and edits of what was written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from analysis.admission.manifests import read_manifest
from analysis.admission_preview import Admission
from analysis.why.explain import Explainer
from analysis.why.explanation import Explanation
from catalog.prices import prices
from cli.inspect import why_text as text
from kube.tree import dotted
from policies.document import Document
from policies.placement.fleet import fleet_of
from policies.state.updater import Options, Updater
from tests.support.generators.random_worlds import catalog
from tests.support.scheduling.node_pools import AWS, node_pool, of_families

Raw = dict[str, Any]
GPU = "nvidia.com/gpu"
TAINT = {"key": "team", "value": "ml", "effect": "NoSchedule"}


def node(taints: tuple[Raw, ...] = (), /, **amounts: Any) -> Raw:
    allocatable = {"cpu": "64", "memory": "512Gi", "pods": 10, **amounts}
    metadata = {"name": "a", "labels": {"zone": "z", "kubernetes.io/hostname": "a"}}
    return {"kind": "Node", "metadata": metadata, "spec": {"taints": list(taints)}, "status": {"allocatable": allocatable}}


def workload(kind: str, limits: Raw, requests: Raw | None = None, **spec: Any) -> Raw:
    resources = {"limits": limits, **({"requests": requests} if requests else {})}
    template = {"spec": {"containers": [{"name": "c", "image": "c:1", "resources": resources}], **spec}}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "w", "namespace": "n"}, "spec": {"template": template}}


def limit_range(**amounts: Any) -> Raw:
    item = {"type": "Container", **amounts}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "n"}, "spec": {"limits": [item]}}


def explained(value: Raw, *nodes: Raw, facts: tuple[Raw, ...] = ()) -> Explanation:
    changes = {(one["kind"], one["metadata"]["namespace"], one["metadata"]["name"]): one for one in facts}
    snapshot = Updater(catalog(), Options(platforms=(AWS,))).apply(changes).snapshot
    fleet = fleet_of(nodes, catalog=catalog(), tables=snapshot.tables, occupants=())
    manifest = read_manifest(Document(file="f.yaml", value=value), catalog(), "n")
    return Explainer(Admission(snapshot), fleet, prices(catalog())).of_manifest("w/w", manifest, ())


def shown(found: Explanation) -> str:
    return text.format_why(found, datetime(2026, 11, 29, tzinfo=UTC))


def edits(found: Explanation) -> list[tuple[str, str]]:
    assert found.remedy is not None
    return [(edit.op, dotted(edit.path)) for edit in found.remedy.edits]


def test_a_daemon_set_is_placed_by_the_affinity_of_its_template() -> None:
    """Its controller writes the name of a node over it, which no author can change."""
    tolerant = explained(workload("DaemonSet", {"cpu": 1}), node((TAINT,)))
    assert edits(tolerant) == [("add", 'spec.tolerations["-"]')]
    assert explained(workload("DaemonSet", {"cpu": 1}), node()).outlook == "now"
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["y"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    elsewhere = explained(workload("DaemonSet", {"cpu": 1}, affinity=affinity), node())
    assert elsewhere.outlook == "never"
    assert "label zone=y is required; it has z" in shown(elsewhere)


def test_a_change_has_no_line_that_the_author_did_not_write() -> None:
    """The API server fills in requests from limits; a lower memory request is a new line."""
    renamed = explained(workload("Job", {"nvidia.com/mig-1g.10gb": 1}), node(**{GPU: 8}))
    limits = "spec.containers[0].resources.limits"
    assert edits(renamed) == [("remove", f'{limits}["nvidia.com/mig-1g.10gb"]'), ("add", f'{limits}["{GPU}"]')]
    assert "to the pod of Job w (in spec.template):" in shown(renamed)
    assert edits(explained(workload("Job", {"memory": "600Gi"}), node())) == [("add", "spec.containers[0].resources.requests.memory")]


def test_a_change_that_a_limit_refuses_is_not_proposed() -> None:
    """A pod that fits a node and that the API server then refuses is no help."""
    asks = workload("Job", {}, {"memory": "600Gi"})
    least = limit_range(min={"memory": "550Gi"})
    assert explained(asks, node()).value is not None
    refused = explained(asks, node(), facts=(least,))
    assert refused.value is None
    assert "a LimitRange or ResourceQuota of its namespace then denies it" in shown(refused)


def test_a_resource_that_no_node_offers_is_named() -> None:
    """No smaller amount of it helps; a pod without it has a place."""
    found = explained(workload("Job", {"example.com/nic": 1}), node())
    assert "Node a lacks only example.com/nic: a pod that does not request it would fit there." in shown(found)


def test_a_part_of_a_gpu_is_on_no_node_without_gpus() -> None:
    """The scheduler that reads the annotation decides the rest, so that nothing is certain."""
    spec = {"schedulerName": "kai-scheduler", "containers": [{"name": "c", "image": "c:1"}]}
    metadata = {"name": "half", "namespace": "n", "annotations": {"gpu-fraction": "0.5"}}
    half = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    found = explained(half, node())
    assert found.outlook == "unknown"
    assert "metadata.annotations.gpu-fraction asks for a part of a GPU; it has no nvidia.com/gpu" in shown(found)
    assert not explained(half, node(**{GPU: 1})).where[0].blockers


def test_a_change_that_policies_admit_and_a_quota_refuses_is_not_proposed() -> None:
    """Policies deny two GPUs; a quota of none then refuses a pod with one."""
    value = workload("Job", {GPU: 2})
    spec = {"hard": {f"requests.{GPU}": "0"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "n"}, "spec": spec}
    policy = {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": "p", "namespace": ""}}
    policy["spec"] = {"mode": "Enforce", "require": {"requestsEqualLimits": ["accelerators"], "gpusPerPod": {"max": 1}}}
    free = explained(value, node(**{GPU: 8}), facts=(policy,))
    assert (free.state, free.value is None) == ("denied", False)
    refused = explained(value, node(**{GPU: 8}), facts=(policy, quota))
    assert (refused.state, refused.value) == ("denied", None)


def test_karpenter_creates_no_node_for_a_daemon_set() -> None:
    """Nodes that it creates for other pods get one."""
    found = explained(workload("DaemonSet", {"cpu": 1}, nodeSelector={"zone": "q"}), node_pool("gpu", requirements=[of_families("g5")]))
    assert found.remedy is not None
    assert (found.remedy.new_nodes, dict(found.remedy.buys)) == (("gpu",), {})
    assert "It then fits new nodes of NodePool gpu; Karpenter creates none for a DaemonSet." in shown(found)
