"""Pods of workloads and pods that are in a queue, judged from their manifests."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.admission.manifest_results import ManifestResult, admit_manifest
from analysis.admission.manifests import read_manifest
from analysis.admission_preview import Admission
from policies.document import Document
from tests.support import snapshots
from tests.support.cases import golden

CATALOG = golden.catalog_with()
QUEUE = "kueue.x-k8s.io/queue-name"
POD: dict[str, Any] = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
GROUPS = {"leaderWorkerTemplate": {"leaderTemplate": POD, "workerTemplate": POD}}
GATED = [
    ("apps/v1", "Deployment", {"template": POD}),
    ("apps/v1", "StatefulSet", {"template": POD}),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", GROUPS),
]


def _judged(value: dict[str, Any], spec: dict[str, Any], queues: tuple[str, ...] = ("kueue",)) -> ManifestResult:
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "q"}, "spec": {"mode": "Enforce", **spec}}
    world = snapshots.build(golden.policies_of([policy], CATALOG), CATALOG, platforms=["karpenter-aws"], queues=queues)
    return admit_manifest(read_manifest(Document(file="f", value=value), CATALOG, "default"), Admission(world))


def _object(api_version: str, kind: str, spec: dict[str, Any], **labels: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "w", "labels": labels}, "spec": spec}


@pytest.mark.parametrize(("api_version", "kind", "spec"), GATED)
@pytest.mark.parametrize(("queue", "denied"), [("a", False), ("b", True), ("", True)])
def test_what_kueue_gates_is_in_the_queue_of_its_label(
    api_version: str, kind: str, spec: dict[str, Any], queue: str, *, denied: bool
) -> None:
    """Its pods are held by Kueue's gate, so the right label is enough, and no other."""
    labels = {QUEUE: queue} if queue else {}
    assert _judged(_object(api_version, kind, spec, **labels), {"require": {"queue": {"kueue": ["a"]}}}).denied is denied


@pytest.mark.parametrize(("api_version", "kind", "spec"), GATED)
def test_a_default_queue_is_enough_for_what_is_required(api_version: str, kind: str, spec: dict[str, Any]) -> None:
    """The label that the default gives counts for the pods too."""
    outcome = _judged(_object(api_version, kind, spec), {"require": {"queue": {"kueue": ["a"]}}, "default": {"queue": {"kueue": "a"}}})
    assert not outcome.denied
    assert outcome.after["metadata"]["labels"][QUEUE] == "a"


@pytest.mark.parametrize(("queues", "denied"), [(("kueue",), False), ((), True)])
def test_a_pod_is_in_its_queue_where_kueue_manages_pods(queues: tuple[str, ...], *, denied: bool) -> None:
    """Elsewhere nothing holds it back."""
    pod = _object("v1", "Pod", POD["spec"], **{QUEUE: "a"})
    assert _judged(pod, {"require": {"queue": {"kueue": ["a"]}}}, queues).denied is denied


@pytest.mark.parametrize(("queue", "denied"), [({"queue": "gpu"}, False), ({"queue": "b"}, True), ({}, True)])
def test_a_volcano_job_is_in_the_queue_that_it_names(queue: dict[str, str], *, denied: bool) -> None:
    """Its controller writes that on its pods."""
    job = _object("batch.volcano.sh/v1alpha1", "Job", {**queue, "tasks": [{"template": POD}]})
    assert _judged(job, {"require": {"queue": {"volcano": ["gpu"]}}}).denied is denied
