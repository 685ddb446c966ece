"""What is read of Nodes, ResourceSlices and the GPU Operator's own objects to tell how devices are offered. No content of an
object makes a reader raise."""

from __future__ import annotations

import calendar
import functools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kube.labels import GPU_DISCOVERED, GPU_FAMILY, GPU_PRESENT, GPU_PRODUCT
from kube.node import Node, label_number
from kube.requests import is_native
from kube.taints import HARD
from kube.tree import LARGEST, map_at, maps_in, text_of

OPERATOR = "nvidia.com"
"""The API group of the GPU Operator's ClusterPolicy (v1) and GPUCluster (v1alpha1); Kyverno has a ClusterPolicy too."""
STACKS = ("ClusterPolicy", "GPUCluster")


class Offering(NamedTuple):
    """What a node shows of its devices."""

    resources: tuple[str, ...] = ()
    """The extended resources of which pods may hold some, sorted. The kubelet keeps those of a device plugin that is gone at an
    allocatable of 0, and those that DRA serves are never among them (KEP-5004; kubernetes#133784)."""
    gpus: bool = False
    """True if its labels say that it has NVIDIA GPUs."""
    labelled: bool = False
    """True if it has labels of GPU Feature Discovery."""
    started: int | None = None
    """When that started there, in Unix seconds; None if its labels do not tell."""


class OfferedSlice(NamedTuple):
    """One ResourceSlice (k8s.io/api/resource/v1)."""

    node: str = ""
    """"" if its devices are not of one node."""
    driver: str = ""
    pool: str = ""
    generation: int = 0
    """Slices of a pool that have an older one than others of it are void."""
    devices: int = 0
    """Those that a pod without tolerations may get."""


class Stack(NamedTuple):
    """A ClusterPolicy or a GPUCluster: what the GPU Operator is told to run."""

    created: int | None = None
    """In Unix seconds; None if that can't be read."""
    discovers: bool = False
    """True if it runs GPU Feature Discovery: a ClusterPolicy does unless ``spec.gfd.enabled`` is false, a GPUCluster never does."""


def offering(node: Node) -> Offering:
    """Return what a node shows. Nodes are selected by the product and the family."""
    return _shared(
        tuple(sorted(name for name, amount in node.allocatable.items() if amount > 0 and not is_native(name))),
        gpus=node.labels.get(GPU_PRESENT) == "true",
        labelled=GPU_PRODUCT in node.labels or GPU_FAMILY in node.labels,
        started=label_number(node.labels, GPU_DISCOVERED),
    )


@functools.lru_cache(maxsize=4096)
def _shared(resources: tuple[str, ...], *, gpus: bool, labelled: bool, started: int | None) -> Offering:
    """Return the same object for nodes that are alike: those without GPUs are."""
    return Offering(resources, gpus, labelled, started)


def slice_of(thing: Any) -> OfferedSlice:
    """Return a ResourceSlice, whole or as ``slimmed``."""
    spec, pool = map_at(thing, "spec"), map_at(thing, "spec", "pool")
    devices = spec.get("devices")
    return OfferedSlice(
        node=text_of(spec.get("nodeName")),
        driver=text_of(spec.get("driver")),
        pool=text_of(pool.get("name")),
        generation=_whole(pool.get("generation")),
        devices=_whole(devices) or sum(1 for one in maps_in(devices) if not _repels(one)),
    )


def slimmed(thing: Any) -> dict[str, Any]:
    """Return the part of a ResourceSlice's spec that is read, with the number of its devices in place of them: each has up to 32
    attributes."""
    one = slice_of(thing)
    return {
        "nodeName": one.node,
        "driver": one.driver,
        "pool": {"name": one.pool, "generation": one.generation},
        "devices": one.devices,
    }


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < LARGEST else 0


def _repels(device: Mapping[Any, Any]) -> bool:
    """Return whether a taint keeps pods off a device. v1beta1 has the fields of a device under ``basic``."""
    return any(taint.get("effect") in HARD for taint in maps_in((map_at(device, "basic") or device).get("taints")))


def stack_of(kind: str, thing: Any) -> Stack | None:
    """Return a ClusterPolicy or a GPUCluster; None for the kind of another API group. An object without apiVersion is one that is
    gone."""
    version = text_of(map_at(thing).get("apiVersion"))
    if version and version.partition("/")[0] != OPERATOR:
        return None
    discovers = kind == "ClusterPolicy" and map_at(thing, "spec", "gfd").get("enabled") is not False
    return Stack(_seconds(text_of(map_at(thing, "metadata").get("creationTimestamp"))), discovers)


_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z", re.ASCII)
"""As the API server writes times (k8s.io/apimachinery meta/v1 Time): UTC, whole seconds."""


def _seconds(time: str) -> int | None:
    found = _TIME.fullmatch(time)
    if found is None:
        return None
    year, month, day, hour, minute, second = map(int, found.groups())
    if not (year and 1 <= month <= 12 and 1 <= day <= 31):
        return None
    return calendar.timegm((year, month, 1, hour, minute, second)) + (day - 1) * 86400
