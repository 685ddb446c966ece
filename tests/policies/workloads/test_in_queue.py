"""Pods of workloads that are in a queue of Kueue's or Volcano's."""

from __future__ import annotations

from typing import Any

import pytest

from policies.document import Document
from policies.workloads.in_queue import alone_in_kueue, in_kueue
from policies.workloads.pods import Owner, Templated, pods_of
from policies.workloads.templates import workload_of
from tests.support.cases import golden

CATALOG = golden.catalog_with()
QUEUE = "kueue.x-k8s.io/queue-name"
GATE = {"name": "kueue.x-k8s.io/admission"}
PARENT = "kueue.x-k8s.io/pod-suspending-parent"
TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "main"}]}}


def _pods(api_version: str, kind: str, spec: dict[str, Any], queue: object = "q") -> list[dict[str, Any]]:
    known = workload_of(CATALOG, api_version, kind)
    assert known is not None
    value = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "w", "labels": {QUEUE: queue}}, "spec": spec}
    made = pods_of(
        Document(file="f", value=value), Owner(api_version=api_version, kind=kind, name="w", namespace="a", workload=known), CATALOG
    )
    return [one.pod for one in made if isinstance(one, Templated)]


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"),
    [
        ("apps/v1", "Deployment", {"template": TEMPLATE}),
        ("apps/v1", "StatefulSet", {"template": TEMPLATE}),
        (
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {"leaderWorkerTemplate": {"leaderTemplate": TEMPLATE, "workerTemplate": TEMPLATE}},
        ),
    ],
)
def test_pods_of_what_kueue_does_not_suspend_are_gated(api_version: str, kind: str, spec: dict[str, Any]) -> None:
    """Each has the queue, the gate and the annotation by which Kueue's webhooks hold it."""
    pods = _pods(api_version, kind, spec)
    assert pods
    for pod in pods:
        assert pod["metadata"]["labels"][QUEUE] == "q"
        assert pod["metadata"]["annotations"][PARENT] == kind.lower()
        assert pod["spec"]["schedulingGates"] == [GATE]
        assert "kueue.x-k8s.io/podset" not in pod["metadata"]["labels"]


@pytest.mark.parametrize("queue", ["", None, 7])
def test_no_queue_leaves_the_pod_as_its_template_says(queue: object) -> None:
    """An empty label, or one that is no text, names no queue."""
    (pod,) = _pods("apps/v1", "Deployment", {"template": TEMPLATE}, queue)
    assert QUEUE not in pod["metadata"]["labels"]
    assert "schedulingGates" not in pod["spec"]


def test_what_the_author_wrote_stays() -> None:
    """Other gates, labels and annotations are kept, the gate is there once, and the pod given is not changed."""
    known = workload_of(CATALOG, "apps/v1", "Deployment")
    assert known is not None
    pod = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {"schedulingGates": [{"name": "own"}, GATE], "containers": []},
    }
    before = str(pod)
    made = in_kueue(pod, known, "q")
    assert str(pod) == before
    assert made["metadata"]["labels"] == {"a": "b", QUEUE: "q", "kueue.x-k8s.io/managed": "true"}
    assert made["metadata"]["annotations"]["c"] == "d"
    assert made["spec"] == pod["spec"]
    assert in_kueue(made, known, "q") == made


@pytest.mark.parametrize(("queues", "held"), [(("kueue",), True), (("slurm-bridge",), False), ((), False)])
def test_a_pod_that_names_a_queue_is_held_where_kueue_manages_pods(queues: tuple[str, ...], *, held: bool) -> None:
    """Kueue's webhook gates it and labels it managed; elsewhere the label is a word that nobody reads."""
    pod = {"metadata": {"labels": {QUEUE: "q"}}, "spec": {"containers": []}}
    made = alone_in_kueue(pod, queues)
    assert (made["metadata"]["labels"].get("kueue.x-k8s.io/managed") == "true") is held
    assert (made["spec"].get("schedulingGates") == [GATE]) is held


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {}},
        {"labels": {QUEUE: ""}},
        {"labels": {QUEUE: "q", "kueue.x-k8s.io/podset": "main"}},
        {"labels": {QUEUE: "q"}, "annotations": {PARENT: "deployment"}},
    ],
    ids=["no queue", "an empty one", "of a workload that was suspended", "of a workload that is gated"],
)
def test_no_other_pod_is_held_for_its_label(metadata: dict[str, Any]) -> None:
    """Kueue leaves alone the pods of a workload that it manages itself."""
    pod = {"metadata": metadata, "spec": {"containers": []}}
    assert alone_in_kueue(pod, ("kueue",)) == pod


@pytest.mark.parametrize(("queue", "read"), [({"queue": "gpu"}, "gpu"), ({"queue": ""}, "default"), ({}, "default")])
def test_pods_of_a_volcano_job_have_its_queue(queue: dict[str, str], read: str) -> None:
    """Volcano's controller writes it over what the template says, and its webhook gives a job that names none the default."""
    template = {"metadata": {"annotations": {"volcano.sh/queue-name": "other"}}, **TEMPLATE}
    (pod,) = _pods("batch.volcano.sh/v1alpha1", "Job", {**queue, "tasks": [{"template": template}]}, None)
    assert pod["metadata"]["annotations"]["volcano.sh/queue-name"] == read


@pytest.mark.parametrize(
    ("job", "template", "scheduler"),
    [({}, {}, "volcano"), ({"schedulerName": "a"}, {}, "a"), ({"schedulerName": "a"}, {"schedulerName": "b"}, "b")],
)
def test_pods_of_a_volcano_job_have_its_scheduler(job: dict[str, str], template: dict[str, str], scheduler: str) -> None:
    """The template's own counts first, then the job's, then Volcano's."""
    spec = {**job, "tasks": [{"template": {"spec": {**TEMPLATE["spec"], **template}}}]}
    (pod,) = _pods("batch.volcano.sh/v1alpha1", "Job", spec, None)
    assert pod["spec"]["schedulerName"] == scheduler
