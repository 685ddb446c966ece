"""Workloads and their queues: what a default labels, what is denied, through the handlers as they are called."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from policies.facts.cluster_facts import ClusterFacts, FactEntry
from policies.state.snapshot import Snapshot
from telemetry.metrics import Metrics
from tests.support import snapshots
from tests.support.cases import golden
from webhook.admission import handlers
from webhook.admission.decision_cache import empty_decisions

Raw = dict[str, Any]
CATALOG = golden.catalog_with()
LABEL, KAI, SLURM = "kueue.x-k8s.io/queue-name", "kai.scheduler/queue", "slurmjob.slinky.slurm.net/partition"
GIVES: Raw = {"default": {"queue": {"kueue": "team-a"}}}
REQUIRES: Raw = {"require": {"queue": {"kueue": ["team-a"]}}}
JOB = ("batch/v1", "Job", "jobs")


def world(*specs: Raw) -> Snapshot:
    named = ({"kind": "ClusterGPUPolicy", "metadata": {"name": f"p{i}"}, "spec": {"mode": "Enforce", **one}} for i, one in enumerate(specs))
    return snapshots.build(golden.policies_of(list(named), CATALOG), CATALOG, platforms=("karpenter-aws",))


def template(gpus: int = 1, **spec: Any) -> Raw:
    limits = {"nvidia.com/gpu": gpus} if gpus else {"cpu": 1}
    return {"metadata": {}, "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}], "restartPolicy": "Never", **spec}}


def job(
    labels: Raw | None = None, *, gpus: int = 1, owner: tuple[str, str] | None = None, annotations: Raw | None = None, **spec: Any
) -> Raw:
    metadata: Raw = {"name": "train", **({"labels": labels} if labels else {}), **({"annotations": annotations} if annotations else {})}
    if owner is not None:
        metadata["ownerReferences"] = [{"apiVersion": owner[0], "kind": owner[1], "name": "o", "uid": "u", "controller": True}]
    return {"metadata": metadata, "spec": {"template": template(gpus, **spec)}}


def review(value: Raw, kind: tuple[str, str, str] = JOB, *, old: Raw | None = None, user: str = "alice") -> bytes:
    version, name, resource = kind
    group, _, number = version.rpartition("/")
    request = {
        "uid": "1",
        "kind": {"group": group, "version": number, "kind": name},
        "resource": {"group": group, "version": number, "resource": resource},
        "namespace": "ml",
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": {"username": user},
        "object": {"apiVersion": version, "kind": name, **value},
        "oldObject": old and {"apiVersion": version, "kind": name, **old},
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def labelled(value: Raw, *specs: Raw, kind: tuple[str, str, str] = JOB, **asked: Any) -> list[Raw]:
    word, answer = handlers.handle_label(review(value, kind, **asked), world(*specs), Metrics("0"))
    response = json.loads(answer)["response"]
    assert response["allowed"]
    assert word == "advised"
    found: list[Raw] = json.loads(base64.b64decode(response.get("patch", ""))) if "patch" in response else []
    return [one for one in found if "berth.dev" not in json.dumps(one)]


def denied(value: Raw, *specs: Raw, kind: tuple[str, str, str] = JOB, **asked: Any) -> str:
    """The denial, "" if there is none."""
    _, answer = handlers.handle_review("validate", review(value, kind, **asked), world(*specs), Metrics("0"))
    response = json.loads(answer)["response"]
    assert response["allowed"] == ("status" not in response)
    return str(response.get("status", {}).get("message", ""))


ADDED = [{"op": "add", "path": "/metadata/labels", "value": {LABEL: "team-a"}}]


def test_a_gpu_job_without_a_queue_gets_the_default() -> None:
    """One label, and nothing of suspend: that is Kueue's."""
    assert labelled(job(), GIVES) == ADDED
    beside = labelled(job({"team": "a"}), GIVES)
    assert beside == [{"op": "add", "path": "/metadata/labels/kueue.x-k8s.io~1queue-name", "value": "team-a"}]


