"""Class 9: the queue that was judged is not the one that counts. An update, an owner or a group takes the pod to another, or a pod only
says that its queue system holds it back.

What real systems make of it is tried in ``tests.e2e.queues``; here it is what is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.e2e.bypasses.attempts.places import HOST, OFF, at
from tests.e2e.bypasses.guardrails import (
    H100_NODE,
    IN_QUEUES,
    KUEUE_GATE,
    MANAGED,
    P5_NODE,
    QUEUES,
    SPOT_NODE,
    T4_NODE,
    marked,
    queued,
    with_,
)
from tests.e2e.bypasses.steps import MARK, annotates, makes_pod, own, patches, placed, runs_ungated, takes_owner, ungates
from tests.e2e.bypasses.way import GATE, Attempt, Way, creates, in_turn
from tests.e2e.workloads import APP, NVIDIA, TOLERATION, pod, workload
from tests.testcluster.controlplane.api import JSON_PATCH, STRATEGIC, Raw

KAI_QUEUE, PARENT = "kai.scheduler/queue", "kueue.x-k8s.io/pod-suspending-parent"
GROUP = {"kueue.x-k8s.io/pod-group-name": "NAME", "kueue.x-k8s.io/queue-name": "team-a", MANAGED: "true"}
GPU: Raw = {"limits": {NVIDIA: "1"}, "requests": {NVIDIA: "1"}}


def gated(system: str, **spec: Any) -> Raw:
    """A pod in its queue that nobody schedules yet."""
    return own(queued(system, "team-a", **{"schedulingGates": [GATE], **spec}))


def in_queue(kind: str, queue: str | None, api_version: str = "v1") -> Attempt:
    """Return the attempt to write KAI's queue on the object NAME; None removes it."""
    return patches(kind, {"metadata": {"labels": {KAI_QUEUE: queue}}}, api_version=api_version)


def _created() -> Iterator[Way]:
    """In another queue, in none, and as somebody's whose queue may be another."""
    for guardrail in IN_QUEUES:
        system, twin = guardrail.name, creates(guardrail.right)
        yield Way(name="in another queue", guard=system, attack=creates(queued(system, "other")), twin=twin)
        yield Way(name="in no queue", guard=system, attack=creates(with_(pod(), **QUEUES[system][2])), twin=twin)
        yield Way(name="for the default scheduler", guard=system, attack=creates(guardrail.wrong), twin=twin)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "forged", "uid": "0a1b2c3d-0000-4000-8000-00000000f0f0"}
    for system in ("kai", "slurm"):
        made = queued(system, "team-a")
        attack = creates(marked(made, ownerReferences=[owner]))
        yield Way(name="made with an owner", guard=system, attack=attack, twin=creates(made))
    named = queued("kai", "team-a", with_(pod(), nodeName="ways-h100"))
    yield Way(name="on a node by its name", guard="kai", attack=creates(named), twin=creates(queued("kai", "team-a")))


def bare_set(queue: str) -> Raw:
    """A ReplicaSet NAME without GPUs and without pods, which may be in any queue."""
    made = workload("ReplicaSet", pod({}), "NAME", replicas=0)
    made["metadata"]["labels"] = {KAI_QUEUE: queue}
    made["spec"]["selector"] = {"matchLabels": {APP: "nobody"}}
    made["spec"]["template"]["metadata"]["labels"] = {APP: "nobody"}
    return made


def paused(queue: str, *, gpus: bool) -> Raw:
    """A Deployment NAME that rolls nothing out."""
    made = workload("Deployment", queued("kai", "team-a") if gpus else pod({}), "NAME", replicas=1, paused=True)
    return marked(made, labels={KAI_QUEUE: queue})


def gpu_set() -> Raw:
    """A ReplicaSet NAME of a GPU pod, in its queue."""
    return marked(workload("ReplicaSet", queued("kai", "team-a"), "NAME", replicas=0), labels={KAI_QUEUE: "team-a"})


