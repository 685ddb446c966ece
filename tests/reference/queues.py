"""In which queue a pod is, worked out from what each queue system reads."""

from __future__ import annotations

import copy
from dataclasses import replace
from fractions import Fraction
from typing import Any

from policies.policy import QueueName, Queues
from tests.reference import pods
from tests.reference.actors import row
from tests.reference.asking import by_annotation
from tests.reference.case import Case

Raw = dict[str, Any]
SCHEDULERS = {"kai": "kai-scheduler", "volcano": "volcano", "slurm": "slurm-bridge-scheduler"}
KEYS = {
    "kueue": ("labels", "kueue.x-k8s.io/queue-name"),
    "kai": ("labels", "kai.scheduler/queue"),
    "volcano": ("annotations", "scheduling.volcano.sh/queue-name"),
    "slurm": ("annotations", "slurmjob.slinky.slurm.net/partition"),
}
GROUPS = {
    "kai": (("annotations", "pod-group-name"), ("annotations", "kai.scheduler/skip-podgrouper")),
    "volcano": (("annotations", "scheduling.k8s.io/group-name"), ("annotations", "scheduling.volcano.sh/group-name")),
    "slurm": (("labels", "scheduling.x-k8s.io/pod-group"),),
}
KUEUE_LABELS = ("kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/managed", "kueue.x-k8s.io/podset", "kueue.x-k8s.io/queue-name")
CONTROLLERS = ("system:serviceaccount:kube-system:job-controller", "system:serviceaccount:volcano-system:volcano-controllers")
"""of those that may make pods in a random world"""


def system_of(queue: QueueName) -> tuple[str, str]:
    (found,) = [(system, getattr(queue, system)) for system in KEYS if getattr(queue, system) is not None]
    return found


def _kind(owner: Raw) -> tuple[str, str | None]:
    return owner.get("apiVersion", "").rpartition("/")[0], owner.get("kind")


class Queued(Case):
    def queue(self) -> Raw:
        """What a default writes: "scheduler", or a key of labels or annotations -> value."""
        spec, word = self.pod["spec"], self.speaker(lambda p: p.default.queue)
        if word is None or self.request.phase != "mutate" or self.row.mirror:
            return {}
        system, name = system_of(word)
        scheduler = spec.get("schedulerName") or "default-scheduler"
        if system == "kueue" or scheduler not in ("default-scheduler", SCHEDULERS[system]) or self.chosen_by_somebody():
            return {}
        daemon = pods.pinned(self.pod) is not None and self.by_daemon_controller()
        if spec.get("nodeName") or daemon or (scheduler == "default-scheduler" and not self.may_move()):
            return {}
        if any(not self.within(queues, system, name) for queues in self.queues_required()):
            return {}
        if system == "slurm" and spec.get("resourceClaims"):
            return {}
        written: Raw = {"scheduler": SCHEDULERS[system]} if scheduler == "default-scheduler" else {}
        if system == "slurm" and self.pod["metadata"].get("ownerReferences"):
            return written
        written[KEYS[system][1]] = name
        seconds = self.words()[:1]
        if system == "slurm" and seconds and seconds[0] > 0 and "slurmjob.slinky.slurm.net/timelimit" not in self.annotations:
            written["slurmjob.slinky.slurm.net/timelimit"] = str(-(-Fraction(seconds[0]) // 60))
        return written

    def chosen_by_somebody(self) -> bool:
        """A queue of any system, or a group that somebody made."""
        places = [*KEYS.values(), *(place for group in GROUPS.values() for place in group), *(("labels", key) for key in KUEUE_LABELS)]
        there = any(pods.metadata(self.pod, part).get(key) is not None for part, key in places)
        return there or any(key in pods.metadata(self.pod, "labels") for key in KUEUE_LABELS) or "schedulingGroup" in self.pod["spec"]

    def may_move(self) -> bool:
        """Nobody pinned it, and no fraction or word about sharing says that another scheduler has it."""
        parts = self.asked and (self.asking.in_part or not self.row.chooses)
        return pods.pinned(self.pod) is None and not parts and not by_annotation(self.pod)

    def by_daemon_controller(self) -> bool:
        daemon = ("system:serviceaccount:kube-system:daemon-set-controller", "system:kube-controller-manager")
        return self.request.user in daemon and "system:nodes" not in self.request.groups

    def queues_required(self) -> list[Queues]:
        return [p.require.queue for p in self.policies if p.require.queue is not None]

    @staticmethod
    def within(queues: Queues, system: str, name: str) -> bool:
        return name in getattr(queues, system) or "*" in getattr(queues, system)

    def moved(self) -> None:
        """Who the pod is once it names the scheduler that it is given."""
        if "scheduler" in (written := self.queue()):
            pod = copy.deepcopy(self.pod)
            pod["spec"]["schedulerName"] = written["scheduler"]
            before = self.row
            self.row = row(replace(self.request, pod=pod), self.catalog, self.world.queues, self.asking)
            assert before.floor == self.row.floor

    def past_the_queue(self) -> set[str]:
        """Past every queue that all policies admit."""
        demands = self.queues_required()
        if not demands:
            return set()
        names = {*(n for d in demands for s in KEYS for n in getattr(d, s)), "any other"}
        if not any(all(self.within(d, s, n) for d in demands) for s in KEYS for n in names):
            return {"BERTH-144"}
        return set() if self.waits(lambda s, n: all(self.within(d, s, n) for d in demands)) else {"BERTH-144"}

    def waits(self, right: Any) -> bool:
        spec, made = self.pod["spec"], self.request.user in self.catalog.pod_makers
        if spec.get("nodeName"):
            return False
        written, owned = self.queue(), bool(self.pod["metadata"].get("ownerReferences"))
        scheduler = written.get("scheduler", spec.get("schedulerName"))
        return self.held_by_kueue(right, made=made) or any(
            self.in_system(s, written, right, made=made, owned=owned) for s, name in SCHEDULERS.items() if name == scheduler
        )

    def held_by_kueue(self, right: Any, *, made: bool) -> bool:
        labels, kind = pods.metadata(self.pod, "labels"), _kind(pods.owner(self.pod))
        names = {n for p in self.queues_required() for n in p.kueue} | {"any other"}
        admits_some = any(right("kueue", n) for n in names)
        if not admits_some:
            return False
        if made and any(kind in w.owners for w in self.catalog.workloads if w.kueue == "suspends"):
            return True
        gated = any(g.get("name") == "kueue.x-k8s.io/admission" for g in self.pod["spec"].get("schedulingGates") or ())
        queue = labels.get("kueue.x-k8s.io/queue-name")
        ours = labels.get("kueue.x-k8s.io/managed") == "true" or (made and "kueue.x-k8s.io/pod-suspending-parent" in self.annotations)
        return "kueue" in self.world.queues and gated and ours and (right("kueue", queue) if queue else made)

    def in_system(self, system: str, written: Raw, right: Any, *, made: bool, owned: bool) -> bool:
        if right(system, "*"):
            return True
        part, key = KEYS[system]
        value = written.get(key, pods.metadata(self.pod, part).get(key))
        if made and system == "volcano" and _kind(pods.owner(self.pod)) == ("batch.volcano.sh", "Job"):
            value = self.annotations.get("volcano.sh/queue-name")
        elif any(pods.metadata(self.pod, p).get(k) is not None for p, k in GROUPS[system]) or "schedulingGroup" in self.pod["spec"]:
            return False
        if owned and (not made or system == "slurm"):
            return made
        return value is not None and right(system, value)
