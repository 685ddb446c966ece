"""The extract of a pod holds all that a decision reads, and leaves out what differs from pod to pod."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from policies import engine
from policies.engine import evaluate
from policies.patch.record import APPLIED
from policies.pods.projection import extract, reads
from tests.support.cases import golden
from tests.support.generators.strategies import Case, audited, examples

READS = reads((), golden.catalog_with())
POD: dict[str, Any] = {
    "metadata": {
        "name": "llama-0",
        "generateName": "llama-",
        "uid": "u",
        "labels": {"app": "llama", "batch.kubernetes.io/job-completion-index": "0", "kueue.x-k8s.io/queue-name": "q"},
        "annotations": {"berth.dev/mig-slice": "10gb", "note": "x", "gpu-fraction": "0.5", "nvidia.com/use-gputype": "A100"},
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "llama", "uid": "v", "controller": True}],
        "managedFields": [{"manager": "kubectl"}],
    },
    "spec": {
        "affinity": {"podAffinity": {}, "nodeAffinity": {"any": 1}},
        "containers": [
            {
                "name": "main",
                "image": "i",
                "env": [{"name": "TOKEN", "value": "secret"}],
                "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}, "claims": []},
                "livenessProbe": {"httpGet": {"port": 80}},
                "startupProbe": {},
                "readinessProbe": {"httpGet": {"port": 80}},
            }
        ],
        "nodeSelector": {"a": "b"},
        "volumes": [{"name": "v"}],
    },
}


def test_what_is_read_stays_where_it_is() -> None:
    """And what is not read is gone: names, images, environments, ordinary resources."""
    assert extract(POD, READS) == {
        "metadata": {
            "labels": {"kueue.x-k8s.io/queue-name": "q"},
            "annotations": {"berth.dev/mig-slice": "10gb", "gpu-fraction": "0.5", "nvidia.com/use-gputype": "A100"},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "controller": True}],
        },
        "spec": {
            "nodeSelector": {"a": "b"},
            "containers": [
                {
                    "name": "main",
                    "resources": {"limits": {"nvidia.com/gpu": "1"}},
                    "livenessProbe": {"terminationGracePeriodSeconds": None},
                    "startupProbe": {},
                }
            ],
            "affinity": {"nodeAffinity": {"any": 1}},
        },
    }


def test_the_pod_is_not_changed() -> None:
    """The extract shares what it takes whole."""
    before = copy.deepcopy(POD)
    extract(POD, READS)
    assert before == POD


@pytest.mark.parametrize("wrong", [7, "x", [], [7], {"a": 7}, True, None])
@pytest.mark.parametrize(
    "path",
    [
        ("metadata",),
        ("metadata", "labels"),
        ("metadata", "annotations"),
        ("metadata", "ownerReferences"),
        ("spec",),
        ("spec", "containers"),
        ("spec", "containers", 0),
        ("spec", "containers", 0, "resources"),
        ("spec", "containers", 0, "resources", "limits"),
        ("spec", "containers", 0, "livenessProbe"),
        ("spec", "affinity"),
    ],
    ids=str,
)
def test_nothing_of_a_wrong_type_breaks_it(path: tuple[str | int, ...], wrong: object) -> None:
    """It is taken as it is, or as little of it as is read: the view of the pod says what is wrong."""
    pod: Any = copy.deepcopy(POD)
    here = pod
    for part in path[:-1]:
        here = here[part]
    here[path[-1]] = wrong
    assert isinstance(extract(pod, READS), dict)


@examples(60, 20_000)
@given(audited())
def test_a_decision_reads_nothing_else(case: Case) -> None:
    """The whole pod gets the same verdict, in both phases; but for a record of edits that names places which are not read."""
    facts = case.world.snapshot.facts_for(case.request.namespace)
    if APPLIED in (case.request.pod["metadata"].get("annotations") or {}):
        return
    verdict = evaluate(case.request, facts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "extract", lambda pod, read: pod)
        assert evaluate(case.request, facts) == verdict
