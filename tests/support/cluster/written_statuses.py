"""Statuses in a cluster as a server writes them, without one, and dumps of a cluster, as a user writes them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from analysis.conditions import compute_conditions
from cluster.status.patch import patch
from policies.policy import API_VERSION
from policies.state.objects import Change, Key
from policies.state.updater import Options, Updater
from policies.verdict import Mode
from tests.support.generators.random_worlds import catalog
from tests.testcluster.controlplane.cluster import Cluster

CAPPED = "berth: the server runs with --max-mode Audit, which caps every policy; to ignore the cap, add --max-mode Enforce\n"
"""What commands say of a server with the brake on."""


def write_statuses(cluster: Cluster, max_mode: Mode) -> None:
    """Those that a server with this --max-mode writes."""
    objects: dict[Key, Change] = {}
    for kind in ("ClusterGPUPolicy", "GPUPolicy"):
        for one in cluster.api.list(API_VERSION, kind):
            metadata = one["metadata"]
            objects[kind, metadata.get("namespace", ""), metadata["name"]] = {**one, "apiVersion": API_VERSION, "kind": kind}
    lived = Updater(catalog(), Options(platforms=("karpenter-aws",), max_mode=max_mode)).apply(objects)
    for key, finding in compute_conditions(lived.snapshot, lived.entries, {}).items():
        value = dict(objects[key] or {})
        change = patch(finding, value.get("status") or {}, value["metadata"]["resourceVersion"])
        cluster.api.patch(value, change, subresource="status")


def forget_server(cluster: Cluster) -> None:
    """Take the options of the server out of all statuses, as an earlier version leaves them."""
    for kind in ("ClusterGPUPolicy", "GPUPolicy"):
        for policy in cluster.api.list(API_VERSION, kind):
            cluster.api.patch({**policy, "apiVersion": API_VERSION, "kind": kind}, {"status": {"server": None}}, subresource="status")


OURS = "clustergpupolicies,gpupolicies,gpunodetemplates"


def dump(cluster: Cluster, folder: Path, resources: str) -> str:
    """Write ``kubectl get RESOURCES -A -o yaml`` to a file, and return its path."""
    file = folder / "dump.yaml"
    command = cluster.kubectl("get", resources, "-A", "-o", "yaml")
    file.write_bytes(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    return str(file)
