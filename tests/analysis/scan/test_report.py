"""What is found of three clusters, each with its own platform."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.scan import wording
from analysis.scan.finding import Finding
from analysis.scan.report import NEEDS
from tests.support.counts import count
from tests.support.recorded import eks, gke, on_premises
from tests.support.recorded.parts import GPU, TAINT, node, pod
from tests.support.recorded.scanned import scanned

FOUND: dict[str, set[tuple[str, str, int, int]]] = {
    "eks": {
        ("pending", "Job shop/odd", 1, 1),
        ("never-fits", "Job research/sixteen", 1, 16),
        ("never-fits", "Job research/slice", 1, 1),
        ("never-fits", "ReplicaSet web/llm-7d9", 1, 1),
        ("misspelt-name", "Job shop/typo", 1, 0),
        ("run-on-spot", "PyTorchJob research/llama", 2, 14),
        ("run-unprotected", "PyTorchJob research/llama", 2, 14),
        ("notebook-on-large-gpu", "StatefulSet research/ana-0", 1, 1),
        ("nodes-untainted", "NodePool gpu-train", 0, 32),
        ("pool-consolidates", "NodePool gpu-train", 3, 22),
        ("pool-expires", "NodePool gpu-train", 3, 22),
        ("pool-no-grace", "NodePool gpu-train", 3, 22),
        ("pool-no-gpu-limit", "NodePool gpu-train", 3, 22),
        ("pool-untainted", "NodePool gpu-train", 3, 22),
        ("pool-family-without-gpu", "NodePool gpu-small", 0, 0),
        ("node-class-latest-image", "EC2NodeClass gpu", 3, 22),
        ("unlisted-name", "resource acme.example/vgpu", 1, 1),
    },
    "gke": {
        ("pending", "Pod lab/h100-0", 1, 1),
        ("pending", "Pod lab/slice-0", 1, 1),
        ("run-on-spot", "JobSet pretraining/pretrain", 2, 14),
        ("run-unprotected", "JobSet pretraining/pretrain", 2, 14),
        ("notebook-on-large-gpu", "Pod lab/jupyter-0", 1, 1),
    },
    "on_premises": {
        ("never-fits", "Pod physics/twelve-0", 1, 12),
        ("never-fits", "Pod vision/bare-0", 1, 4),
        ("never-fits", "Pod physics/cut-0", 1, 1),
        ("run-unprotected", "Job vision/detect", 2, 16),
        ("run-unprotected", "Job physics/simulate", 1, 4),
        ("notebook-on-large-gpu", "Pod shared/lab-0-0", 1, 2),
        ("nodes-untainted", "nodes with T4", 0, 4),
        ("advertised-twice", "nodes with H100-80GB", 0, 8),
        ("gpus-missing", "nodes with A100-80GB", 0, 8),
        ("mig-not-configured", "nodes with A100-80GB", 0, 8),
    },
}
"""(kind, where, pods, GPUs): all that was put into each on purpose, and nothing else"""
CLUSTERS = {"eks": eks, "gke": gke, "on_premises": on_premises}


def named(finding: Finding) -> str:
    kind, namespace, name = finding.where
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


@pytest.mark.parametrize(("name", "module"), CLUSTERS.items())
def test_what_is_wrong_is_found_and_nothing_else(name: str, module: ModuleType) -> None:
    """Pods without a node, runs, notebooks, node pools and labels, each with the workload or group that it is about."""
    report = scanned(module.objects()).report
    assert {(one.kind, named(one), one.pods, one.gpus) for one in report.findings} == FOUND[name]


@pytest.mark.parametrize("module", CLUSTERS.values())
def test_pods_and_nodes_that_are_alike_are_counted_and_not_listed(module: ModuleType) -> None:
    """Of a cluster four times as large there are as many findings on workloads and groups, with four times the pods and GPUs."""
    one, four = (scanned(module.objects(size)).report for size in (1, 4))

    def counted(findings: Any) -> dict[tuple[str, str], tuple[int, int]]:
        found: dict[tuple[str, str], tuple[int, int]] = {}
        for finding in findings:
            key = finding.kind, finding.where.kind + (finding.where.name if finding.where.kind != "Pod" else "")
            pods, gpus = found.get(key, (0, 0))
            found[key] = pods + finding.pods, gpus + finding.gpus
        return found

    single = {key: (pods * 4, gpus * 4) for key, (pods, gpus) in counted(one.findings).items() if "ana-" not in key[1]}
    assert {key: value for key, value in counted(four.findings).items() if "ana-" not in key[1]} == single
    assert len(four.groups) == len(one.groups)


def unpriced(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects without the labels that tell a machine or a model."""
    keys = ("node.kubernetes.io/instance-type", "cloud.google.com/gke-accelerator", "nvidia.com/gpu.product")
    for item in objects:
        labels = item["metadata"].get("labels") or {}
        item["metadata"]["labels"] = {key: value for key, value in labels.items() if key not in keys}
    return objects


def test_dollars_are_those_of_the_nodes_that_the_pods_are_on() -> None:
    """Of p4d.24xlarge, by the devices held."""
    found = scanned(eks.objects())
    (on_spot,) = found.of("run-on-spot")
    assert on_spot.usd == pytest.approx(14 / 8 * 21.957642)
    assert found.report.usd == pytest.approx(4 * 21.957642 + 3 * 1.212)
    assert scanned(gke.objects()).report.usd == pytest.approx(2 * 8 * 3.673385 + 4 * 1.06)
    assert scanned(unpriced(gke.objects())).report.usd is None


