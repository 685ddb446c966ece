"""Accelerators that nodes should have and do not offer, and why."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.scan.finding import Finding
from analysis.scan.wording import advice, fact
from tests.support.recorded.parts import GPU, TAINT, node, pod
from tests.support.recorded.scanned import scanned

TYPE = "node.kubernetes.io/instance-type"
KINDS = ("gpus-missing", "gpus-unhealthy", "slices-missing")
SLICES = "nvidia.com/mig-1g.10gb"
APPLIED = {"nvidia.com/mig.config.state": "success", "nvidia.com/mig.strategy": "mixed"}


def findings(labels: dict[str, str], devices: dict[str, int], *more: Any, **status: Any) -> list[Finding]:
    every = scanned([node("n", labels, devices, TAINT, **status), *more]).report.findings
    return [one for one in every if one.kind in KINDS]


@pytest.mark.parametrize(
    ("labels", "devices", "kind", "numbers"),
    [
        ({TYPE: "p3.2xlarge"}, {}, "gpus-missing", (1, 0)),
        ({TYPE: "p5.48xlarge"}, {GPU: 6}, "gpus-missing", (8, 6)),
        ({TYPE: "ml.g5.12xlarge"}, {}, "gpus-missing", (4, 0)),
        ({TYPE: "Standard_ND96isr_MI300X_v5"}, {"amd.com/gpu": 7}, "gpus-missing", (8, 7)),
        ({"karpenter.k8s.aws/instance-gpu-count": "4"}, {}, "gpus-missing", (4, 0)),
        ({TYPE: "BM.GPU.H100.8"}, {}, "gpus-missing", (0, 0)),
        ({TYPE: "bm3-ai-1xlarge-h100-80-8"}, {}, "gpus-missing", (0, 0)),
        ({"cloud.google.com/gke-accelerator": "nvidia-l4"}, {}, "gpus-missing", (0, 0)),
        ({"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice"}, {}, "gpus-missing", (0, 0)),
        ({"kubernetes.azure.com/accelerator": "nvidia"}, {}, "gpus-missing", (0, 0)),
        ({"feature.node.kubernetes.io/pci-10de.present": "true"}, {}, "gpus-missing", (0, 0)),
        ({"karpenter.k8s.aws/instance-accelerator-count": "16"}, {}, "gpus-missing", (16, 0)),
        ({f"{SLICES}.count": "7"}, {SLICES: 1}, "slices-missing", (7, 1)),
        ({"nvidia.com/mig.config": "all-1g.10gb", **APPLIED}, {GPU: 1}, "slices-missing", (0, 0)),
        ({f"{SLICES}.count": "7", f"{SLICES}.replicas": "2"}, {SLICES: 7}, "slices-missing", (14, 7)),
    ],
)  # fmt: skip
def test_a_node_that_offers_less_than_its_labels_say_is_found(
    labels: dict[str, str], devices: dict[str, int], kind: str, numbers: tuple[int, int]
) -> None:
    """The machine type counts first, then labels of clouds and of discovery agents; a number that is not told is 0."""
    (one,) = findings(labels, devices)
    assert (one.kind, one.values["label"], (one.values["expected"], one.values["offered"])) == (kind, next(iter(labels)), numbers)


@pytest.mark.parametrize(
    ("labels", "devices"),
    [
        ({TYPE: "p5.48xlarge"}, {GPU: 8}),
        ({TYPE: "p5.48xlarge"}, {GPU: 80}),
        ({TYPE: "p4d.24xlarge"}, {"nvidia.com/mig-4g.20gb": 8}),
        ({TYPE: "p4d.24xlarge"}, {"nvidia.com/pgpu": 8}),
        ({TYPE: "p3.2xlarge"}, {"tencent.com/vcuda-core": 100}),
        ({TYPE: "p3.2xlarge"}, {"example.com/vgpu": 4}),
        ({TYPE: "m6i.large"}, {}),
        ({TYPE: "BM.Standard.E5.192"}, {}),
        ({TYPE: "BM.GPU.H100.8"}, {GPU: 8}),
        ({"karpenter.k8s.aws/instance-gpu-count": "0"}, {}),
        ({"nvidia.com/gpu.present": "false"}, {}),
        ({"accelerator": "none"}, {}),
        ({f"{SLICES}.count": "7"}, {f"{SLICES}.shared": 14}),
        ({"nvidia.com/mig.config": "all-disabled", **APPLIED}, {GPU: 1}),
        ({"nvidia.com/mig.config": "all-1g.10gb", **APPLIED, "nvidia.com/mig.strategy": "single"}, {GPU: 7}),
    ],
)
def test_a_node_that_offers_its_devices_in_any_way_is_not_found(labels: dict[str, str], devices: dict[str, int]) -> None:
    """As slices, shares, whole GPUs of virtual machines, or by a name that nobody knows."""
    assert findings(labels, devices) == []


def test_a_node_that_starts_is_not_yet_found() -> None:
    """Neither one that is not ready, nor one that has a taint which goes by itself."""
    waiting = {"conditions": [{"type": "Ready", "status": "False"}]}
    assert findings({TYPE: "p3.2xlarge"}, {}, **waiting) == []
    starting = node("n", {TYPE: "p3.2xlarge"}, {}, {"key": "node.cilium.io/agent-not-ready", "effect": "NoExecute"})
    assert [one.kind for one in scanned([starting]).report.findings if one.kind in KINDS] == []
    young = node("n", {TYPE: "p3.2xlarge"}, {})
    young["metadata"]["creationTimestamp"] = "2999-01-01T00:00:00Z"
    assert [one.kind for one in scanned([young]).report.findings if one.kind in KINDS] == []


def test_devices_that_are_not_healthy_are_found() -> None:
    """As the kubelet counts them: capacity above allocatable; the machine adds nothing to it."""
    broken = node("n", {TYPE: "p5.48xlarge"}, {GPU: 8}, TAINT)
    broken["status"]["allocatable"] = broken["status"]["allocatable"] | {GPU: "7"}
    (one,) = [one for one in scanned([broken]).report.findings if one.kind in KINDS]
    assert (one.kind, one.values["capacity"], one.values["allocatable"]) == ("gpus-unhealthy", 8, 7)


def test_what_a_dra_driver_publishes_or_may_publish_is_not_missing() -> None:
    """A class of the vendor's driver without any ResourceSlice in the dump says that they were not read."""
    spec = {"driver": "gpu.nvidia.com", "nodeName": "n", "devices": [{"name": "d"}]}
    published = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}
    assert findings({TYPE: "p5.48xlarge"}, {}, published) == []
    selector = {"cel": {"expression": 'device.driver == "gpu.nvidia.com"'}}
    known = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu.nvidia.com"},
        "spec": {"selectors": [selector]},
    }
    assert findings({TYPE: "p5.48xlarge"}, {}, known) == []


