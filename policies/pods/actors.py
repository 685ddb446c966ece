"""The actor table (``docs/laws.md``, "The actor table") as data: what kind of pod it is, and what may therefore be done to it.

A pod may be in several rows: only the edits that all rows allow are made, and every denial that any row
allows. A mirror pod is in its row alone: the API server only mirrors what the kubelet already runs.

Whatever an author may write (owners, labels, annotations, ``schedulerName``, ``nodeName``, ``matchFields``)
relaxes placement alone, and never counts, forbidden tolerations, caps or equality. Further exemptions depend
on the requesting user: the kubelet for its mirror pods, the DaemonSet controller for the pods that it pins; a
DaemonSet's author is a tenant too.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from catalog import Catalog, Workload
from kube.pod import MIRROR, Pod
from kube.review import NODES
from kube.templates import CONTROLLERS
from kube.tree import Raw
from policies.pods.fractions import FRACTION_DEVICES, FRACTIONS, SHARING_WORDS, annotated_fraction, fraction_keys, is_fraction
from policies.request import Request

Affinity = Literal["write", "check", "no"]
Resources = Literal["yes", "repair", "no"]
Calm = Literal["yes", "named", "no"]
"""``named``: only if a policy names the workload in match.workloads."""
Floor = Literal["yes", "opt-out", "no"]
"""``opt-out``: unless the author opted out of grace."""
Placement = Literal["none", "left", "node", "all"]
"""The reasons for which a pod's placement may be denied: none; nothing left of what is required; a known
node outside what is required; any."""
Caller = Literal["daemon", "node", ""]

POD_GROUP = "kueue.x-k8s.io/pod-group-name"
MANAGED = "kueue.x-k8s.io/managed"
"""Label, with the value true, that Kueue writes on pods whose flavors it applies."""
QUEUE_NAME = "kueue.x-k8s.io/queue-name"
ADMITTED = ("kueue.x-k8s.io/podset", QUEUE_NAME)
"""Labels of a Job's pods that Kueue admitted: its podset webhook writes the first."""
KUEUE_LABELS = (POD_GROUP, MANAGED, *ADMITTED)

_SLURM = "slurm-bridge-scheduler"
_DAEMON_CONTROLLERS = frozenset({CONTROLLERS["apps", "DaemonSet"].user, "system:kube-controller-manager"})
"""The users that create the pods of DaemonSets; the second where controllers share one account
(--use-service-account-credentials=false)."""


def caller(user: str, groups: Sequence[str]) -> Caller:
    """Return the kind of caller, as far as pods are exempt from something because of it."""
    if NODES in groups:
        return "node"
    return "daemon" if user in _DAEMON_CONTROLLERS else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """One row of the table, or several combined by ``meet``."""

    names: tuple[str, ...]
    tolerations: bool = True
    by_driver: bool = False
    """True if tolerations are added for the DRA driver of the claim's class alone."""
    affinity: Affinity = "write"
    resources: Resources = "yes"
    """``repair``: requests are set to the limits, and no resource name is changed."""
    chooses: bool = True
    """True if defaults choose nodes for it; requirements are written in any case."""
    grace: Calm = "yes"
    """Whether ``default.gracePeriod`` applies."""
    floor: Floor = "yes"
    """Whether ``require.gracePeriod.min`` applies: it is also enforced where no default changes the grace
    period, for authors can write ``nodeName`` themselves."""
    disruption: Calm = "yes"
    placement: Placement = "all"
    mirror: bool = False
    """True for a mirror pod: it is neither edited nor denied."""
    fills: bool = True
    """True if defaults fill in shared memory and classes."""
    moves: bool = True
    """True if a default may name its scheduler: nobody has chosen its node, a scheduler or a queue."""
    in_part: bool = False
    """True if a scheduler gives it a part of a whole GPU of a node: how the node itself shares GPUs is nothing to it."""


PLAIN = Actor(names=("a pod",))
SERVICE = Actor(names=("a service's pod",), grace="named", floor="opt-out", disruption="named")
DAEMON = Actor(
    names=("a pod of a DaemonSet",), affinity="no", resources="no", grace="no", floor="no", disruption="no", placement="node",
    fills=False, moves=False,
)  # fmt: skip
PINNED = Actor(names=("a pod pinned to one node",), affinity="no", resources="no", placement="node", moves=False)
PLACED = Actor(
    names=("a pod with spec.nodeName",), tolerations=False,
    affinity="no", resources="repair", grace="no", disruption="no", placement="node", moves=False,
)  # fmt: skip
MIRRORED = Actor(
    names=("a mirror pod",), tolerations=False,
    affinity="no", resources="no", grace="no", floor="no", disruption="no", placement="none", mirror=True,
    fills=False, moves=False,
)  # fmt: skip
QUEUED = Actor(names=("a pod of a queue system",), resources="repair", moves=False)
FLAVORED = Actor(names=("a pod whose queue's flavors place it",), affinity="check", resources="repair", placement="left", moves=False)
FRACTION = Actor(names=("a pod with a fraction of a GPU",), resources="no", chooses=False, moves=False, in_part=True)
"""A part of a GPU by annotation alone: KAI and Run:ai take it of a whole GPU, on a node that the pod may run on."""
SHARING = Actor(names=("a pod with a fraction of a GPU",), resources="repair", chooses=False, moves=False)
"""A part of a GPU that the pod also asks for by resource name: such a pod has offers, so what is required of
them is written."""
CLAIMED = Actor(names=("a pod with resource claims only",), by_driver=True, affinity="no", resources="repair", placement="none")

