"""Queues: every known way past a required one, and what an update may change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policies.engine import evaluate
from policies.request import Request
from policies.rules.queues.queue import FIELD
from policies.verdict import Verdict
from tests.support.cases import golden
from tests.support.snapshots import build

Raw = dict[str, Any]
CATALOG = golden.catalog_with()
GPU: Raw = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}
KAI, KUEUE, VOLCANO, SLURM = {"kai": ["a"]}, {"kueue": ["a"]}, {"volcano": ["a"]}, {"slurm": ["a"]}
IN_KAI: Raw = {"labels": {"kai.scheduler/queue": "a"}, "spec": {"schedulerName": "kai-scheduler"}}
IN_VOLCANO: Raw = {"annotations": {"scheduling.volcano.sh/queue-name": "a"}, "spec": {"schedulerName": "volcano"}}
IN_SLURM: Raw = {"annotations": {"slurmjob.slinky.slurm.net/partition": "a"}, "spec": {"schedulerName": "slurm-bridge-scheduler"}}
IN_KUEUE: Raw = {
    "labels": {"kueue.x-k8s.io/queue-name": "a", "kueue.x-k8s.io/managed": "true"},
    "spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]},
}
PARENT: Raw = {"annotations": {"kueue.x-k8s.io/pod-suspending-parent": "statefulset"}, "spec": IN_KUEUE["spec"]}
OF_A_VOLCANO_JOB: Raw = {"annotations": {"volcano.sh/queue-name": "a"}, "spec": IN_VOLCANO["spec"]}
GROUP: Raw = {"annotations": {"scheduling.k8s.io/group-name": "mine"}}
JOBS = "system:serviceaccount:kube-system:job-controller"
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
VOLCANOS = "system:serviceaccount:volcano-system:volcano-controllers"


def owned(kind: str, version: str = "batch/v1") -> list[Raw]:
    return [{"apiVersion": version, "kind": kind, "name": "own", "uid": "u", "controller": True}]


REPLICA_SET, REPLICAS = owned("ReplicaSet", "apps/v1"), "system:serviceaccount:kube-system:replicaset-controller"


def pod(*parts: Raw, owners: list[Raw] | None = None) -> Raw:
    """Of the labels, annotations and fields of all parts, the last of which counts."""
    metadata = {where: {key: value for part in parts for key, value in part.get(where, {}).items()} for where in ("labels", "annotations")}
    spec = {key: value for part in parts for key, value in part.get("spec", {}).items()}
    named = {"name": "trainer", "uid": "u1"}
    return {"metadata": {**named, **metadata, **({"ownerReferences": owners} if owners else {})}, "spec": {"containers": [GPU], **spec}}


def judged(queue: Raw, made: Raw, user: str = "alice", queues: tuple[str, ...] = (), **request: Any) -> Verdict:
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "x"}, "spec": {"mode": "Enforce", "require": {"queue": queue}}}
    facts = build(golden.policies_of([policy], CATALOG), CATALOG, platforms=("karpenter-aws",), queues=queues).facts_for("ml")
    return evaluate(Request(namespace="ml", user=user, phase="validate", pod=made, **request), facts)


def codes(verdict: Verdict) -> list[str]:
    return [violation.code for violation in verdict.violations]


ADMITTED: dict[str, tuple[Raw, Raw, str, tuple[str, ...]]] = {
    "KAI's queue": (KAI, pod(IN_KAI), "alice", ()),
    "KAI's queue, of a Job": (KAI, pod(IN_KAI, owners=owned("Job")), JOBS, ()),
    "Volcano's queue": (VOLCANO, pod(IN_VOLCANO), "alice", ()),
    "Slurm's partition": (SLURM, pod(IN_SLURM), "alice", ()),
    "Slurm's partition, of a Job that says it": (SLURM, pod({"spec": IN_SLURM["spec"]}, owners=owned("Job")), JOBS, ()),
    "a Job that Kueue holds": (KUEUE, pod(owners=owned("Job")), JOBS, ()),
    "a pod that Kueue holds": (KUEUE, pod(IN_KUEUE), "alice", ("kueue",)),
    "one of two systems": ({**KUEUE, **KAI}, pod(IN_KAI), "alice", ()),
    "a pod of a StatefulSet that Kueue holds": (
        KUEUE,
        pod(
            {"annotations": {"kueue.x-k8s.io/pod-suspending-parent": "statefulset"}, "spec": IN_KUEUE["spec"]},
            owners=owned("StatefulSet", "apps/v1"),
        ),
        "system:serviceaccount:kube-system:statefulset-controller",
        ("kueue",),
    ),
}
PAST: dict[str, tuple[Raw, Raw, str, tuple[str, ...]]] = {
    "the default scheduler": (KAI, pod({"spec": {"schedulerName": "default-scheduler"}}), "alice", ()),
    "no scheduler written": (KAI, pod(), "alice", ()),
    "a scheduler of its own": (KAI, pod(IN_KAI, {"spec": {"schedulerName": "mine"}}), "alice", ()),
    "another system's scheduler": (KAI, pod(IN_KAI, {"spec": {"schedulerName": "volcano"}}), "alice", ()),
    "the label, and the default scheduler": (KAI, pod({"labels": IN_KAI["labels"]}), "alice", ()),
    "the scheduler, and no label": (KAI, pod({"spec": IN_KAI["spec"]}), "alice", ()),
    "another queue": (KAI, pod(IN_KAI, {"labels": {"kai.scheduler/queue": "b"}}), "alice", ()),
    "an empty queue": (KAI, pod(IN_KAI, {"labels": {"kai.scheduler/queue": ""}}), "alice", ()),
    "any queue, written as a star": (KAI, pod(IN_KAI, {"labels": {"kai.scheduler/queue": "*"}}), "alice", ()),
    "a node": (KAI, pod(IN_KAI, {"spec": {"nodeName": "gpu-7"}}), "alice", ()),
    "a group of pods that its author made": (KAI, pod(IN_KAI, {"annotations": {"pod-group-name": "mine"}}), "alice", ()),
    "a word that keeps KAI from grouping it": (KAI, pod(IN_KAI, {"annotations": {"kai.scheduler/skip-podgrouper": "true"}}), "alice", ()),
    "an owner with a queue of its own": (KAI, pod(IN_KAI, owners=owned("ConfigMap", "v1")), "alice", ()),
    "a Job that its author names as owner": (KAI, pod(IN_KAI, owners=owned("Job")), "alice", ()),
    "an owner that is no controller": (KAI, pod(IN_KAI, owners=[{**owned("Job")[0], "controller": False}]), "alice", ()),
    "a DaemonSet with a node": (KAI, pod({"spec": {"nodeName": "gpu-7"}}, owners=owned("DaemonSet", "apps/v1")), "alice", ()),
    "an annotation that says it is a mirror": (KAI, pod({"annotations": {"kubernetes.io/config.mirror": "x"}}), "alice", ()),
    "Volcano's label in place of its annotation": (
        VOLCANO, pod({"labels": {"scheduling.volcano.sh/queue-name": "a"}, "spec": IN_VOLCANO["spec"]}), "alice", (),
    ),
    "a group of Spark's that its author names": (KAI, pod(IN_KAI, {"labels": {"spark-app-selector": "g"}}), "alice", ()),
    "a Volcano group that its author made": (VOLCANO, pod(IN_VOLCANO, GROUP), "alice", ()),
    "what Volcano writes on pods of its Jobs, in a Job's template": (
        VOLCANO,
        pod(OF_A_VOLCANO_JOB, GROUP, owners=owned("Job")),
        JOBS, (),
    ),
    "a Volcano Job that its author names as owner": (
        VOLCANO,
        pod(OF_A_VOLCANO_JOB, owners=owned("Job", "batch.volcano.sh/v1alpha1")),
        "alice", (),
    ),
    "a Volcano Job of another queue": (
        VOLCANO,
        pod(IN_VOLCANO, {"annotations": {"volcano.sh/queue-name": "b"}}, owners=owned("Job", "batch.volcano.sh/v1alpha1")),
        VOLCANOS, (),
    ),
    "another partition": (SLURM, pod(IN_SLURM, {"annotations": {"slurmjob.slinky.slurm.net/partition": "b"}}), "alice", ()),
    "a partition that Slurm bridge does not read": (
        SLURM, pod({"annotations": {"slinky.slurm.net/partition": "a"}, "spec": IN_SLURM["spec"]}), "alice", (),
    ),
    "a Slurm group that its author made": (SLURM, pod(IN_SLURM, {"labels": {"scheduling.x-k8s.io/pod-group": "mine"}}), "alice", ()),
    "a Slurm group of Kubernetes' own": (SLURM, pod(IN_SLURM, {"spec": {"schedulingGroup": {"podGroupName": "mine"}}}), "alice", ()),
    "an owner whose partition Slurm bridge reads": (SLURM, pod(IN_SLURM, owners=owned("ConfigMap", "v1")), "alice", ()),
    "Kueue's label, which nobody acts on": (KUEUE, pod({"labels": IN_KUEUE["labels"]}), "alice", ("kueue",)),
    "Kueue's gate, which its author lifts": (KUEUE, pod(IN_KUEUE), "alice", ()),
    "Kueue's gate without its mark": (
        KUEUE, pod({"labels": {"kueue.x-k8s.io/queue-name": "a"}, "spec": IN_KUEUE["spec"]}), "alice", ("kueue",),
    ),
    "another gate": (KUEUE, pod(IN_KUEUE, {"spec": {"schedulingGates": [{"name": "mine"}]}}), "alice", ("kueue",)),
    "a parent that Kueue does not know, of a ReplicaSet": (KUEUE, pod(PARENT, owners=REPLICA_SET), REPLICAS, ("kueue",)),
    "a parent in a ReplicaSet's template that says a queue too": (
        KUEUE, pod(PARENT, {"labels": {"kueue.x-k8s.io/queue-name": "a"}}, owners=REPLICA_SET), REPLICAS, ("kueue",),
    ),
    "another queue of Kueue's": (KUEUE, pod(IN_KUEUE, {"labels": {"kueue.x-k8s.io/queue-name": "b"}}), "alice", ("kueue",)),
    "a parent of Kueue's that its author names": (
        KUEUE, pod(PARENT), "alice", ("kueue",),
    ),
    "a Job in Kueue that its author names as owner": (KUEUE, pod(owners=owned("Job")), "alice", ("kueue",)),
    "an owner that Kueue does not hold back": (KUEUE, pod(owners=owned("ReplicaSet", "apps/v1")), JOBS, ()),
    "an owner of that name in another group": (KUEUE, pod(owners=owned("Job", "example.com/v1")), JOBS, ()),
    "the podset of a Job that Kueue admitted": (
        KUEUE, pod({"labels": {"kueue.x-k8s.io/podset": "main"}}, owners=owned("Job")), "alice", (),
    ),
    "Kueue's gate, and a node": (KUEUE, pod(IN_KUEUE, {"spec": {"nodeName": "gpu-7"}}), "alice", ("kueue",)),
}  # fmt: skip


@pytest.mark.parametrize("way", ADMITTED)
def test_a_pod_in_a_required_queue_is_admitted(way: str) -> None:
    """The other side of the list below: each of these waits in a queue that is allowed."""
    queue, made, user, queues = ADMITTED[way]
    assert codes(judged(queue, made, user, queues)) == []


@pytest.mark.parametrize("way", PAST)
def test_every_way_past_a_required_queue_is_denied(way: str) -> None:
    """By one code, which names the field of the policy."""
    queue, made, user, queues = PAST[way]
    (violation,) = judged(queue, made, user, queues).violations
    assert (violation.code, violation.fields) == ("BERTH-144", (("ClusterGPUPolicy/x", FIELD),))


def test_a_catalog_lists_further_controllers() -> None:
    """Pods of an operator that a platform team trusts are believed to have the owner that they name."""
    operator = "system:serviceaccount:training:operator"
    assert codes(judged(KUEUE, pod(owners=owned("RayCluster", "ray.io/v1")), operator)) == ["BERTH-144"]
    listed = {"user": operator, "source": "general", "mark": "verified"}
    overlaid = golden.catalog_with(json.dumps([{"podMakers": [listed]}]))
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "x"}, "spec": {"mode": "Enforce", "require": {"queue": KUEUE}}}
    facts = build(golden.policies_of([policy], overlaid), overlaid, platforms=("karpenter-aws",)).facts_for("ml")
    asked = Request(namespace="ml", user=operator, phase="validate", pod=pod(owners=owned("RayCluster", "ray.io/v1")))
    assert evaluate(asked, facts).violations == ()


UPDATES: dict[str, tuple[Raw, Raw, Raw, str, bool]] = {
    "another queue of KAI's": (KAI, pod(IN_KAI), pod(IN_KAI, {"labels": {"kai.scheduler/queue": "b"}}), "alice", True),
    "no queue of KAI's any more": (KAI, pod(IN_KAI), pod({"spec": IN_KAI["spec"]}), "alice", True),
    "a queue that is allowed": (
        {"kai": ["a", "b"]}, pod(IN_KAI), pod(IN_KAI, {"labels": {"kai.scheduler/queue": "b"}}), "alice", False,
    ),
    "a queue that it had before the policy": (
        KAI, pod(IN_KAI, {"labels": {"kai.scheduler/queue": "b"}}), pod(IN_KAI, {"labels": {"kai.scheduler/queue": "b"}}), "alice", False,
    ),
    "the group that KAI's pod grouper makes of it": (
        KAI, pod(IN_KAI), pod(IN_KAI, {"annotations": {"pod-group-name": "pg-trainer-u1"}}), "alice", False,
    ),
    "the group of somebody else's pods": (
        KAI, pod(IN_KAI), pod(IN_KAI, {"annotations": {"pod-group-name": "pg-1"}}), "alice", True,
    ),
    "a group of its workload's, which KAI writes again": (
        KAI, pod(IN_KAI, owners=REPLICA_SET), pod(IN_KAI, {"annotations": {"pod-group-name": "pg-1"}}, owners=REPLICA_SET), "alice", False,
    ),
    "an owner, of whose queue KAI takes it": (KAI, pod(IN_KAI), pod(IN_KAI, owners=REPLICA_SET), "alice", True),
    "a ReplicaSet that adopts it": (KAI, pod(IN_KAI), pod(IN_KAI, owners=REPLICA_SET), REPLICAS, True),
    "an owner that its author takes away": (KAI, pod(IN_KAI, owners=REPLICA_SET), pod(IN_KAI), "alice", True),
    "an owner that is deleted without it": (KAI, pod(IN_KAI, owners=REPLICA_SET), pod(IN_KAI), COLLECTOR, False),
    "the group of Spark's pods": (
        KAI, pod(IN_KAI), pod(IN_KAI, {"labels": {"spark-app-selector": "g"}}), "alice", True,
    ),
    "an owner that lets it go into a partition of its own": (
        SLURM, pod(IN_SLURM, {"annotations": {"slurmjob.slinky.slurm.net/partition": "b"}}, owners=REPLICA_SET),
        pod(IN_SLURM, {"annotations": {"slurmjob.slinky.slurm.net/partition": "b"}}), "alice", True,
    ),
    "a word that keeps KAI from grouping it": (
        KAI, pod(IN_KAI), pod(IN_KAI, {"annotations": {"kai.scheduler/skip-podgrouper": "true"}}), "alice", True,
    ),
    "a Volcano group of the author's": (
        VOLCANO, pod(IN_VOLCANO), pod(IN_VOLCANO, GROUP), "alice", True,
    ),
    "the group that Volcano's controller writes": (
        VOLCANO, pod(IN_VOLCANO), pod(IN_VOLCANO, {"annotations": {"scheduling.k8s.io/group-name": "pg-1"}}), VOLCANOS, False,
    ),
    "another partition": (
        SLURM, pod(IN_SLURM), pod(IN_SLURM, {"annotations": {"slurmjob.slinky.slurm.net/partition": "b"}}), "alice", True,
    ),
    "Kueue's mark taken away": (
        KUEUE, pod(IN_KUEUE), pod({"labels": {"kueue.x-k8s.io/queue-name": "a"}, "spec": IN_KUEUE["spec"]}), "alice", True,
    ),
    "Kueue's gate lifted, by Kueue or by somebody whose pod it then ends": (
        KUEUE, pod(IN_KUEUE), pod({"labels": IN_KUEUE["labels"]}), "alice", False,
    ),
    "a pod that runs, and a toleration": (
        KAI, pod({"spec": {"nodeName": "n"}}), pod({"spec": {"nodeName": "n", "tolerations": []}}), "alice", False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", UPDATES)
def test_an_update_keeps_a_pod_in_its_queue(change: str) -> None:
    """What may not be created may not come about by an update; what was there before the policy stays."""
    queue, before, after, user, denied = UPDATES[change]
    found = judged(queue, after, user, operation="UPDATE", old_pod=before)
    assert codes(found) == (["BERTH-144"] if denied else [])
