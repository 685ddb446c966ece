"""A large cluster on a real API server: everything is read, and memory stays bounded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.counts import only_in_prove
from tests.support.recorded import eks
from tests.support.recorded.parts import node, pod
from tests.support.recorded.posted import posted

NODES, PODS = 500, 5000
MOST = 300
"""MB: of the process at its largest"""
WRAPPED = (
    "import re, sys; from cli.main import main; code = main(sys.argv[1:]); "
    "print(int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) // 1024, file=sys.stderr); sys.exit(code)"
)
"""The largest resident size of the program itself: ``ru_maxrss`` has that of the process that started it too."""


def objects() -> list[dict[str, Any]]:
    """As many nodes and pods, of all kinds of workloads, most of the pods without a GPU."""
    size = NODES // 8
    found = eks.objects(size)
    nodes, pods = (sum(one["kind"] == kind for one in found) for kind in ("Node", "Pod"))
    labels = {"node.kubernetes.io/instance-type": "m6i.4xlarge"}
    found += [node(f"more-{number}", labels, {}) for number in range(NODES - nodes)]
    owners = [("apps/v1", "ReplicaSet", f"web-{number}") for number in range(200)]
    return found + [pod(f"more-{at}", "web", {}, on=f"plain-{at % size}", owner=owners[at % 200]) for at in range(PODS - pods)]


@only_in_prove
def test_a_large_cluster_is_read_in_bounded_memory(request: pytest.FixtureRequest) -> None:
    """By the command in a process of its own: as many nodes, GPUs and pods as there are, in no more memory than a laptop spares.

    ``make test`` scans a small cluster with every kind of object (``test_rights``, ``test_suggestions``)."""
    every = objects()
    asking = sum(
        one["kind"] == "Pod" and any("/" in name for name in one["spec"]["containers"][0]["resources"].get("limits", ())) for one in every
    )
    with posted(request.session, every) as cluster:
        command = [sys.executable, "-P", "-c", WRAPPED, "scan", "--kubeconfig", str(cluster.kubeconfig), "-o", "json"]
        done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True)
    value = json.loads(done.stdout)
    assert value["gpuPods"] == asking
    assert sum(group["nodes"] for group in value["nodeGroups"]) == 7 * (NODES // 8)
    assert int(done.stderr.split()[-1]) < MOST
