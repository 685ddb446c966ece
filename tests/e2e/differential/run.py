"""The differential run: each generated pod without Berth, by hand inside the policy, and with Berth, on one control plane.

For each pod there are, in the namespace ``plain`` that no Berth judges: what the API server makes of it (a dry run); ``inside``, the pod
as a careful author would write it for the policy, with the toleration for its GPUs and a selector on a hidden label of the nodes that are
inside by truth; ``wished``, the same inside what the defaults mean. In the namespace of its world: the pod itself, and what was stored of
it, once more. What another scheduler would place, or a gate holds, is handed to kube-scheduler as it was stored, as ``replayed``. Then, on
some nodes inside and outside, one by one: ``held``, what was stored, and ``bare``, what its author wrote.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.e2e.differential.default_worlds import WORLDS
from tests.e2e.differential.forms import Case, by_hand, for_kube_scheduler, is_inside, renamed, selecting, tolerating
from tests.e2e.differential.nodes import BY_NAME, FLEET, FleetNode
from tests.e2e.differential.pods import generated
from tests.e2e.differential.requested import RequestedPod
from tests.e2e.differential.worlds import Wish, World
from tests.testcluster.controlplane.cluster import Cluster

Raw = dict[str, Any]
PLAIN = "plain"
THREADS = 8
HELD = 2
"""nodes inside, and as many outside, that a pod is tried on one by one"""


@dataclass(kw_only=True, slots=True)
class Run:
    """All cases, and where kube-scheduler bound each pod: (namespace, name) -> node, or why not."""

    cluster: Cluster
    cases: list[Case] = field(default_factory=list)
    nodes: dict[tuple[str, str], str] = field(default_factory=dict)
    reasons: dict[tuple[str, str], str] = field(default_factory=dict)

    def node(self, case: Case, kind: str) -> FleetNode | None:
        """Where ``inside``, ``wished`` or ``judged`` was bound; for the last by whoever stands for its own scheduler."""
        if case.requested.node:
            return _named(case, kind)
        return BY_NAME.get(self.nodes.get(self._key(case, kind), ""))

    def why(self, case: Case, kind: str) -> str:
        """Why it was not bound."""
        return self.reasons.get(self._key(case, kind), "")

    def takes(self, case: Case, kind: str, node: FleetNode) -> bool:
        """Whether this node took the pod when it was tried on it alone, as ``held`` or ``bare``."""
        return bool(self.nodes.get((PLAIN, case.twin(kind, node))))

    def _key(self, case: Case, kind: str) -> tuple[str, str]:
        if kind == "judged" and not case.requested.placed_elsewhere:
            return case.world.name, case.stored["metadata"]["name"]
        return PLAIN, case.twin("replayed" if kind == "judged" else kind)


def _named(case: Case, kind: str) -> FleetNode | None:
    """A pod that names its node is there, whatever else it says: inside, where the node is."""
    node = BY_NAME.get(case.requested.node)
    if node is None or kind == "judged":
        return node
    return node if is_inside(case.world, case.required, node, case.requested.devices) else None


def run(cluster: Cluster, numbers: Iterable[int]) -> Run:
    """The pods of these numbers over all worlds, each created, and bound or found to be unschedulable."""
    found = Run(cluster=cluster)
    with ThreadPoolExecutor(THREADS) as pool:
        numbered = ((WORLDS[number % len(WORLDS)], number) for number in numbers)
        found.cases = list(pool.map(lambda pair: _tried(cluster, *pair), numbered))
        _look(found)
        list(pool.map(lambda case: _hold(found, case), found.cases))
        _look(found)
    return found


def _tried(cluster: Cluster, world: World, number: int) -> Case:
    """One pod, created in all its forms."""
    pod = generated(Random(f"{world.name}-{number}"), f"p{number}")
    api = cluster.api
    plain = api.try_create(pod, PLAIN, dry_run=True)
    case = Case(number=number, world=world, pod=pod, plain=plain, judged=api.try_create(pod, world.name))
    if case.judged.ok:
        case.again = api.try_create(renamed(case.stored, f"again-{number}"), world.name, dry_run=True)
    if plain.ok:
        case.wish = world.wish(case.requested)
    if plain.ok and not case.requested.node:
        api.create(by_hand(case, "inside", Wish()), PLAIN)
        if case.wish is not None and case.wish != Wish():
            api.create(by_hand(case, "wished", case.wish), PLAIN)
        if case.judged.ok and case.requested.placed_elsewhere:
            api.create(for_kube_scheduler(renamed(case.stored, case.twin("replayed"))), PLAIN)
    return case


def _hold(found: Run, case: Case) -> None:
    """What was stored, and what its author wrote, on single nodes: the one that took it by hand, and some that have its devices."""
    if not (case.plain.ok and case.judged.ok) or case.requested.node:
        return
    took = found.node(case, case.by_hand) if case.wish is not None else None
    some = _some_nodes(case)
    case.held = (*some, *([took] if took is not None and took not in some else []))
    for node in case.held:
        only = {"kubernetes.io/hostname": node.name}
        stored = for_kube_scheduler(renamed(case.stored, case.twin("held", node)))
        found.cluster.api.create(selecting(stored, only), PLAIN)
        found.cluster.api.create(selecting(tolerating(case, case.twin("bare", node), case.wish or Wish()), only), PLAIN)


def _some_nodes(case: Case) -> list[FleetNode]:
    devices, random = RequestedPod(case.stored).devices, Random(case.number)
    if not devices:
        return []
    having = [node for node in FLEET if node.platform in case.world.platforms and all(map(node.offer, devices))]
    inside = [node for node in having if is_inside(case.world, case.required, node, devices)]
    outside = [node for node in having if node not in inside]
    return [*random.sample(inside, min(HELD, len(inside))), *random.sample(outside, min(HELD, len(outside)))]


def _look(found: Run) -> None:
    """Where each pod is by now, once kube-scheduler has decided about all."""
    cluster = found.cluster
    cluster.wait_for(lambda: not _undecided(cluster), "kube-scheduler to have decided about every pod", seconds=600)
    for pod in cluster.api.list("v1", "Pod"):
        key = pod["metadata"]["namespace"], pod["metadata"]["name"]
        found.nodes[key] = pod["spec"].get("nodeName", "")
        found.reasons[key] = next((one.get("message", "") for one in pod["status"].get("conditions", ())), "")


def _undecided(cluster: Cluster) -> bool:
    """Whether kube-scheduler has still to decide about some. It never does about those of others, gated ones, or missing claims."""
    time.sleep(0.5)  # each look lists all that wait
    waiting = cluster.api.list("v1", "Pod", fieldSelector="spec.nodeName=")
    return any(
        not pod["status"].get("conditions") and not pod["spec"].get("resourceClaims") and not RequestedPod(pod).placed_elsewhere
        for pod in waiting
    )
