"""The queue systems: who places the pods of each, and where a pod says its queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from kube.pod import Pod
from kube.tree import Path, maps_in
from policies.pods.actors import MANAGED, POD_GROUP, QUEUE_NAME
from policies.policy import QueueName, Queues, QueueSystem

ANY = "*"
"""In ``require.queue``: any queue of the system."""
KUEUE_GATE = "kueue.x-k8s.io/admission"
"""The scheduling gate that Kueue's webhook puts on the pods that it manages (kueue pkg/controller/jobs/pod/constants)."""
KUEUE_PARENT = "kueue.x-k8s.io/pod-suspending-parent"
"""Annotation of the pods of workloads that Kueue holds back by gates: StatefulSet, LeaderWorkerSet, Deployment."""
VOLCANO_JOB_QUEUE = "volcano.sh/queue-name"
"""Annotation that Volcano's job controller writes over what a template says (volcano pkg/controllers/job)."""
VOLCANO_JOB = ("batch.volcano.sh", "Job")
SLURM_TIME = "slurmjob.slinky.slurm.net/timelimit"
"""Annotation of Slurm bridge: whole minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One queue system."""

    name: QueueSystem
    title: str
    """The name in messages."""
    where: Literal["labels", "annotations"]
    key: str
    """The key under which a pod, or a workload of Kueue's, says its queue."""
    scheduler: str = ""
    """The ``schedulerName`` of its pods; "" if any scheduler may place them."""
    grouped: tuple[Path, ...] = ()
    """What puts a pod into a group that somebody has made, whose queue then counts in place of the pod's."""
    former_key: str = ""
    """A key that its scheduler read in earlier versions, and ignores now."""

    @property
    def path(self) -> Path:
        return ("metadata", self.where, self.key)


_ANNOTATIONS: Path = ("metadata", "annotations")
KAI_GROUP: Path = (*_ANNOTATIONS, "pod-group-name")
KAI_SKIPS: Path = (*_ANNOTATIONS, "kai.scheduler/skip-podgrouper")
KAI_SPARK: Path = ("metadata", "labels", "spark-app-selector")
"""The name of the group of Spark's pods, whatever owns them."""
SPARK = ("sparkoperator.k8s.io", "SparkApplication")
"""Owner of drivers that Spark's operator makes, of which Spark itself writes that label."""
KUEUE = System(name="kueue", title="Kueue", where="labels", key=QUEUE_NAME)
KAI = System(
    name="kai", title="KAI", where="labels", key="kai.scheduler/queue", scheduler="kai-scheduler",
    grouped=(KAI_GROUP, KAI_SKIPS, KAI_SPARK), former_key="runai/queue",
)  # fmt: skip
"""kai-scheduler 0.17.0: pkg/common/constants, pkg/podgrouper/pod_controller.go (isOrphanPodWithPodGroup,
shouldSkipPodGrouper, of the owners too), plugins/spark, plugins/defaultgrouper (CalcPodGroupQueue: the topmost owner's label
counts before the pod's)."""
VOLCANO = System(
    name="volcano", title="Volcano", where="annotations", key="scheduling.volcano.sh/queue-name", scheduler="volcano",
    grouped=((*_ANNOTATIONS, "scheduling.k8s.io/group-name"), (*_ANNOTATIONS, "scheduling.volcano.sh/group-name")),
)  # fmt: skip
"""volcano.sh/apis scheduling/v1beta1/labels.go, volcano pkg/controllers/podgroup/pg_controller_handler.go
(buildPodGroupFromPod: the pod's annotation counts before its owner's)."""
SLURM = System(
    name="slurm", title="Slurm bridge", where="annotations", key="slurmjob.slinky.slurm.net/partition",
    scheduler="slurm-bridge-scheduler",
    grouped=(("metadata", "labels", "scheduling.x-k8s.io/pod-group"), ("spec", "schedulingGroup")),
)  # fmt: skip
"""slurm-bridge docs/workload.md: annotations count on the workload that owns a pod, and on the pod where none does."""

SYSTEMS = (KUEUE, KAI, VOLCANO, SLURM)
READ_OF_OWNERS = (KAI, SLURM)
"""Systems that take the queue of a pod's topmost owner, also once the pod is there."""
BY_NAME: Mapping[QueueSystem, System] = MappingProxyType({system.name: system for system in SYSTEMS})
FORMER_KEYS = MappingProxyType({system.former_key: system.key for system in SYSTEMS if system.former_key})
"""Key of earlier versions -> the one that is read now, beside which nothing is to be said of it."""
LABELS = frozenset(
    (*(s.key for s in SYSTEMS if s.where == "labels"), MANAGED, POD_GROUP, str(KAI_SPARK[2]), "scheduling.x-k8s.io/pod-group")
)
ANNOTATIONS = frozenset(
    str(key)
    for key in (
        *(s.key for s in SYSTEMS if s.where == "annotations"),
        *(path[2] for s in SYSTEMS for path in s.grouped if path[:2] == _ANNOTATIONS),
        *(KUEUE_PARENT, VOLCANO_JOB_QUEUE, SLURM_TIME),
    )
)
"""The labels and annotations that are read where a policy speaks of queues."""
KEPT_LABELS = tuple(sorted(LABELS))
KEPT_ANNOTATIONS = tuple(sorted(ANNOTATIONS - {KUEUE_PARENT, VOLCANO_JOB_QUEUE, SLURM_TIME}))
"""Those of them by whose change a pod may leave its queue, which updates are judged for."""


def given_queue(queue: QueueName) -> tuple[System, str]:
    """Return the system and the queue that a default names."""
    return next((system, name) for system in SYSTEMS if (name := getattr(queue, system.name)) is not None)


def admitted(queues: Queues) -> Iterator[tuple[System, str]]:
    """Yield the systems and queues that a requirement admits, in the order of ``SYSTEMS``."""
    return ((system, name) for system in SYSTEMS for name in getattr(queues, system.name))


def owners_of(metadata: Mapping[str, Any]) -> set[tuple[str, ...]]:
    """Return the owners of an object, each by what a queue system finds it by."""
    owners = maps_in(metadata.get("ownerReferences"))
    return {tuple(str(owner.get(key)) for key in ("apiVersion", "kind", "name", "uid")) for owner in owners}


def value_of(pod: Pod, system: System) -> object:
    """Return what the pod says its queue of this system is; None if it says nothing."""
    return (pod.labels if system.where == "labels" else pod.annotations).get(system.key)
