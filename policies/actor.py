"""Who the pod is, and what may therefore be done to it: the actor table (design section 4) as data.

A pod may be in several rows: of the edits the least is done, of the refusals the most are made. A mirror pod is in its row
alone: the API server only mirrors what the kubelet already runs.

Whatever an author may write (owners, labels, annotations, ``schedulerName``, ``nodeName``, ``matchFields``) relaxes placement alone,
and counts, forbidden tolerations, caps and equality never. Who is spared more is known by who asks: the kubelet for its mirror pods,
the DaemonSet controller for the pods that it pins; a DaemonSet's author is a tenant too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from policies.catalog import Catalog, Workload
from policies.pod import MIRROR, Pod
from policies.request import Request

Affinity = Literal["write", "judge", "no"]
Resources = Literal["yes", "repair", "no"]
Calm = Literal["yes", "named", "no"]
"""``named``: only if a policy names the workload in match.workloads"""
Floor = Literal["yes", "opt-out", "no"]
"""``opt-out``: unless its author opted out of grace"""
Placement = Literal["none", "left", "node", "all"]
"""what of a placement may be refused: nothing; only when nothing of R is left; a known node outside R; anything"""
Caller = Literal["daemon", "node", ""]

FRACTIONS = ("gpu-fraction", "gpu-memory")
"""annotations of KAI and Run:ai that stand for a part of a GPU without a resource"""
FRACTION_DEVICES = "gpu-fraction-num-devices"
"""annotation of KAI: of how many GPUs the pod gets that part (kai-scheduler pkg/common/constants)"""
SHARED_BY_NAME = (
    "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores",
    "volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores",
)  # fmt: skip
"""resource names beside a GPU for the part of it that the container gets: HAMi's, and those of Volcano's vGPU device plugin
(volcano-vgpu-device-plugin doc/config.md)"""
SHARING_WORDS = (
    "gpu-fraction", "gpu-memory", "gpu-sm-", "kai.scheduler/container.", "nvidia.com/container.",
    "hami.io/", "nvidia.com/use-gpu", "nvidia.com/nouse-gpu", "nvidia.com/vgpu-", "volcano.sh/vgpu-",
)  # fmt: skip
"""How annotations begin by which a sharing scheduler is told what part of a GPU a pod gets, or of which GPU: KAI and Run:ai by pod and by
container (kai-scheduler pkg/common/constants, kai-gpu-fractioning), HAMi (docs/userguide), Volcano (vgpu-mode). Beside a GPU by resource
name no default knows better where such a pod runs."""

POD_GROUP = "kueue.x-k8s.io/pod-group-name"
MANAGED = "kueue.x-k8s.io/managed"
"""label that Kueue writes on pods whose flavors it applies, with the value true"""
QUEUE_NAME = "kueue.x-k8s.io/queue-name"
ADMITTED = ("kueue.x-k8s.io/podset", QUEUE_NAME)
"""labels of a Job's pods that Kueue admitted: the first is written by its podset webhook"""
KUEUE_LABELS = (POD_GROUP, MANAGED, *ADMITTED)

_DAEMON_CONTROLLERS = frozenset({"system:serviceaccount:kube-system:daemon-set-controller", "system:kube-controller-manager"})
"""who makes the pods of DaemonSets; the second where controllers share one account (--use-service-account-credentials=false)"""
_NODES = "system:nodes"
"""group of kubelets (k8s.io/apiserver pkg/authentication/user NodesGroup)"""


def caller(user: str, groups: Sequence[str]) -> Caller:
    """Who asks, as far as pods are spared something for it."""
    if _NODES in groups:
        return "node"
    return "daemon" if user in _DAEMON_CONTROLLERS else ""


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
    chooses: bool = True
    """whether defaults choose nodes for it; what is required of them is written all the same"""
    grace: Calm = "yes"
    """``default.gracePeriod``"""
    floor: Floor = "yes"
    """``require.gracePeriod.min``, written and judged: also where no default may touch the grace, for authors write ``nodeName``"""
    disruption: Calm = "yes"
    placement: Placement = "all"
    mirror: bool = False
    """nothing is done to it, and nothing refused"""


