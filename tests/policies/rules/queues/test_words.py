"""Keys of pods on the workload that makes them, where their readers do not look."""

from __future__ import annotations

from typing import Any

import pytest

from policies.engine import evaluate
from policies.request import Request
from policies.rules.queues.words import of_workload
from policies.state.updater import Options, Updater
from tests.support.cases.golden import catalog_with

CATALOG = catalog_with()
DISRUPT = "karpenter.sh/do-not-disrupt"
TEMPLATE = ("spec", "jobTemplate", "spec", "template")


def cron_job(own: dict[str, Any], of_job: dict[str, Any], of_pod: dict[str, Any]) -> dict[str, Any]:
    template = {"metadata": {"annotations": of_pod}}
    return {"metadata": own, "spec": {"jobTemplate": {"metadata": of_job, "spec": {"template": template}}}}


@pytest.mark.parametrize(
    ("own", "of_job", "of_pod", "told"),
    [
        ({"annotations": {DISRUPT: "true"}}, {}, {}, [("metadata", "annotations", DISRUPT)]),
        ({"labels": {DISRUPT: "true"}}, {}, {}, [("metadata", "labels", DISRUPT)]),
        ({}, {"annotations": {DISRUPT: "true"}}, {}, [("spec", "jobTemplate", "metadata", "annotations", DISRUPT)]),
        ({"annotations": {"karpenter.sh/do-not-evict": "true"}}, {}, {}, [("metadata", "annotations", "karpenter.sh/do-not-evict")]),
        ({"annotations": {DISRUPT: "true"}}, {}, {DISRUPT: "true"}, []),
        ({"annotations": {"karpenter.sh/nodepool": "gpu"}}, {"labels": {"kueue.x-k8s.io/queue-name": "q"}}, {}, []),
    ],
)
def test_a_key_of_pods_belongs_into_the_template(
    own: dict[str, Any], of_job: dict[str, Any], of_pod: dict[str, Any], told: list[tuple[str, ...]]
) -> None:
    """The author is told the path of the template, unless the key is there too."""
    remarks = of_workload(cron_job(own, of_job, of_pod), CATALOG, [TEMPLATE])
    assert [remark.path for remark in remarks] == told
    assert all(remark.text.endswith((f'spec.jobTemplate.spec.template.metadata.annotations["{DISRUPT}"]', "?")) for remark in remarks)


@pytest.mark.parametrize(
    ("scheduler", "labels", "told"),
    [
        ("kai-scheduler", {"runai/queue": "test"}, True),
        ("kai-scheduler", {"runai/queue": "test", "kai.scheduler/queue": "test"}, False),
        ("runai-scheduler", {"runai/queue": "test"}, False),
        ("", {"runai/queue": "test"}, False),
    ],
)
def test_a_key_of_earlier_versions_is_told(scheduler: str, labels: dict[str, str], *, told: bool) -> None:
    """KAI's first label of a queue is still Run:ai's, and KAI ignores it now; with the right one beside it nothing is to be said."""
    spec = {"schedulerName": scheduler, "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": labels}, "spec": spec}
    rules = {"mode": "Enforce", "default": {"acceleratorTaints": "Tolerate"}}
    policy = {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": "p"}, "spec": rules}
    snapshot = Updater(CATALOG, Options(platforms=("gfd",))).apply({("ClusterGPUPolicy", "", "p"): policy}).snapshot
    remarks = evaluate(Request(namespace="ml", user="u", pod=pod), snapshot.facts_for("ml")).remarks
    assert any("runai/queue" in str(remark) for remark in remarks) is told