def test_what_the_library_would_have_mended_is_counted_by_pods() -> None:
    """Each pod once: one of which two things are found is mended if neither would be found."""
    library = scanned(eks.objects()).report.library
    assert (library.pods, library.fixed, library.gpus) == (6, 3, 15)
    assert scanned(gke.objects()).report.library.fixed == 2


def test_every_kind_of_finding_has_words_and_says_what_it_rests_on() -> None:
    """A title, a fact, an advice and a reason."""
    for name, module in CLUSTERS.items():
        for finding in scanned(module.objects()).report.findings:
            said = (wording.title(finding.kind), wording.fact(finding), wording.advice(finding), wording.why(finding.kind))
            assert all(said), name
            assert not any("{" in text and "alias" not in text for text in said), said
    assert set(NEEDS) | {"misspelt-name"} == set(wording.ORDER)


def test_a_cluster_without_gpus_has_no_findings() -> None:
    """Nor has an empty one."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}}
    for objects in ([], [node]):
        report = scanned(objects).report
        assert (list(report.findings), report.pods, report.groups) == ([], 0, [])


@pytest.mark.parametrize("module", CLUSTERS.values())
@settings(max_examples=count(3, 50), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_order_of_objects_says_nothing(module: ModuleType, seed: int) -> None:
    """An API server lists in the order of its keys, a dump in any."""
    objects = module.objects(2)
    before = scanned(objects).report
    Random(seed).shuffle(objects)
    after = scanned(objects).report
    assert [_without_names(one) for one in after.findings] == [_without_names(one) for one in before.findings]
    assert (after.groups, after.library) == (before.groups, before.library)


def _without_names(finding: Finding) -> Finding:
    """The first few pods that are named are those that were read first; sums of prices differ in their last digits."""
    usd = None if finding.usd is None else round(finding.usd, 6)
    return replace(finding, names=(), usd=usd)


@pytest.mark.parametrize("module", CLUSTERS.values())
@settings(max_examples=count(3, 50), deadline=None)
@given(data=st.data())
def test_fewer_objects_never_break_it(module: ModuleType, data: st.DataObject) -> None:
    """Whatever is missing of a cluster: a node of a pod, the owner of an owner, the class of a NodePool."""
    objects = module.objects()
    left = data.draw(st.lists(st.sampled_from(range(len(objects))), unique=True))
    report = scanned([objects[at] for at in left]).report
    for finding in report.findings:
        assert wording.fact(finding)
        assert finding.fixed is None or 0 <= finding.fixed <= finding.pods
    assert report.library.fixed <= report.library.pods <= report.pods


A100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.count": "1"}
SINGLE = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/gpu.count": "7"}
GKE = {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4", "cloud.google.com/gke-accelerator-count": "2"}
EIGHT = {"node.kubernetes.io/instance-type": "p4d.24xlarge"}
CORES = "tencent.com/vcuda-core"
REGISTER = {"hami.io/node-nvidia-register": '[{"id":"GPU-1","count":10,"devmem":40960,"health":true,"type":"NVIDIA A100-SXM4-40GB"}]'}


@pytest.mark.parametrize(
    ("labels", "devices", "asks", "gpus", "held", "usd"),
    [
        (A100, {"nvidia.com/mig-1g.5gb": 2, "nvidia.com/mig-2g.10gb": 1}, {"nvidia.com/mig-2g.10gb": 1}, 1, 0.29, 2.74),
        (A100 | {"nvidia.com/gpu.replicas": "4"}, {GPU: 4}, {GPU: 2}, 1, 0.5, 2.74),
        (SINGLE, {GPU: 7}, {GPU: 7}, 1, 1.0, 2.74),
        (EIGHT, {GPU: 8}, {GPU: 8}, 8, 8.0, 21.96),
        (EIGHT, {GPU: 32}, {GPU: 1}, 8, 0.25, 21.96),
        (EIGHT, {GPU: 7}, {GPU: 7}, 8, 7.0, 21.96),
        (EIGHT, {}, {}, 8, 0.0, 21.96),
        (EIGHT, {CORES: 800}, {CORES: 50}, 8, 0.5, 21.96),
        (EIGHT, {CORES: 800, "tencent.com/vcuda-memory": 400}, {CORES: 50, "tencent.com/vcuda-memory": 10}, 8, 0.5, 21.96),
        (GKE, {GPU: 16}, {GPU: 4}, 2, 0.5, None),
        (EIGHT, {"aliyun.com/gpu-mem": 320}, {"aliyun.com/gpu-mem": 20}, 8, 0.5, 21.96),
        ({}, {GPU: 10}, {GPU: 1, "nvidia.com/gpumem": 20480}, 1, 0.5, 2.74),
        ({}, {"aws.amazon.com/neuron": 16, "aws.amazon.com/neuroncore": 32}, {"aws.amazon.com/neuroncore": 2}, 16, 2.0, None),
    ],
)  # fmt: skip
def test_physical_gpus_are_counted_and_priced(
    labels: dict[str, str], devices: dict[str, int], asks: dict[str, int], gpus: int, held: float, usd: float | None
) -> None:
    """Whatever parts of them a node offers; a machine costs what it costs."""
    one = node("n", labels, devices, TAINT)
    one["metadata"]["annotations"] = REGISTER if "nvidia.com/gpumem" in asks else {}
    (group,) = scanned([one, pod("p", "ns", asks, on="n")]).report.groups
    assert (group.gpus, round(float(group.held), 2), None if group.usd is None else round(group.usd, 2)) == (gpus, held, usd)
