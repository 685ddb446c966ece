"""Notebooks that hold GPUs made for training: they compute for minutes a day, and hold the device for all of it."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.admission_preview import Admission
from analysis.scan.finding import Hit
from analysis.scan.seen import GpuPod, ScannedCluster
from kube.scheduling import admits

LARGE_GB = 40
"""Memory from which a GPU is one for training: the smallest A100. What notebooks usually get (T4 16, L4 and A10G 24 GB) has less."""
SEVERAL = 2
"""Devices from which a notebook holds more than interactive work uses."""


def find(seen: ScannedCluster, admission: Admission) -> Iterator[Hit]:
    """Yield the notebooks that hold whole large GPUs, or several of any."""
    for pod in seen.pods:
        if pod.role != "notebook" or pod.node is None or not _large(pod, seen):
            continue
        gpu = pod.node.gpu
        fixed = not admits(admission.of(pod.stored).pod, pod.node.labels)
        model, memory = ("", 0) if gpu is None else (gpu.model, gpu.memory_gb or 0)
        yield Hit("notebook-on-large-gpu", pod, (("model", model), ("memory", memory), ("each", pod.gpus)), fixed, ("Node",))


def _large(pod: GpuPod, seen: ScannedCluster) -> bool:
    whole = any((resource := seen.catalog.resource(name)) is not None and resource.kind == "gpu" for name in pod.names)
    gpu = pod.node.gpu if pod.node is not None else None
    return whole and (pod.gpus >= SEVERAL or (gpu is not None and (gpu.memory_gb or 0) >= LARGE_GB))