def _updated() -> Iterator[Way]:
    """A pod, or a workload, that is in its queue is changed."""
    for system, where, key in (
        ("kai", "labels", KAI_QUEUE),
        ("volcano", "annotations", "scheduling.volcano.sh/queue-name"),
        ("slurm", "annotations", "slurmjob.slinky.slurm.net/partition"),
        ("kai", "annotations", "pod-group-name"),
        ("volcano", "annotations", "scheduling.k8s.io/group-name"),
        ("slurm", "labels", "scheduling.x-k8s.io/pod-group"),
    ):
        attack = in_turn(creates(gated(system)), patches("Pod", {"metadata": {where: {key: "other"}}}))
        twin = in_turn(creates(gated(system)), patches("Pod", MARK))
        yield Way(name=f"{key} by an update", guard=system, attack=attack, twin=twin)
    twin = in_turn(creates(gated("kai")), annotates(note="x"))
    skips = in_turn(creates(gated("kai")), annotates(**{"kai.scheduler/skip-podgrouper": "true"}))
    yield Way(name="no group by an update", guard="kai", attack=skips, twin=twin)
    yield Way(name="its queue is taken off", guard="kai", attack=in_turn(creates(gated("kai")), in_queue("Pod", None)), twin=twin)
    for system in ("kai", "slurm"):
        attack = in_turn(creates(bare_set("other")), creates(gated(system)), takes_owner("Pod", "ReplicaSet"))
        twin = in_turn(creates(gated(system)), patches("Pod", MARK))
        yield Way(name="an owner by an update", guard=system, attack=attack, twin=twin)
    attack = in_turn(creates(paused("other", gpus=False)), creates(gpu_set()), takes_owner("ReplicaSet", "Deployment"))
    twin = in_turn(creates(gpu_set()), patches("ReplicaSet", MARK, api_version="apps/v1"))
    yield Way(name="a ReplicaSet gets an owner by an update", guard="kai", attack=attack, twin=twin)


def _moved() -> Iterator[Way]:
    """A workload moves, with its pods or as they lose their GPUs."""
    for kind, version, more in (("Job", "batch/v1", {"suspend": True}), ("Deployment", "apps/v1", {"paused": True})):
        made, moved = (
            marked(workload(kind, queued("kai", "team-a"), "NAME", **more), labels={KAI_QUEUE: one}) for one in ("team-a", "other")
        )
        yield Way(name=f"a {kind} of another queue", guard="kai", attack=creates(moved), twin=creates(made))
        attack = in_turn(creates(made), in_queue(kind, "other", version))
        yield Way(name=f"a {kind} moves", guard="kai", attack=attack, twin=in_turn(creates(made), patches(kind, MARK, api_version=version)))
    bare = {"template": {"spec": {"containers": [{"name": "main", "image": "registry.example/main:1", "resources": {}}]}}}

    def without_gpus(queue: str) -> Attempt:
        change = {"metadata": {"labels": {KAI_QUEUE: queue}}, "spec": bare}
        return in_turn(creates(paused("team-a", gpus=True)), patches("Deployment", change, api_version="apps/v1"))

    yield Way(name="a Deployment moves as its GPUs go", guard="kai", attack=without_gpus("other"), twin=without_gpus("team-a"))
    for kind in ("CronJob", "StatefulSet", "DaemonSet", "ReplicationController", "ReplicaSet"):
        of_gpus = workload(kind, queued("kai", "team-a"), "NAME")
        attack, twin = (creates(marked(of_gpus, labels={KAI_QUEUE: queue})) for queue in ("other", "team-a"))
        yield Way(name=f"a {kind} of another queue", guard="kai", attack=attack, twin=twin)
    cpu = workload("Job", pod({"limits": {"cpu": "1"}}), "NAME", suspend=True)
    more_gpus = {"suspend": False, "template": {"spec": {"containers": [{"name": "main", "resources": GPU}]}}}
    attack = in_turn(creates(cpu), patches("Job", {"spec": more_gpus}, content=STRATEGIC, api_version="batch/v1"))
    twin = in_turn(creates(cpu), patches("Job", {"spec": {"suspend": False}}, api_version="batch/v1"))
    codes = ("BERTH-144", "field is immutable")
    yield Way(name="a suspended Job gets GPUs", guard="kueue", attack=attack, twin=twin, codes=codes)
    eight = {"limits": {NVIDIA: "8"}, "requests": {NVIDIA: "8"}}
    of_eight = {**more_gpus, "template": {"spec": {"containers": [{"name": "main", "resources": eight}]}}}
    later = patches("Job", {"spec": of_eight}, content=STRATEGIC, api_version="batch/v1")
    attack = in_turn(creates(cpu), later, makes_pod)
    yield Way(name="a suspended Job gets eight GPUs", guard="max", attack=attack, twin=twin, codes=("BERTH-111", "field is immutable"))