@pytest.mark.parametrize(
    "value",
    [
        job(gpus=0),
        job({LABEL: "mine"}),
        job({LABEL: ""}),
        job(owner=("jobset.x-k8s.io/v1alpha2", "JobSet")),
        job(schedulerName="volcano"),
        job(nodeName="gpu-7"),
    ],
    ids=["no GPU", "a queue", "an empty queue", "a managed parent", "another scheduler", "a node"],
)
def test_other_jobs_are_left_alone(value: Raw) -> None:
    """What asks for no GPU, and whatever somebody has chosen a queue, a scheduler or a node for."""
    assert labelled(value, GIVES) == []


def test_a_job_of_a_cron_job_is_labelled() -> None:
    """Kueue holds back the Jobs of a CronJob, and not the CronJob."""
    assert labelled(job(owner=("batch/v1", "CronJob")), GIVES, user="system:serviceaccount:kube-system:cronjob-controller") == ADDED


def test_kinds_that_kueue_holds_back() -> None:
    """Each by the places in which it describes its pods; a kind that Kueue does not know is left alone."""
    cluster = {
        "metadata": {"name": "r"},
        "spec": {"headGroupSpec": {"template": template(0)}, "workerGroupSpecs": [{"template": template()}]},
    }
    assert labelled(cluster, GIVES, kind=("ray.io/v1", "RayCluster", "rayclusters")) == ADDED
    assert labelled(job(), GIVES, kind=("apps/v1", "StatefulSet", "statefulsets")) == ADDED
    assert labelled(job(), GIVES, kind=("apps/v1", "DaemonSet", "daemonsets")) == []


def test_defaults_that_differ_or_are_not_of_kueues() -> None:
    """Neither acts; KAI's queue is the pods' own."""
    other = {"default": {"queue": {"kueue": "team-b"}}}
    assert labelled(job(), GIVES, other) == []
    assert labelled(job(), {"default": {"queue": {"kai": "team-a"}}}) == []
    assert labelled(job(), other, REQUIRES) == []


def test_a_workload_without_the_queue_that_is_required_is_denied() -> None:
    """With the label to type; what asks for no GPU, and what has it, is not."""
    assert denied(job(), REQUIRES).startswith(
        'BERTH-144: metadata.labels["kueue.x-k8s.io/queue-name"] is not set, and a Kueue queue is required here; set it to team-a.'
    )
    assert "BERTH-144" in denied(job({LABEL: "other"}), REQUIRES)
    assert denied(job({LABEL: "team-a"}), REQUIRES) == ""
    assert denied(job(gpus=0), REQUIRES) == ""
    assert denied(job(), GIVES) == ""


def test_an_update_that_leaves_the_queue_is_denied() -> None:
    """To take the label away or change it, or to ask for GPUs only then; what it had before the policy stays."""
    inside, outside = job({LABEL: "team-a"}), job({LABEL: "other"})
    assert "BERTH-144" in denied(job(), REQUIRES, old=inside)
    assert "BERTH-144" in denied(outside, REQUIRES, old=inside)
    assert "BERTH-144" in denied(job(), REQUIRES, old=job(gpus=0))
    assert denied(outside, REQUIRES, old=outside) == ""
    assert denied(job(gpus=0), REQUIRES, old=outside) == ""


def test_a_parent_is_believed_of_a_controller_alone() -> None:
    """An owner reference is a thing that anybody can write."""
    of_a_set = job(owner=("jobset.x-k8s.io/v1alpha2", "JobSet"))
    assert denied(of_a_set, REQUIRES, user="system:serviceaccount:jobset-system:jobset-controller-manager") == ""
    assert "BERTH-144" in denied(of_a_set, REQUIRES)


def test_an_owner_that_its_author_wrote_is_denied() -> None:
    """Kueue holds back the owner of a kind that it knows in place of this, whether there is one or not; also if it is added later."""
    named = {LABEL: "team-a"}
    forged, made = job(named, owner=("jobset.x-k8s.io/v1alpha2", "JobSet")), job(named)
    assert denied(made, REQUIRES) == ""
    assert "names an owner" in denied(forged, REQUIRES)
    assert "names an owner" in denied(forged, REQUIRES, old=made)
    assert denied(forged, REQUIRES, old=forged) == ""
    assert denied(forged, REQUIRES, user="system:serviceaccount:jobset-system:jobset-controller-manager") == ""
    assert denied(job(named, owner=("example.com/v1", "Fleet")), REQUIRES) == ""