def daemon(name: str, image: str, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": image}], **spec}}
    metadata = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": {"template": template}}


IMAGE = "nvcr.io/nvidia/k8s-device-plugin:v0.19.0"
TOLERATED = [{"key": GPU, "operator": "Exists"}]


@pytest.mark.parametrize(
    ("daemons", "cause", "words"),
    [
        ([daemon("plugin", IMAGE)], "kept-off", "DaemonSet kube-system/plugin does not run there: taint nvidia.com/gpu=present:NoSchedule"),
        (
            [daemon("plugin", IMAGE, tolerations=TOLERATED, nodeSelector={"nvidia.com/gpu.deploy.device-plugin": "true"})],
            "kept-off",
            "label nvidia.com/gpu.deploy.device-plugin is missing, required: true",
        ),
        ([daemon("plugin", IMAGE, tolerations=TOLERATED)], "runs", "runs there, so its driver or the device itself"),
        ([daemon("logs", "fluent-bit:1"), daemon("amdgpu-device-plugin", "rocm/k8s-device-plugin")], "none", "for nvidia was found"),
    ],
)  # fmt: skip
def test_the_cause_is_what_keeps_the_device_plugin_off(daemons: list[Any], cause: str, words: str) -> None:
    """A taint or a label; or it runs there; or there is none of this vendor."""
    (one,) = findings({TYPE: "p5.48xlarge"}, {}, *daemons)
    assert one.values["cause"] == cause
    assert words in fact(one)


def test_without_daemonsets_the_pods_of_the_device_plugin_tell() -> None:
    """It runs on another node, or on this one."""
    owner = ("apps/v1", "DaemonSet", "nvidia-device-plugin-daemonset")
    bare, well = node("n", {TYPE: "p3.2xlarge"}, {}, TAINT), node("m", {TYPE: "p3.2xlarge"}, {GPU: 1}, TAINT)

    def cause(on: str) -> object:
        report = scanned([bare, well, pod("plugin", "gpu-operator", {}, on=on, owner=owner)], daemons=()).report
        return next(one.values["cause"] for one in report.findings if one.kind == "gpus-missing")

    assert (cause("m"), cause("n")) == ("elsewhere", "runs")


def test_a_mig_configuration_that_failed_is_the_cause() -> None:
    """It is told before the device plugin."""
    labels = {TYPE: "p4d.24xlarge", "nvidia.com/mig.config": "all-1g.5gb", "nvidia.com/mig.config.state": "failed"}
    (one,) = findings(labels, {})
    assert (one.values["cause"], one.values["state"]) == ("mig", "failed")
    assert "nvidia-mig-manager" in advice(one)
