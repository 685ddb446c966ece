"""The objects of a recorded cluster on a real API server, as they were: bound, running, with what their nodes offer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.starting import apply_crds
from tests.testcluster.fixtures import control_plane

AS_THEY_ARE = Options(kubelets=False, controllers="*,-garbage-collector-controller,-job-controller,-node-lifecycle-controller")
"""Nobody ends or releases pods whose owners are invented, or taints nodes without a kubelet."""
KINDS = (
    ("karpenter.sh", "v1", "NodePool", "nodepools"),
    ("karpenter.k8s.aws", "v1", "EC2NodeClass", "ec2nodeclasses"),
)
"""Kinds of Karpenter, of which an API server here has the names alone."""


def _definition(group: str, version: str, kind: str, plural: str) -> Raw:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    spec = {"group": group, "scope": "Cluster", "names": names, "versions": versions}
    metadata = {"name": f"{plural}.{group}"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec}


@contextmanager
def posted(session: pytest.Session, objects: Iterable[Raw]) -> Iterator[Cluster]:
    """A control plane that has them."""
    with control_plane(session, AS_THEY_ARE) as cluster:
        cluster.processes.end(cluster.named["kube-scheduler"])  # pods are bound as they were
        file = Path(cluster.folder / "karpenter-crds.yaml")
        file.write_text(yaml.safe_dump_all([_definition(*kind) for kind in KINDS]))
        apply_crds(cluster.api, [file], cluster.processes)
        uids: dict[str, str] = {}
        for value in objects:
            post(cluster, value, uids)
        yield cluster


def post(cluster: Cluster, value: Raw, uids: dict[str, str]) -> None:
    """One object. ``uids``: those that were recorded -> those that this server gave."""
    api, metadata = cluster.api, {key: one for key, one in value["metadata"].items() if key not in ("uid", "creationTimestamp")}
    metadata |= {
        key: [{**one, "uid": uids.get(one["uid"], one["uid"])} for one in owners]
        for key, owners in metadata.items()
        if key == "ownerReferences"
    }
    if value["kind"] == "Namespace":
        metadata["labels"] = {}
    spec = {key: one for key, one in value.get("spec", {}).items() if key != "nodeName" or value["kind"] != "Pod"}
    made = api.create({"apiVersion": value["apiVersion"], "kind": value["kind"], "metadata": metadata} | ({"spec": spec} if spec else {}))
    uids[value["metadata"].get("uid", "")] = made["metadata"]["uid"]
    if value["kind"] == "Node":
        api.patch(value, {"spec": {"taints": value["spec"].get("taints", [])}})
    if value["kind"] == "Pod" and (node := value["spec"].get("nodeName")):
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": metadata["name"]}, "target": {"kind": "Node", "name": node}}
        reply = api.call("POST", f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding", binding)
        assert reply.ok, reply.message
    if value["kind"] in ("Node", "Pod"):
        api.patch(value, {"status": value["status"]}, subresource="status")
