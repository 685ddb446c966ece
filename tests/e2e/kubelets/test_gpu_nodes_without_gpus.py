"""A GPU node that offers no GPU, or too few, on a real kubelet: what `scan` and `why` say, and when they stop saying it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout

import pytest

from analysis.scan.of_nodes import missing_devices
from cli.main import main
from tests.testcluster.addons.devices import device_plugin
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.images.small_image import ANSWERING
from tests.testcluster.kubelets.rig import Rig

GPU, NODE = "nvidia.com/gpu", "node-3"
MACHINE = {"node.kubernetes.io/instance-type": "g5.12xlarge", "karpenter.k8s.aws/instance-gpu-name": "a10g"}
"""AWS's: four A10G"""
WAITING = "waits-for-a-gpu"
KINDS = {"gpus-missing": ("expected", "offered"), "gpus-unhealthy": ("capacity", "allocatable")}
"""Kind of a finding -> its values: GPUs that a node should have, and GPUs that it offers"""


@pytest.fixture
def node(kubelets: Rig) -> Iterator[str]:
    """A node whose labels say that it has four GPUs, and a pod that waits for one of them."""
    value = kubelets.api.get("v1", "Node", NODE)
    assert value is not None
    kubelets.api.patch(value, {"metadata": {"labels": MACHINE}})
    containers = [{"name": "main", "image": ANSWERING, "resources": {"limits": {GPU: "1"}}}]
    spec = {"containers": containers, "nodeSelector": MACHINE, "terminationGracePeriodSeconds": 1}
    kubelets.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": WAITING}, "spec": spec})
    yield NODE
    kubelets.api.patch(value, {"metadata": {"labels": dict.fromkeys(MACHINE)}})


def run_command(kubelets: Rig, *words: str) -> Raw:
    """Return what a command prints as JSON."""
    with redirect_stdout(io.StringIO()) as out:
        assert main([*words, "--kubeconfig", str(kubelets.kubeconfig), "-o", "json"]) == 0
    value: Raw = json.loads(out.getvalue())
    return value


def missing(kubelets: Rig) -> list[tuple[str, int, int]]:
    """Return (kind, GPUs that the node should have, GPUs that it offers) of each finding of the scan on missing GPUs."""
    findings = [one for one in run_command(kubelets, "scan")["findings"] if one["kind"] in KINDS]
    return [(one["kind"], *(one["values"].get(name, 0) for name in KINDS[one["kind"]])) for one in findings]


def test_findings_come_and_go_with_the_device_plugin(kubelets: Rig, node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No device plugin, one that runs, one device that is broken, and a plugin that has died: the findings are those of the moment. A node
    that is as young as this one may still be set up; it is taken for an old one."""
    assert missing(kubelets) == []
    monkeypatch.setattr(missing_devices, "YOUNG", 0)
    assert missing(kubelets) == [("gpus-missing", 4, 0)]
    plugin = device_plugin.start(kubelets, node, GPU, healthy=4)
    assert missing(kubelets) == []
    kubelets.cluster.wait_for(lambda: _runs(kubelets), "the pod that waited to run")
    plugin.offer(healthy=3, unhealthy=1)
    assert missing(kubelets) == [("gpus-unhealthy", 4, 3)]
    plugin.offer(healthy=4)
    assert missing(kubelets) == []
    plugin.end()
    assert missing(kubelets) == [("gpus-unhealthy", 4, 0)]
    again = device_plugin.start(kubelets, node, GPU, healthy=4)
    assert missing(kubelets) == []
    again.end()


def _runs(kubelets: Rig) -> bool:
    pod = kubelets.api.get("v1", "Pod", WAITING, "default")
    return pod is not None and pod["status"].get("phase") == "Running"
