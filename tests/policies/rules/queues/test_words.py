"""Keys of pods on the workload that makes them, where their readers do not look."""

from __future__ import annotations

from typing import Any

import pytest

from policies.rules.queues.words import of_workload
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