def test_what_runs_moves_to_no_other_queue() -> None:
    """KAI takes the queue of the topmost owner, also once the pods are there: as its GPUs go, or as another object adopts a workload."""
    kai = {"require": {"queue": {"kai": ["a"]}}}
    before = job({KAI: "a"}, schedulerName="kai-scheduler")
    assert "BERTH-144" in denied(job({KAI: "b"}, gpus=0, schedulerName="kai-scheduler"), kai, old=before)
    assert "BERTH-144" in denied(job({KAI: "b"}, gpus=0), kai, old=job({KAI: "a"}, gpus=0))
    assert denied(job({KAI: "c"}, gpus=0), kai, old=job({KAI: "b"}, gpus=0)) == ""
    assert denied(job({KAI: "a"}, gpus=0, schedulerName="kai-scheduler"), kai, old=before) == ""
    assert denied(job(gpus=0), kai, old=before) == ""
    controller = "system:serviceaccount:kube-system:deployment-controller"
    owned = job({KAI: "a"}, owner=("apps/v1", "Deployment"), schedulerName="kai-scheduler")
    assert "names a new owner" in denied(owned, kai, old=before, user=controller)
    assert denied(owned, kai, user=controller) == denied(owned, kai, old=owned, user=controller) == ""


def test_what_kai_has_grouped_does_not_grow() -> None:
    """KAI leaves a workload's pods in the group that was made before they asked for GPUs; of a Deployment it makes one for each pod."""
    kai = {"require": {"queue": {"kai": ["a"]}}}
    small, large = (job({KAI: "a"}, gpus=gpus, schedulerName="kai-scheduler") for gpus in (0, 1))
    for kind in (("apps/v1", "ReplicaSet", "replicasets"), ("apps/v1", "StatefulSet", "statefulsets")):
        assert "delete the workload, and create it again" in denied(large, kai, kind=kind, old=small)
        assert denied(large, kai, kind=kind) == denied(large, kai, kind=kind, old=large) == ""
    assert denied(large, kai, kind=("apps/v1", "Deployment", "deployments"), old=small) == ""


def test_a_word_that_keeps_kai_from_grouping_counts_on_the_owner_too() -> None:
    """When it is made, and when it is written later."""
    kai, skips = {"require": {"queue": {"kai": ["a"]}}}, {"kai.scheduler/skip-podgrouper": "true"}
    right, wrong = (job({KAI: "a"}, annotations=found, schedulerName="kai-scheduler") for found in (None, skips))
    assert "BERTH-144" in denied(wrong, kai)
    assert "BERTH-144" in denied(wrong, kai, old=right)
    assert denied(right, kai) == ""


@pytest.mark.parametrize(("parent", "is_denied"), [(None, False), ("statefulset", False), ("leaderworkerset", True)])
def test_a_parent_by_which_kueue_leaves_pods_alone(parent: str | None, *, is_denied: bool) -> None:
    """Kueue passes over a StatefulSet whose template says that another kind suspends it, whatever its label."""
    value = job({LABEL: "team-a"})
    value["spec"]["template"]["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-suspending-parent": parent} if parent else {}
    assert ("BERTH-144" in denied(value, REQUIRES, kind=("apps/v1", "StatefulSet", "statefulsets"))) is is_denied


def test_queues_that_a_workload_says_for_its_pods() -> None:
    """KAI reads the topmost owner's label before the pod's, Slurm bridge the owner's annotation alone."""
    kai, slurm = {"require": {"queue": {"kai": ["a"]}}}, {"require": {"queue": {"slurm": ["a"]}}}
    assert denied(job(schedulerName="kai-scheduler"), kai) == ""
    assert "BERTH-144" in denied(job({KAI: "b"}, schedulerName="kai-scheduler"), kai)
    assert "BERTH-144" in denied(job(owner=("v1", "ConfigMap"), schedulerName="kai-scheduler"), kai)
    assert "BERTH-144" in denied(job(schedulerName="slurm-bridge-scheduler"), slurm)
    assert "BERTH-144" in denied(job(), slurm)
    assert denied(job(annotations={SLURM: "a"}, schedulerName="slurm-bridge-scheduler"), slurm) == ""
    assert "BERTH-144" in denied(job(annotations={SLURM: "b"}, schedulerName="slurm-bridge-scheduler"), slurm)


