"""The cluster of the pictures: that of `make cluster`, with teams that have pods, and policies that are still in Audit."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from documents.diff import unified
from tests.pictures.one_job import Outcome
from tests.testcluster.__main__ import WITHOUT, whole
from tests.testcluster.addons.berth import ROOT, event
from tests.testcluster.controlplane.cluster import Cluster

WORKLOADS = Path(__file__).with_name("workloads.yaml")
JOB = "docs/examples/train.yaml"
TEAM = "research"
IN_AUDIT = ("training", "inference", "batch-on-spot")
"""Policies of the library that this cluster tries out"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """It stands; nothing in it changes any more."""

    cluster: Cluster
    kubeconfig: Path
    without: dict[str, Any]
    """the pod of the Job where Berth is not asked"""
    with_berth: dict[str, Any]
    node: dict[str, Any]
    """where that one runs"""
    edits: tuple[str, ...]
    """the policies that asked for what its pod was given"""

    def outcomes(self) -> tuple[Outcome, Outcome]:
        """Of both pods, in the words of kube-scheduler."""
        (reason,) = {one["message"] for one in self.without["status"]["conditions"] if one.get("reason") == "Unschedulable"}
        bound = [f"on node {self.node['metadata']['name']}", self.node["metadata"]["labels"]["nvidia.com/gpu.product"]]
        return self._outcome(self.without, [reason]), self._outcome(self.with_berth, bound)

    def _outcome(self, pod: dict[str, Any], says: list[str]) -> Outcome:
        return Outcome(pod=pod["metadata"]["name"], namespace=pod["metadata"]["namespace"], phase=pod["status"]["phase"], says=says)

    def difference(self) -> list[str]:
        """Of what both pods ask of a node, as they are stored."""
        lines = unified(_asked(self.without), _asked(self.with_berth), "without Berth", "with Berth")
        return [line for line in lines if not line.startswith(("---", "+++"))]


def _asked(pod: dict[str, Any]) -> dict[str, Any]:
    """What the scheduler reads, with what the Job wrote of devices; the API server's own tolerations, which all pods have, are left out."""
    spec = pod["spec"]
    tolerations = [one for one in spec.get("tolerations", ()) if not one["key"].startswith("node.kubernetes.io/")]
    (container,) = spec["containers"]
    found = {"containers": [{"name": container["name"], "resources": {"limits": container["resources"]["limits"]}}]}
    return {
        "spec": found | ({"tolerations": tolerations} if tolerations else {}) | {name: spec[name] for name in ("affinity",) if name in spec}
    }


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    """Raises ClusterFailed, NoProgram and BuildFailed."""
    with whole(folder, played=True) as (cluster, lines):
        for name in IN_AUDIT:
            value = {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": name}}
            cluster.api.patch(value, {"spec": {"mode": "Audit"}})
        for value in yaml.safe_load_all(WORKLOADS.read_text()):
            assert cluster.api.apply(value, value["metadata"].get("namespace")).ok, value
        for namespace in (WITHOUT, TEAM):
            done = subprocess.run(
                cluster.kubectl("apply", "-n", namespace, "-f", str(ROOT / JOB)), capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
        cluster.wait_for(lambda: _settled(cluster), "all pods but one to run")
        without = _pod(cluster, WITHOUT)
        with_berth = _pod(cluster, TEAM)
        yield Scene(
            cluster=cluster,
            kubeconfig=cluster.kubeconfig,
            without=without,
            with_berth=with_berth,
            node=cluster.api.get("v1", "Node", with_berth["spec"]["nodeName"]) or {},
            edits=_policies([event(line) for line in lines()]),
        )


def _pod(cluster: Cluster, namespace: str) -> dict[str, Any]:
    (found,) = cluster.api.list("v1", "Pod", namespace, labelSelector="batch.kubernetes.io/job-name=train")
    return found


def _settled(cluster: Cluster) -> bool:
    pods = cluster.api.list("v1", "Pod")
    waiting = [pod for pod in pods if pod["status"]["phase"] != "Running"]
    reasons = {one.get("reason") for pod in waiting for one in pod["status"].get("conditions", ())}
    return len(pods) > 10 and [pod["metadata"]["namespace"] for pod in waiting] == [WITHOUT] and "Unschedulable" in reasons


def _policies(events: list[dict[str, Any]]) -> tuple[str, ...]:
    """Those that had something written into the pod of the Job, as Berth's log says."""
    decided = [one for one in events if one.get("phase") == "mutate" and (one.get("namespace"), one.get("pod")) == (TEAM, "train-")]
    assert decided, json.dumps(events)[:2000]
    return tuple(dict.fromkeys(name for edit in decided[0]["edits"] for name in edit["policies"]))
