"""policies/library: what the shipped policies do together, all applied at once."""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from catalog import Workload
from documents.files import read_catalog, read_policies
from policies.engine import evaluate
from policies.facts.cluster_facts import ClusterFacts
from policies.request import Request
from policies.state.snapshot import Snapshot
from policies.verdict import Verdict
from tests.support import snapshots

ROOT = Path(__file__).parents[3]
CATALOG = read_catalog()
CONFLICT = "BERTH-202"


@cache
def library(platform: str, slice_name: str = "") -> Snapshot:
    """Return the snapshot of the library; ``slice_name``: the MIG slice that the cluster's only known node offers."""
    policy_set, errors, _ = read_policies([str(ROOT / "policies" / "library")], CATALOG)
    assert errors == []
    namespaces = [{"kind": "Namespace", "metadata": {"name": "dev", "labels": {"environment": "dev"}}}]
    node = {"kind": "Node", "metadata": {"name": "sliced"}, "status": {"allocatable": {slice_name: "4"}}}
    facts = ClusterFacts.from_objects(
        [*namespaces, {"kind": "Namespace", "metadata": {"name": "ml-team"}}, *([node] if slice_name else [])]
    )
    return snapshots.build(policy_set, CATALOG, platforms=(platform,), cluster=facts)


def judged(pod: dict[str, Any], namespace: str = "ml-team", platform: str = "karpenter-aws", slice_name: str = "") -> Verdict:
    request = Request(operation="CREATE", namespace=namespace, user="alice", pod=pod)
    return evaluate(request, library(platform, slice_name).facts_for(namespace))


def pod_of(workload: Workload, gpus: int) -> dict[str, Any]:
    amount = {"nvidia.com/gpu": str(gpus)} if gpus else {"nvidia.com/mig-1g.10gb": "1"}
    owners = [
        {"apiVersion": f"{group}/v1", "kind": kind, "name": "w", "uid": "u", "controller": True} for group, kind in workload.owners[:1]
    ]
    labels = dict(label.partition("=")[::2] for label in workload.labels[:1])
    container = {"name": "c", "image": "x", "resources": {"limits": amount, "requests": amount}}
    return {"metadata": {"name": "p", "labels": labels, "ownerReferences": owners}, "spec": {"containers": [container]}}


def test_policies_do_not_conflict() -> None:
    """Whatever the workload, its size and its namespace: no two policies of the library want different things on one axis."""
    wrong = []
    for workload, gpus, namespace in itertools.product(CATALOG.workloads, range(9), ("ml-team", "dev")):
        verdict = judged(pod_of(workload, gpus), namespace)
        conflicts = [str(remark) for remark in verdict.remarks if remark.code == CONFLICT]
        if conflicts or verdict.violations:
            wrong.append((workload.name, gpus, namespace, conflicts, [str(violation) for violation in verdict.violations]))
    assert wrong == []


def recorded(name: str) -> dict[str, Any]:
    pod: dict[str, Any] = json.loads((ROOT / "tests" / "reviews" / f"{name}.json").read_text(encoding="utf-8"))["request"]["object"]
    return pod


def asked_by(verdict: Verdict) -> dict[str, set[str]]:
    """Policy -> the top of what it had edited: ``tolerations``, ``affinity``."""
    edits = [(policy.partition("/")[2], edit.path[1]) for edit in verdict.edits for policy in edit.policies]
    return {policy: {str(where) for who, where in edits if who == policy} for policy, _ in edits}


def test_training_job() -> None:
    """The recorded eight-GPU Job gets the toleration, training machines off spot, 1800 s of grace and its node for the run."""
    verdict = judged(recorded("pods-create-train-llama"), "default")
    assert asked_by(verdict) == {
        "berth-default": {"tolerations"},
        "several-gpus-are-whole": {"affinity"},
        "training": {"affinity", "terminationGracePeriodSeconds", "annotations"},
    }
    written = json.dumps([edit.value for edit in verdict.edits])
    smaller = ["g3", "g3s", "g4dn", "g5", "g5g", "g6", "g6e", "g6f", "g7", "g7e", "gr6", "gr6f", "p2", "p3", "p3dn", "p4d"]
    assert json.dumps(smaller) in written, "a default leaves what the catalog does not know yet in"
    assert '"on-demand", "reserved"' in written
    assert 1800 in [edit.value for edit in verdict.edits]


def test_server() -> None:
    """The recorded one-GPU server gets an L4 where Karpenter makes the nodes, and a slice where a known node offers one."""
    verdict = judged(recorded("pods-create-vllm-server"))
    assert asked_by(verdict) == {"berth-default": {"tolerations"}, "inference": {"affinity"}}
    assert '["l4"]' in json.dumps([edit.value for edit in verdict.edits])
    unknown = judged(recorded("pods-create-vllm-server"), platform="gfd")
    assert "mig" not in json.dumps([edit.path for edit in unknown.edits])
    assert "NVIDIA-L4" in json.dumps([edit.value for edit in unknown.edits])
    sliced = judged(recorded("pods-create-vllm-server"), platform="gfd", slice_name="nvidia.com/mig-1g.20gb")
    assert "nvidia.com/mig-1g.20gb" in json.dumps([edit.path for edit in sliced.edits])


def test_notebook_only_in_dev() -> None:
    """A notebook goes to the shared T4 nodes in namespaces labelled environment=dev, and is left alone elsewhere."""
    notebook = next(workload for workload in CATALOG.workloads if workload.name == "Notebook")
    assert "notebooks" in asked_by(judged(pod_of(notebook, 1), "dev"))
    assert set(asked_by(judged(pod_of(notebook, 1)))) == {"berth-default"}


@pytest.mark.parametrize(("deadline", "capacity"), [(1800, ["spot"]), (None, ["on-demand", "reserved"]), (7201, ["on-demand", "reserved"])])
def test_batch(deadline: int | None, capacity: list[str]) -> None:
    """A small Job goes to spot if it is known to be short, else to on-demand."""
    job = next(workload for workload in CATALOG.workloads if workload.name == "Job")
    pod = pod_of(job, 1)
    if deadline is not None:
        pod["spec"]["activeDeadlineSeconds"] = deadline
    assert json.dumps(capacity) in json.dumps([edit.value for edit in judged(pod).edits])