def test_a_template_that_cannot_be_read_is_denied_where_a_queue_is_required() -> None:
    """Else whoever writes one would be past the queue; a label is then not given, and nothing else is denied."""
    odd: Raw = {"metadata": {"name": "r"}, "spec": {"template": 1}}
    assert "BERTH-005" in denied(odd, REQUIRES)
    assert denied(odd, GIVES) == ""
    assert labelled(odd, GIVES) == []
    assert denied(job({LABEL: "team-a"}), REQUIRES, old=odd) == ""


def test_a_decision_on_a_controllers_pod_is_no_decision_on_anybodys() -> None:
    """Pods that are alike share a decision, but not where it is believed of one maker alone; a user that can't be read is anybody."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": job(owner=("batch/v1", "Job"))["metadata"], "spec": template()["spec"]}
    snapshot, decisions, allowed = world(REQUIRES), empty_decisions(), []
    for user in ("system:serviceaccount:kube-system:job-controller", "alice", ""):
        body = review(pod, ("v1", "Pod", "pods"), user=user)
        _, answer = handlers.handle_review("validate", body, snapshot, Metrics("0"), decisions)
        allowed.append(json.loads(answer)["response"]["allowed"])
    assert allowed == [True, False, False]


# --- what waits in a queue for ever -------------------------------------------------------------------------------------


def warned(value: Raw, snapshot: Snapshot, *, call: str = "validate", **asked: Any) -> list[str]:
    """The warnings of a review that lets it pass."""
    sent = review(value, **asked)
    if call == "advise":
        _, answer = handlers.advise_workload(sent, snapshot, Metrics("0"))
    else:
        _, answer = handlers.handle_review("validate", sent, snapshot, Metrics("0"))
    response = json.loads(answer)["response"]
    assert response["allowed"]
    found: list[str] = response.get("warnings", [])
    return found


def queues(*specs: Raw) -> Snapshot:
    """The queue team-a of one flavor, and policies."""
    kueue = "kueue.x-k8s.io/v1beta2"
    group = {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "gpus"}]}
    objects: list[Raw] = [
        {"apiVersion": kueue, "kind": "LocalQueue", "metadata": {"name": "team-a", "namespace": "ml"}, "spec": {"clusterQueue": "gpus"}},
        {"apiVersion": kueue, "kind": "ClusterQueue", "metadata": {"name": "gpus"}, "spec": {"resourceGroups": [group]}},
        {"apiVersion": kueue, "kind": "ResourceFlavor", "metadata": {"name": "gpus"}, "spec": {"nodeLabels": {"pool": "gpus"}}},
    ]
    facts = ClusterFacts.from_objects(objects).changed([FactEntry("followed", "LocalQueue", value=True)])
    return world(*specs).with_facts(facts)


@pytest.mark.parametrize("call", ["validate", "advise"])
@pytest.mark.parametrize("specs", [(), (REQUIRES,)], ids=["no policy", "a required queue"])
def test_a_workload_that_its_queue_cant_place_is_warned_of(call: str, specs: tuple[Raw, ...]) -> None:
    """By both calls, in the same words, whether a policy speaks of queues or not; it is never denied for that."""
    (told,) = warned(job({LABEL: "team-a"}, nodeSelector={"pool": "other"}), queues(*specs), call=call)
    assert told.startswith("BERTH-244: no flavor of queue team-a (gpus) fits spec.template, so it never runs: gpus has pool=gpus; ")
    assert warned(job({LABEL: "team-a"}, nodeSelector={"pool": "gpus"}), queues(*specs), call=call) == []


def test_it_is_warned_of_when_made_or_moved() -> None:
    """Other updates, such as Kueue's own, say nothing once more."""
    lost = job({LABEL: "team-q"})
    assert warned(lost, queues(), old=lost) == []
    assert warned(lost, queues(), old=lost, call="advise") == []
    assert len(warned(lost, queues(), old=job({LABEL: "team-a"}))) == 1
    assert len(warned(lost, queues(), old=job())) == 1


def test_a_workload_that_is_denied_is_told_that_alone() -> None:
    """What its queue would do is of no interest then."""
    _, answer = handlers.handle_review("validate", review(job({LABEL: "team-q"})), queues(REQUIRES), Metrics("0"))
    response = json.loads(answer)["response"]
    assert (response["allowed"], response.get("warnings")) == (False, None)