_FLAVORED = {system: replace(FLAVORED, names=(f"a pod that {system} places",)) for system in ("kueue", "slurm-bridge", "")}

_AFFINITY: tuple[Affinity, ...] = ("no", "check", "write")
_RESOURCES: tuple[Resources, ...] = ("no", "repair", "yes")
_CALM: tuple[Calm, ...] = ("no", "named", "yes")
_FLOOR: tuple[Floor, ...] = ("no", "opt-out", "yes")
_PLACEMENT: tuple[Placement, ...] = ("none", "left", "node", "all")


def meet(first: Actor, second: Actor) -> Actor:
    """Combine two rows: the fewer edits, the more denials."""
    return Actor(
        names=(*first.names, *second.names),
        tolerations=first.tolerations and second.tolerations,
        by_driver=first.by_driver or second.by_driver,
        affinity=min(first.affinity, second.affinity, key=_AFFINITY.index),
        resources=min(first.resources, second.resources, key=_RESOURCES.index),
        chooses=first.chooses and second.chooses,
        grace=min(first.grace, second.grace, key=_CALM.index),
        floor=min(first.floor, second.floor, key=_FLOOR.index),
        disruption=min(first.disruption, second.disruption, key=_CALM.index),
        placement=max(first.placement, second.placement, key=_PLACEMENT.index),
        fills=first.fills and second.fills,
        moves=first.moves and second.moves,
        in_part=first.in_part or second.in_part,
    )


def actor_of(request: Request, pod: Pod, catalog: Catalog, queues: tuple[str, ...], *, asked: bool, workloads: Sequence[Workload]) -> Actor:
    """Return the actor for this pod. ``asked``: whether it asks for an accelerator by resource name;
    ``workloads``: those that it belongs to."""
    asker = caller(request.user, request.groups)
    if MIRROR in pod.annotations and asker == "node":
        return MIRRORED
    fraction, system, pinned = annotated_fraction(pod), flavored(pod), pod.pinned_node is not None
    rows = (
        (PLACED, bool(pod.node_name)),
        (DAEMON, pinned and asker == "daemon"),
        (PINNED, pinned and asker != "daemon"),
        (SERVICE, any(w.service for w in workloads) or pod.owner.get("kind") in ("ReplicaSet", "StatefulSet")),
        (_FLAVORED[system], system in queues),
        (QUEUED, _queued(pod, catalog)),
        (FRACTION, fraction and not asked),
        (SHARING, asked and (is_fraction(pod) or any(key.startswith(SHARING_WORDS) for key in pod.annotations))),
        (CLAIMED, not asked and not fraction and bool(pod.claims)),
    )
    applying = [row for row, applies in rows if applies]
    return functools.reduce(meet, applying) if applying else PLAIN


def joined_actor(actor: Actor, scheduler: str, queues: tuple[str, ...]) -> Actor:
    """Return the actor of a pod that a default gives to the scheduler of a queue system, as it will read once it names it."""
    if scheduler != _SLURM:
        return meet(actor, QUEUED)
    return meet(actor, _FLAVORED["slurm-bridge"]) if "slurm-bridge" in queues else actor


def flavored(pod: Pod) -> str:
    """Return the queue system whose flavors place the pod, as --queues names it; "" for none."""
    labels = pod.labels
    if labels.get(POD_GROUP) and labels.get(QUEUE_NAME) and labels.get(MANAGED) == "true":
        return "kueue"
    return "slurm-bridge" if pod.scheduler == _SLURM else ""


def _queued(pod: Pod, catalog: Catalog) -> bool:
    """Return whether a queue system manages the pod: KAI, Volcano, Run:ai by scheduler name; a Job that
    Kueue admitted by the label its podset webhook writes."""
    if pod.scheduler in catalog.foreign_schedulers and pod.scheduler != _SLURM:
        return True
    return bool(pod.owner) and any(label in pod.labels for label in ADMITTED)


def workloads_of(pod: Pod, catalog: Catalog) -> tuple[Workload, ...]:
    """Return every workload of the catalog whose signature the pod carries: by its controlling owner or a
    label."""
    group = str(pod.owner.get("apiVersion", "")).rpartition("/")[0]
    owner = (group, str(pod.owner.get("kind", "")))
    labels = tuple((key, value if isinstance(value, str) else None) for key, value in pod.labels.items() if key in catalog.signatures)
    return catalog.workloads_signed(owner, labels)


def asks_anew(pod: Pod, old_pod: Raw | None, queues: tuple[str, ...]) -> bool:
    """Return whether an updated pod is judged as a new one: if it asks for another part of a GPU than before, or has left the queue
    system to which its placement was left. ``queues``: those whose flavors place pods."""
    old = Pod(old_pod or {})
    if flavored(old) in queues and flavored(pod) != flavored(old):
        return True
    if not annotated_fraction(pod):
        return False
    keys = (*FRACTIONS, *fraction_keys(pod.annotations), FRACTION_DEVICES)
    return any(old.annotations.get(key) != pod.annotations.get(key) for key in keys)
