"""Who the pod is, and what may therefore be done to it: the actor table (design section 4) as data.

A pod may be in several rows: of the edits the least is done, of the refusals the most are made. A mirror pod is in its row
alone: the API server only mirrors what the kubelet already runs.

Owners are what an author may write. So whoever is spared a refusal is known by what its owner's controller makes of it: a mirror pod
by its annotation, since a kubelet runs no pod that has it; a DaemonSet's by being pinned to its node (both since Kubernetes 1.12).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from policies.catalog import Catalog, Workload
from policies.pod import MIRROR, Pod

Affinity = Literal["write", "judge", "no"]
Resources = Literal["yes", "repair", "no"]
Calm = Literal["yes", "named", "no"]
"""``named``: only if a policy names the workload in match.workloads"""
Refusal = Literal["all", "left", "mismatch", "node", "counts"]
"""what may be refused: anything; only when nothing of R is left; request/limit mismatch; a known node outside R; counts"""

FRACTIONS = ("gpu-fraction", "gpu-memory")
"""annotations of KAI and Run:ai that stand for a GPU without a resource"""

POD_GROUP = "kueue.x-k8s.io/pod-group-name"
ADMITTED = ("kueue.x-k8s.io/podset", "kueue.x-k8s.io/queue-name")
"""labels of a Job's pods that Kueue admitted: the first is written by its podset webhook"""
KUEUE_LABELS = (POD_GROUP, *ADMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """One row of the table, or several met."""

    names: tuple[str, ...]
    tolerations: bool = True
    by_driver: bool = False
    """tolerations by the DRA driver of the claim's class alone"""
    affinity: Affinity = "write"
    resources: Resources = "yes"
    """``repair``: request := limit is mended, no name is changed"""
    grace: Calm = "yes"
    disruption: Calm = "yes"
    refuses: frozenset[Refusal] = frozenset({"all"})


PLAIN = Actor(names=("a pod",))
SERVICE = Actor(names=("a service's pod",), grace="named", disruption="named")
DAEMON = Actor(
    names=("a pod of a DaemonSet or pinned to one node",),
    affinity="no", resources="no", grace="no", disruption="no", refuses=frozenset({"mismatch", "node"}),
)  # fmt: skip
PLACED = Actor(
    names=("a pod with spec.nodeName",), tolerations=False,
    affinity="no", resources="repair", grace="no", disruption="no", refuses=frozenset({"mismatch", "node"}),
)  # fmt: skip
MIRRORED = Actor(
    names=("a mirror pod",), tolerations=False, affinity="no", resources="no", grace="no", disruption="no", refuses=frozenset()
)
QUEUED = Actor(names=("a queue system's pod",), resources="repair")
FLAVORED = Actor(names=("a pod whose queue's flavors place it",), affinity="judge", resources="repair", refuses=frozenset({"left"}))
FRACTION = Actor(names=("a fraction of a GPU by annotation",), affinity="no", resources="no", refuses=frozenset())
CLAIMED = Actor(
    names=("a pod with resource claims only",), by_driver=True, affinity="no", resources="repair", refuses=frozenset({"counts"})
)

_FLAVORED = {system: replace(FLAVORED, names=(f"a pod that {system} places",)) for system in ("kueue", "slurm-bridge", "")}

_AFFINITY: tuple[Affinity, ...] = ("no", "judge", "write")
_RESOURCES: tuple[Resources, ...] = ("no", "repair", "yes")
_CALM: tuple[Calm, ...] = ("no", "named", "yes")


def meet(first: Actor, second: Actor) -> Actor:
    """Of the edits the least, of the refusals the most."""
    return Actor(
        names=(*first.names, *second.names),
        tolerations=first.tolerations and second.tolerations,
        by_driver=first.by_driver or second.by_driver,
        affinity=min(first.affinity, second.affinity, key=_AFFINITY.index),
        resources=min(first.resources, second.resources, key=_RESOURCES.index),
        grace=min(first.grace, second.grace, key=_CALM.index),
        disruption=min(first.disruption, second.disruption, key=_CALM.index),
        refuses=first.refuses | second.refuses,
    )


def actor_of(pod: Pod, catalog: Catalog, queues: tuple[str, ...], asked: bool) -> Actor:
    """The actor for this pod. ``asked``: whether it asks for an accelerator by resource name."""
    if MIRROR in pod.annotations:
        return MIRRORED
    rows = [row for row, applies in _rows(pod, catalog, queues, asked) if applies]
    if not rows:
        return PLAIN
    actor = rows[0]
    for row in rows[1:]:
        actor = meet(actor, row)
    return actor


def _rows(pod: Pod, catalog: Catalog, queues: tuple[str, ...], asked: bool) -> list[tuple[Actor, bool]]:
    fraction = not asked and any(name in pod.annotations for name in FRACTIONS)
    flavored = _flavored(pod)
    return [
        (PLACED, bool(pod.node_name)),
        (DAEMON, pod.pinned_node is not None),
        (SERVICE, any(w.service for w in workloads_of(pod, catalog)) or pod.owner.get("kind") in ("ReplicaSet", "StatefulSet")),
        (_FLAVORED[flavored], flavored in queues),
        (QUEUED, _queued(pod, catalog)),
        (FRACTION, fraction),
        (CLAIMED, not asked and not fraction and bool(pod.claims)),
    ]


def _flavored(pod: Pod) -> str:
    """The queue system whose flavors place the pod, as --queues names it; "" for none."""
    if pod.labels.get(POD_GROUP):
        return "kueue"
    return "slurm-bridge" if pod.scheduler == "slurm-bridge-scheduler" else ""


def _queued(pod: Pod, catalog: Catalog) -> bool:
    """KAI, Volcano, Run:ai by scheduler name; a Job that Kueue admitted by the label its podset webhook writes."""
    if pod.scheduler in catalog.foreign_schedulers and pod.scheduler != "slurm-bridge-scheduler":
        return True
    return bool(pod.owner) and any(label in pod.labels for label in ADMITTED)


def workloads_of(pod: Pod, catalog: Catalog) -> tuple[Workload, ...]:
    """Every workload of the catalog whose signature the pod carries: by its controlling owner or a label."""
    group = str(pod.owner.get("apiVersion", "")).rpartition("/")[0]
    owner = (group, str(pod.owner.get("kind", "")))
    labels = tuple((key, value if isinstance(value, str) else None) for key, value in pod.labels.items() if key in catalog.signatures)
    return catalog.workloads_signed(owner, labels)
