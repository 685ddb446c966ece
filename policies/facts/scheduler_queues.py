"""What is read of the queues of Volcano and KAI, which their schedulers keep pods within. No content of an object makes a reader raise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kube.requests import amounts, to_units
from kube.tree import map_at, text_of

KIND = "Queue"
GROUPS = {"scheduling.volcano.sh": "volcano", "scheduling.run.ai": "kai"}
"""API group of a Queue -> the queue system, by its name in policies."""
GPU = "nvidia.com/gpu"
_KAI_UNITS = {"cpu": ("cpu", 1), "memory": ("memory", 10**6), "gpu": (GPU, 1)}
"""Field of KAI's Queue -> the resource, and the units of ``kube.requests`` in one of KAI's: thousandths of CPU, 10^6 bytes
(kai-scheduler pkg/apis/scheduling/v2/resources.go)."""


class SchedulerQueue(NamedTuple):
    """One queue, in the units of ``kube.requests``."""

    limits: Mapping[str, int]
    """Resource -> the most that its pods have together; others are not limited."""
    fields: Mapping[str, str]
    """Resource -> the field that limits it: ``spec.capability``."""
    allocated: Mapping[str, int] | None = None
    """What its pods have now; None if that is not known."""
    parent: str = ""


def queue_key(thing: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return (queue system, name) of a Queue; None for one of another API group."""
    system = GROUPS.get(text_of(thing.get("apiVersion")).partition("/")[0])
    return None if system is None else (system, text_of(map_at(thing, "metadata").get("name")))


def scheduler_queue(thing: Mapping[str, Any]) -> SchedulerQueue:
    """Return a Queue of Volcano (scheduling.volcano.sh/v1beta1) or KAI (scheduling.run.ai/v2)."""
    spec, status = map_at(thing, "spec"), map_at(thing, "status")
    allocated = amounts(map_at(status, "allocated")) if "allocated" in status else None
    if queue_key(thing) is not None and text_of(thing.get("apiVersion")).startswith("scheduling.volcano.sh/"):
        limits = amounts(map_at(spec, "capability"))
        return SchedulerQueue(limits, dict.fromkeys(limits, "spec.capability"), allocated, text_of(spec.get("parent")))
    limits = dict(_kai_limits(map_at(spec, "resources")))
    fields = {resource: f"spec.resources.{field}.limit" for field, (resource, _) in _KAI_UNITS.items()}
    return SchedulerQueue(limits, fields, None, text_of(spec.get("parentQueue")))  # KAI allocates fractions of GPUs


def _kai_limits(resources: Mapping[Any, Any]) -> Iterator[tuple[str, int]]:
    """Yield the limits of KAI's queue; -1 is none."""
    for field, (resource, unit) in _KAI_UNITS.items():
        limit = to_units("count", map_at(resources, field).get("limit"))
        if limit is not None and limit >= 0:
            yield resource, limit * unit
