"""The forms in which a generated pod is tried, and the hidden labels by which kube-scheduler tells what is inside a policy."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.e2e.differential.default_worlds import WORLDS
from tests.e2e.differential.nodes import AMD, FLEET, NEURON, NVIDIA, TRUTH, FleetNode
from tests.e2e.differential.requested import RequestedPod
from tests.e2e.differential.worlds import Wish, World
from tests.testcluster.controlplane.api import Reply

Raw = dict[str, Any]
SERVER_SET = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "namespace", "name")
APPLIED = "berth.dev/applied"


@dataclass(kw_only=True, slots=True)
class Case:
    """One pod in one world."""

    number: int
    world: World
    pod: Raw
    """as generated"""
    plain: Reply
    """what the API server alone makes of it"""
    judged: Reply
    """with Berth"""
    again: Reply | None = None
    """what was stored, created once more with Berth; None where nothing was stored"""
    wish: Wish | None = None
    """what defaults mean for it; None: not judged"""
    held: tuple[FleetNode, ...] = ()
    """nodes that it was tried on one by one, with Berth and without"""

    @property
    def requested(self) -> RequestedPod:
        """What the pod says, as the API server reads it."""
        return RequestedPod(self.plain.body)

    @property
    def stored(self) -> Raw:
        return self.judged.body

    @property
    def by_hand(self) -> str:
        """Which of its forms an author would write who knows the policies."""
        return "inside" if self.wish == Wish() else "wished"

    @property
    def required(self) -> list[str]:
        """The regions that its policies require."""
        return [self.world.required(self.requested)]

    def twin(self, kind: str, node: FleetNode | None = None) -> str:
        """The name of one of its forms in the namespace ``plain``."""
        return f"{kind}-{self.number}{f'-{node.name}' if node is not None else ''}"


def is_inside(world: World, regions: Sequence[str], node: FleetNode, devices: Mapping[str, int]) -> bool:
    """Whether what the node has under each of these names is in all regions. An accelerator that is no GPU is in every one."""
    offers = [node.offer(resource) for resource in devices]
    return all(o is not None and (o.card is None or all(world.regions[r](o) for r in regions)) for o in offers)


def _mark(world: World, region: str, resource: str) -> str:
    return f"{TRUTH}/{world.name}.{region}.{resource.partition('/')[2] if resource.startswith('nvidia') else resource.replace('/', '_')}"


def marks() -> dict[str, dict[str, str]]:
    """Node -> the hidden labels that tell which regions of which worlds it is in, of those whose platforms it is of."""
    found: dict[str, dict[str, str]] = {node.name: {} for node in FLEET}
    for world in WORLDS:
        for node in FLEET:
            if node.platform in world.platforms:
                found[node.name] |= {
                    _mark(world, region, resource): "yes"
                    for region in world.regions
                    for resource in node.sharing
                    if is_inside(world, [region], node, {resource: 1})
                }
    return found


def cleaned(pod: Raw, *, applied: bool = True) -> Raw:
    """Without what the server set, and its status; where not ``applied``, without Berth's record of its edits."""
    out = {key: copy.deepcopy(value) for key, value in pod.items() if key != "status"}
    metadata = out["metadata"] = {key: value for key, value in out["metadata"].items() if key not in SERVER_SET}
    if not applied:
        metadata.get("annotations", {}).pop(APPLIED, None)
    for key in ("annotations", "labels"):
        if not metadata.get(key):
            metadata.pop(key, None)
    return out


def renamed(pod: Raw, name: str) -> Raw:
    """The same pod to be created once more."""
    out = cleaned(pod)
    out["metadata"]["name"] = name
    return out


def tolerating(case: Case, name: str, wish: Wish) -> Raw:
    """With the tolerations that its devices need, and the slice that is wished for; else as its author wrote it."""
    out = for_kube_scheduler(renamed(case.plain.body, name))
    spec, devices = out["spec"], case.requested.devices
    keys = [key for key in (NVIDIA, AMD, NEURON) if any(name.startswith(key.partition("/")[0]) for name in devices)]
    added = [] if case.requested.left_alone else [{"key": key, "operator": "Exists"} for key in keys]
    spec["tolerations"] = [*spec.get("tolerations", ()), *added, *wish.tolerations]
    if wish.slice:
        for container in [*spec.get("initContainers", ()), *spec["containers"]]:
            for amounts in (container.get("resources") or {}).values():
                if NVIDIA in amounts:
                    amounts[wish.slice] = amounts.pop(NVIDIA)
    return out


def by_hand(case: Case, kind: str, wish: Wish) -> Raw:
    """The same as its author would write it to be inside: only on nodes with the hidden labels of all that is required and wished."""
    out = tolerating(case, case.twin(kind), wish)
    names = [wish.slice if wish.slice and name == NVIDIA else name for name in case.requested.devices]
    hidden = {_mark(case.world, region, name): "yes" for region in [*case.required, *wish.regions] for name in names}
    return selecting(out, hidden)


def selecting(pod: Raw, labels: Mapping[str, str]) -> Raw:
    """The pod, which is changed, with more in its nodeSelector."""
    pod["spec"]["nodeSelector"] = {**pod["spec"].get("nodeSelector", {}), **labels}
    return pod


def for_kube_scheduler(pod: Raw) -> Raw:
    """The pod, which is changed: no other scheduler's, and no gate holds it."""
    pod["spec"]["schedulerName"] = "default-scheduler"
    pod["spec"].pop("schedulingGates", None)
    return pod
