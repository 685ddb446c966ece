"""Entries for queues, by the API server's own code: which workloads are labelled and judged, and in which order."""

from __future__ import annotations

from typing import Any

from registration.configurations import FIRST_NAME, NAME, Service, first, made_of, manifests
from registration.entries import InstallChoices
from tests.support.calls.webhook_dispatch import AdmissionRequest, judge
from tests.support.generators.random_worlds import catalog

Raw = dict[str, Any]
QUEUES = InstallChoices(queues=True)
JOBS = ("batch", "v1", "jobs")
LABEL = "kueue.x-k8s.io/queue-name"
KUEUE = "kueue-mutating-webhook-configuration"
"""The name of Kueue's own, in its config/components/webhook."""
OURS = ("label.", "validate.workloads", "validate.operators")


def job(*, gpus: int = 1, labels: Raw | None = None, owner: bool = False, annotations: Raw | None = None) -> Raw:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {"cpu": "1"}
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "resources": {"limits": limits}}]}
    owners = [{"apiVersion": "batch/v1", "kind": "CronJob", "name": "o", "uid": "u", "controller": True}]
    metadata = {"name": "j", "namespace": "team-a", "labels": labels or {}, "annotations": annotations or {}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**metadata, **({"ownerReferences": owners} if owner else {})},
        "spec": {"template": {"spec": pod}},
    }


def called(*asked: AdmissionRequest, chosen: InstallChoices = QUEUES) -> list[set[str]]:
    """The entries for queues that are called for each."""
    invalid, answers = judge(asked, chosen=chosen)
    assert invalid == []
    assert [dict(one.errors) for one in answers] == [{} for _ in answers]
    return [{name for name in one.called if name.startswith(OURS)} for one in answers]


def test_new_workloads() -> None:
    """Labelled and judged if they ask for GPUs, whoever makes them; one with a queue may get its topology."""
    both = {"label.workloads", "validate.workloads"}
    asked = [job(), job(owner=True), job(labels={LABEL: "a"}), job(gpus=0)]
    assert called(*(AdmissionRequest(object=one, resource=JOBS) for one in asked)) == [both, both, both, set()]


def test_changed_workloads() -> None:
    """Judged if a queue, an owner or a template changed; what else changes is nobody's business here."""
    changes = [
        (job(labels={LABEL: "a"}), job(), True),
        (job(labels={"kai.scheduler/queue": "a"}), job(labels={"kai.scheduler/queue": "b"}), True),
        (job(annotations={"slurmjob.slinky.slurm.net/partition": "a"}), job(), True),
        (job(gpus=0), job(), True),
        (job(owner=True), job(), True),
        (job(labels={"team": "a"}), job(labels={"team": "b"}), False),
        (job(), job(), False),
    ]
    asked = (AdmissionRequest(object=now, old=old, operation="UPDATE", resource=JOBS) for old, now, _ in changes)
    assert called(*asked) == [{"validate.workloads"} if wanted else set() for _, _, wanted in changes]


def test_kinds_that_describe_their_pods_otherwise() -> None:
    """A SparkApplication is Kueue's, an Argo Workflow is only judged."""
    spark = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "metadata": {"name": "s"}}
    spec = {"executor": {"gpu": {"name": "nvidia.com/gpu", "quantity": 1}}}
    asked = AdmissionRequest(object={**spark, "spec": spec}, resource=("sparkoperator.k8s.io", "v1beta2", "sparkapplications"), typed=False)
    assert called(asked) == [{"label.operators", "validate.operators"}]


def test_none_of_them_unless_they_are_asked_for() -> None:
    """A cluster without queues has the entries that it had."""
    assert called(AdmissionRequest(object=job(), resource=JOBS), chosen=InstallChoices()) == [set()]
    assert first(catalog(), Service()) is None


def test_labels_are_written_before_kueue_reads_them() -> None:
    """The API server calls mutating webhooks in the order of their configurations' names."""
    before = first(catalog(), Service(), chosen=QUEUES)
    assert before is not None
    assert sorted([NAME, KUEUE, FIRST_NAME]) == [FIRST_NAME, KUEUE, NAME]
    assert before["metadata"]["name"] == FIRST_NAME
    assert {webhook["failurePolicy"] for webhook in before["webhooks"]} == {"Ignore"}
    made = {one["metadata"]["annotations"]["berth.dev/made-of"] for one in (before, *manifests(catalog(), Service(), chosen=QUEUES))}
    assert made == {made_of(catalog(), QUEUES)} != {made_of(catalog(), InstallChoices())}
