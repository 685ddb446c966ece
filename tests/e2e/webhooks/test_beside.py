"""The native policies of docs/guardrails.md hold what Berth does not: deletion grace, budgets, pods that name their node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.workloads import node_of, pod
from tests.testcluster.controlplane.api import Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.fixtures import NewNamespace

DOCS = Path(__file__).parents[3] / "docs"
MESSAGE = "the grace period of a deletion must be at most an hour"
"""what the policy says; kubectl puts the pod's name before it"""


@pytest.fixture
def namespace(cluster: Cluster, new_namespace: NewNamespace) -> Iterator[str]:
    """Of a team, under the policies of the page."""
    values = list(yaml.safe_load_all((DOCS / "examples" / "guardrails" / "beside.yaml").read_text()))
    for value in values:
        reply = cluster.api.apply(value)
        assert reply.ok, reply.message
    yield new_namespace({"team": "any"})
    for value in values:
        cluster.api.delete(value)


def deleted(cluster: Cluster, value: Raw, grace: int) -> Reply:
    """Only tried."""
    return cluster.api.call("DELETE", cluster.api.path_of(value), gracePeriodSeconds=str(grace), dryRun="All")


def budget(**spec: object) -> Raw:
    wanted = {"selector": {"matchLabels": {"app": "x"}}, "unhealthyPodEvictionPolicy": "AlwaysAllow", **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": wanted}


def test_a_pod_that_runs_is_not_kept_by_its_deletion(cluster: Cluster, namespace: str) -> None:
    """A day of grace is denied with the sentence on the page; an hour, none at all and the pod's own are not."""
    stored = {"apiVersion": "v1", "kind": "Pod", **cluster.api.create(pod({}), namespace)}
    node_of(cluster, stored)
    denied = cluster.wait_for(lambda: reply if not (reply := deleted(cluster, stored, 86400)).ok else None, "the policy to be in force")
    assert MESSAGE in denied.message
    assert denied.message[denied.message.index("ValidatingAdmissionPolicy") :] in (DOCS / "guardrails.md").read_text()
    assert [deleted(cluster, stored, grace).status for grace in (3600, 0)] == [200, 200]
    assert cluster.api.call("DELETE", cluster.api.path_of(stored), dryRun="All").ok


def test_a_budget_lets_pods_go(cluster: Cluster, namespace: str) -> None:
    """None that keeps all, in whatever words; one that lets a pod go is stored."""
    keeping = [budget(maxUnavailable=0), budget(maxUnavailable="0%"), budget(minAvailable="100%"), budget(minAvailable=1), budget()]
    keeping.append(budget(maxUnavailable=1, unhealthyPodEvictionPolicy="IfHealthyBudget"))
    cluster.wait_for(lambda: not cluster.api.try_create(keeping[0], namespace, dry_run=True).ok, "the policy to be in force")
    assert [value["spec"] for value in keeping if cluster.api.try_create(value, namespace, dry_run=True).ok] == []
    assert [cluster.api.try_create(budget(maxUnavailable=most), namespace, dry_run=True).status for most in (1, "10%")] == [201, 201]


def test_a_pod_names_no_node(cluster: Cluster, namespace: str) -> None:
    """By spec.nodeName; what kube-scheduler places runs as ever."""
    named = pod({}, nodeName="cpu")
    cluster.wait_for(lambda: not cluster.api.try_create(named, namespace, dry_run=True).ok, "the policy to be in force")
    assert node_of(cluster, cluster.api.create(pod({}), namespace))
