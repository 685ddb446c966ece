"""Dumps of a cluster, as a user writes them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.testcluster.controlplane.cluster import Cluster

OURS = "clustergpupolicies,gpupolicies,gpunodetemplates"


def dump(cluster: Cluster, folder: Path, resources: str) -> str:
    """Write ``kubectl get RESOURCES -A -o yaml`` to a file, and return its path."""
    file = folder / "dump.yaml"
    command = cluster.kubectl("get", resources, "-A", "-o", "yaml")
    file.write_bytes(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    return str(file)