def dressed(*, in_queue: bool) -> Raw:
    """A pod with Kueue's gate, of which its author says that a workload suspends it."""
    spec: Raw = {"nodeSelector": {HOST: H100_NODE}, "tolerations": [TOLERATION]}  # without which a DaemonSet has no pod
    made = marked(pod(schedulingGates=[KUEUE_GATE], **spec), annotations={PARENT: "statefulset"})
    return marked(made, labels={"kueue.x-k8s.io/queue-name": "team-a", MANAGED: "true"}) if in_queue else made


def _kueue() -> Iterator[Way]:
    """A pod that only says that Kueue holds it back, and one that stops saying so."""
    for kind in ("ReplicationController", "ReplicaSet", "DaemonSet", "StatefulSet", "Job"):
        made, honest = (workload(kind, dressed(in_queue=one), "NAME") for one in (False, True))
        twin = in_turn(creates(marked(honest, labels={"kueue.x-k8s.io/queue-name": "team-a"})), makes_pod)
        attack = in_turn(creates(made), runs_ungated)
        yield Way(name=f"a {kind} with Kueue's gate and parent", guard="kueue", attack=attack, twin=twin)
    member = own(queued("kueue", "team-a"))
    gone = {"op": "remove", "path": f"/metadata/labels/{MANAGED.replace('/', '~1')}"}
    lifted = {"op": "remove", "path": "/spec/schedulingGates"}
    twin = in_turn(creates(member), patches("Pod", MARK))
    for name, change in {"its mark goes": [gone], "its mark and its gate go": [lifted, gone]}.items():
        attack = in_turn(creates(member), patches("Pod", change, content=JSON_PATCH))
        yield Way(name=name, guard="kueue", attack=attack, twin=twin)
    for guard, outside in (("families", T4_NODE), ("models", T4_NODE), ("memory", T4_NODE), ("capacity", SPOT_NODE)):
        held, inside = (creates(own(with_(marked(at(node), labels=GROUP), schedulingGates=[KUEUE_GATE]))) for node in (outside, P5_NODE))
        twin = in_turn(inside, ungates(), placed)
        for name, steps in {
            "Kueue's labels go, then its gate": (patches("Pod", {"metadata": {"labels": dict.fromkeys(GROUP)}}), ungates()),
            "Kueue's mark and gate go": (patches("Pod", [lifted, gone], content=JSON_PATCH),),
            "Kueue's mark becomes false": (patches("Pod", {"metadata": {"labels": {MANAGED: "false"}}}), ungates()),
            "its queue goes": (patches("Pod", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": None}}}), ungates()),
            "its group goes": (patches("Pod", {"metadata": {"labels": {"kueue.x-k8s.io/pod-group-name": None}}}), ungates()),
        }.items():
            attack = in_turn(held, *steps, placed)
            yield Way(name=name, guard=guard, attack=attack, twin=twin, codes=(*OFF, "BERTH-123"))


WAYS = (*_created(), *_updated(), *_moved(), *_kueue())
