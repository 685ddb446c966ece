"""Shared memory: a container with GPUs has more of it than the 64 MiB of a container runtime, with which NCCL and
data loaders end.

Reads   mounts at /dev, /dev/shm and below, spec.hostIPC, spec.os, the volume of Berth's own name, memory limits
Writes  one volume in memory (``default.sharedMemory``), and its mount at /dev/shm in each container that has GPUs
        and mounts nothing there
Checks  nothing
Never   touches a mount or a volume of the author's; acts on a pod that shares memory with its host, or on Windows
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube import quantity
from kube.pod import NONE, Container, is_requested, list_at, mapping_at
from kube.tree import Raw
from policies.messages import cut_text, phrase
from policies.offers.merging import TightestLimit, most
from policies.planning.plan import Plan
from policies.planning.requirements import Demands
from policies.pods.mounts import SHARED_MEMORY, VOLUME, mounts, volumes
from policies.request import Request
from policies.verdict import Edit, Remark, at_field

NAME = "shared_memory"


def mutate(request: Request, plan: Plan) -> Iterator[Edit | Remark]:
    """Add the volume, then its mounts. The author of a container with a memory limit is told what counts against it."""
    size = plan.demands.merged(_size)
    if size is None or not plan.actor.fills or _shares_its_hosts(plan):
        return
    lacking = [container for container in plan.pod.containers if _has_gpus(plan, container) and not any(mounts(container))]
    if not lacking:
        return
    there = next((volume for volume in volumes(plan.pod.spec) if volume.get("name") == VOLUME), None)
    if there is not None and not _in_memory(there):
        on = at_field("spec.default.sharedMemory", size.policies)
        yield Remark(code="BERTH-225", found=phrase("volume there", volume=VOLUME), rule=NAME, fields=on)
        return
    amount = quantity.binary(size.value)
    yield from (_limited(container, amount, size.policies) for container in lacking if "memory" in container.limits)
    if there is None:
        volume = {"name": VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": amount}}
        yield Edit(op="add", path=("spec", "volumes", "-"), value=volume, rule=NAME, policies=size.policies)
    for container in lacking:
        mount = {"name": VOLUME, "mountPath": SHARED_MEMORY}
        yield Edit(op="add", path=(*container.path, "volumeMounts", "-"), value=mount, rule=NAME, policies=size.policies)


def _size(demands: Demands) -> TightestLimit | None:
    return most((compiled.policy.default.shared_memory, compiled.id) for scope in demands.scopes for compiled in scope)


def _shares_its_hosts(plan: Plan) -> bool:
    """Return whether /dev/shm of its containers is the host's (hostIPC), or does not exist (Windows)."""
    return plan.pod.spec.get("hostIPC") is True or plan.pod.is_windows


def _has_gpus(plan: Plan, container: Container) -> bool:
    """Return whether the container gets devices: by resource name, by a claim, or, where the pod has a part of one by
    annotation alone, as any container that is no init container."""
    if any(is_requested(container, asked.resource.name) for asked in plan.asked):
        return True
    if plan.devices.claimed and list_at(mapping_at(container.raw, "resources", container.path), "claims", (*container.path, "resources")):
        return True
    return plan.devices.fraction != NONE and not plan.asked and not plan.devices.claimed and not container.init


def _in_memory(volume: Raw) -> bool:
    source: Any = volume.get("emptyDir")
    return isinstance(source, dict) and source.get("medium") == "Memory"


def _limited(container: Container, amount: str, policies: tuple[str, ...]) -> Remark:
    found = phrase(
        "text",
        container=cut_text(container.name, 20),
        size=amount,
        at=SHARED_MEMORY,
        limit=cut_text(str(container.limits["memory"]), 12),
        policies=policies,
    )
    path = (*container.path, "resources", "limits", "memory")
    return Remark(code="BERTH-224", found=found, rule=NAME, policies=policies, path=path)
