"""Both phases, and the manifest that comes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.admission.manifest_results import ManifestResult, admit_manifest
from analysis.admission.manifests import read_manifest
from analysis.admission_preview import Admission
from kube.tree import apply_patch, remove_at, value_at
from policies.document import Document
from policies.state.snapshot import Snapshot
from sources.sources import Sources, load_sources

ROOT = Path(__file__).parents[3]
ONLY_LIMIT = {"limits": {"nvidia.com/gpu": 1, "cpu": "4"}}
BOTH = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1", "cpu": 2}}
OTHER_REQUEST = {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": 2}}


@pytest.fixture(scope="module", params=["karpenter-aws", "gfd"])
def snapshot(request: pytest.FixtureRequest) -> Snapshot:
    return load_sources(Sources(policies=(str(ROOT / "policies" / "library"),), platforms=(request.param,))).snapshot


def _template(resources: dict[str, Any], **spec: Any) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/", "port": 80}}
    return {"template": {"spec": {**spec, "containers": [{"name": "c", "resources": resources, "livenessProbe": probe}]}}}


def _workloads(resources: dict[str, Any]) -> list[dict[str, Any]]:
    plain, waiting = _template(resources), _template(resources, terminationGracePeriodSeconds=60, tolerations=None)
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "w"}, "spec": plain["template"]["spec"]},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "w"}, "spec": waiting},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, "spec": plain},
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "w"},
            "spec": {"pytorchReplicaSpecs": {"A": plain, "B": waiting}},
        },
    ]


def _judged(value: dict[str, Any], snapshot: Snapshot) -> ManifestResult:
    return admit_manifest(read_manifest(Document(file="f", value=value), snapshot.catalog, "default"), Admission(snapshot))


def _without_applied(pod: Any) -> Any:
    pod = remove_at(pod, ("metadata", "annotations", "berth.dev/applied"))
    return pod if value_at(pod, ("metadata", "annotations")) else remove_at(pod, ("metadata", "annotations"))


@pytest.mark.parametrize("resources", [ONLY_LIMIT, BOTH, OTHER_REQUEST], ids=["only a limit", "both", "another request"])
def test_what_is_shown_makes_the_pod_that_is_admitted(snapshot: Snapshot, resources: dict[str, Any]) -> None:
    """The pods of the manifest as shown are the pods of the manifest as written, patched; and those need no further edit."""
    for value in _workloads(resources):
        before = json.dumps(value)
        outcome = _judged(value, snapshot)
        again = _judged(outcome.after, snapshot)
        assert outcome.edits > 0
        for pod, final in zip(outcome.pods, again.pods, strict=True):
            assert _without_applied(apply_patch(pod.subject.review.pod, pod.mutate.patch)) == final.subject.review.pod
        assert again.edits == 0
        assert again.after is outcome.after
        assert json.dumps(value) == before


def test_one_denied_pod_leaves_the_workload_as_it_was(snapshot: Snapshot) -> None:
    """Edits of the other pods are not shown: the workload does not run without the denied one."""
    good, bad = _template(ONLY_LIMIT), _template({"limits": {"nvidia.com/gpu": 2}, "requests": {"nvidia.com/gpu": 1}})
    value = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "w"},
        "spec": {"pytorchReplicaSpecs": {"A": good, "B": bad}},
    }
    outcome = _judged(value, snapshot)
    assert outcome.denied
    assert outcome.edits == 0
    assert outcome.after is value
    assert [bool(pod.violations) for pod in outcome.pods] == [False, True]