PLAIN = Actor(names=("a pod",))
SERVICE = Actor(names=("a service's pod",), grace="named", floor="opt-out", disruption="named")
DAEMON = Actor(
    names=("a pod of a DaemonSet",), affinity="no", resources="no", grace="no", floor="no", disruption="no", placement="node",
)  # fmt: skip
PINNED = Actor(names=("a pod pinned to one node",), affinity="no", resources="no", placement="node")
PLACED = Actor(
    names=("a pod with spec.nodeName",), tolerations=False,
    affinity="no", resources="repair", grace="no", disruption="no", placement="node",
)  # fmt: skip
MIRRORED = Actor(
    names=("a mirror pod",), tolerations=False,
    affinity="no", resources="no", grace="no", floor="no", disruption="no", placement="none", mirror=True,
)  # fmt: skip
QUEUED = Actor(names=("a queue system's pod",), resources="repair")
FLAVORED = Actor(names=("a pod whose queue's flavors place it",), affinity="judge", resources="repair", placement="left")
FRACTION = Actor(names=("a fraction of a GPU",), affinity="no", resources="no", placement="none")
SHARING = Actor(names=("a fraction of a GPU",), resources="repair", chooses=False)
"""a part of a GPU that the pod also asks for by resource name: such a pod has offers, so what is required of them is written"""
CLAIMED = Actor(names=("a pod with resource claims only",), by_driver=True, affinity="no", resources="repair", placement="none")

_FLAVORED = {system: replace(FLAVORED, names=(f"a pod that {system} places",)) for system in ("kueue", "slurm-bridge", "")}

_AFFINITY: tuple[Affinity, ...] = ("no", "judge", "write")
_RESOURCES: tuple[Resources, ...] = ("no", "repair", "yes")
_CALM: tuple[Calm, ...] = ("no", "named", "yes")
_FLOOR: tuple[Floor, ...] = ("no", "opt-out", "yes")
_PLACEMENT: tuple[Placement, ...] = ("none", "left", "node", "all")


def meet(first: Actor, second: Actor) -> Actor:
    """Of the edits the least, of the refusals the most."""
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
    )


def actor_of(request: Request, pod: Pod, catalog: Catalog, queues: tuple[str, ...], asked: bool) -> Actor:
    """The actor for this pod. ``asked``: whether it asks for an accelerator by resource name."""
    asker = caller(request.user, request.groups)
    if MIRROR in pod.annotations and asker == "node":
        return MIRRORED
    rows = [row for row, applies in _rows(asker, pod, catalog, queues, asked) if applies]
    if not rows:
        return PLAIN
    actor = rows[0]
    for row in rows[1:]:
        actor = meet(actor, row)
    return actor


def _rows(asker: Caller, pod: Pod, catalog: Catalog, queues: tuple[str, ...], asked: bool) -> list[tuple[Actor, bool]]:
    fraction, flavored, pinned = annotated_fraction(pod), _flavored(pod), pod.pinned_node is not None
    return [
        (PLACED, bool(pod.node_name)),
        (DAEMON, pinned and asker == "daemon"),
        (PINNED, pinned and asker != "daemon"),
        (SERVICE, any(w.service for w in workloads_of(pod, catalog)) or pod.owner.get("kind") in ("ReplicaSet", "StatefulSet")),
        (_FLAVORED[flavored], flavored in queues),
        (QUEUED, _queued(pod, catalog)),
        (FRACTION, fraction and not asked),
        (SHARING, asked and (is_fraction(pod) or _speaks_of_sharing(pod))),
        (CLAIMED, not asked and not fraction and bool(pod.claims)),
    ]


def annotated_fraction(pod: Pod) -> bool:
    """Whether the pod asks KAI or Run:ai for a part of a GPU."""
    return any(name in pod.annotations for name in FRACTIONS)


def is_fraction(pod: Pod) -> bool:
    """Whether a pod that asks for GPUs gets a part of them: of KAI and Run:ai by annotation, of HAMi by resource names beside the GPU's."""
    return annotated_fraction(pod) or any(name in SHARED_BY_NAME for container in pod.containers for name in container.resource_names)


def _speaks_of_sharing(pod: Pod) -> bool:
    """Whether a sharing scheduler is told more of its GPUs than their number. It need not be a part of one: nothing is refused for it."""
    return any(key.startswith(SHARING_WORDS) for key in pod.annotations)


def _flavored(pod: Pod) -> str:
    """The queue system whose flavors place the pod, as --queues names it; "" for none."""
    labels = pod.labels
    if labels.get(POD_GROUP) and labels.get(QUEUE_NAME) and labels.get(MANAGED) == "true":
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
