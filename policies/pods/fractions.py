"""The annotations and resource names by which a pod asks a sharing scheduler for a part of a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kube.pod import Pod
from kube.tree import Path, Raw

FRACTIONS = ("gpu-fraction", "gpu-memory")
"""Annotations of KAI and Run:ai that stand for a part of a GPU without a resource."""
_FRACTIONS = frozenset(FRACTIONS)
FRACTION_ENDS = (".gpu-memory.request", ".gpu-memory.limit", ".gpu-memory.portion.limit")
"""Ends of KAI's annotations about one container, ``nvidia.com/container.NAME.gpu-memory.request``; what is before the container's name can
be configured (kai-scheduler pkg/common/constants, NvFractions; kai-scheduler#2041, #2072)."""
FRACTION_DEVICES = "gpu-fraction-num-devices"
"""Annotation of KAI: the number of GPUs of which the pod gets that part (kai-scheduler
pkg/common/constants)."""
SHARED_BY_NAME = (
    "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores",
    "volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores",
)  # fmt: skip
_SHARED_BY_NAME = frozenset(SHARED_BY_NAME)
"""Resource names, used beside a GPU's, for the part of it that the container gets: HAMi's, and those of
Volcano's vGPU device plugin (volcano-vgpu-device-plugin doc/config.md)."""
SHARING_WORDS = (
    "gpu-fraction", "gpu-memory", "gpu-sm-", "kai.scheduler/container.", "nvidia.com/container.",
    "hami.io/", "nvidia.com/use-gpu", "nvidia.com/nouse-gpu", "nvidia.com/vgpu-", "volcano.sh/vgpu-",
)  # fmt: skip
"""Prefixes of the annotations that tell a sharing scheduler which part of a GPU a pod gets, or of which
GPU: KAI and Run:ai by pod and by container (kai-scheduler pkg/common/constants, kai-gpu-fractioning), HAMi
(docs/userguide), Volcano (vgpu-mode). If such a pod also asks for a GPU by resource name, no default
chooses nodes for it."""


def fraction_keys(annotations: Iterable[str]) -> list[str]:
    """Return the keys of annotations by which a pod asks for a part of a GPU."""
    return [key for key in annotations if key in _FRACTIONS or key.endswith(FRACTION_ENDS)]


def fraction_paths(pod: Pod) -> Iterator[Path]:
    """Yield the paths of the annotations by which a pod asks for a part of a GPU, or of several."""
    yield from (("metadata", "annotations", key) for key in pod.annotations if key == FRACTION_DEVICES or fraction_keys([key]))


def annotated_fraction(pod: Pod) -> bool:
    """Return whether the pod asks KAI or Run:ai for a part of a GPU."""
    return bool(fraction_keys(pod.annotations))


def is_fraction(pod: Pod) -> bool:
    """Return whether a pod that asks for GPUs gets a part of them: from KAI and Run:ai by annotation, from
    HAMi by resource names beside the GPU's."""
    if annotated_fraction(pod):
        return True
    return not all(_SHARED_BY_NAME.isdisjoint(c.limits) and _SHARED_BY_NAME.isdisjoint(c.requests) for c in pod.containers)


def as_asked(pod: Pod, old_pod: Raw | None) -> Pod:
    """Return the pod; one from which an update takes the last annotation that asks for a part of a GPU still has it."""
    old = Pod(old_pod).annotations if old_pod is not None and not annotated_fraction(pod) else {}
    if not (keys := fraction_keys(old)):
        return pod
    annotations = {**{key: old[key] for key in keys}, **pod.annotations}
    return Pod({**pod.raw, "metadata": {**pod.metadata, "annotations": annotations}})
