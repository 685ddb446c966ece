"""The pods that workloads would make, as they are judged in place of pods: of the right workload, under the right account, as written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from policies.audit.assessment import Assessment
from policies.audit.ledger import Ledger
from policies.audit.prices import prices
from policies.audit.stored_pod import Controller, StoredPod, widest
from policies.audit.templates import MOST, STAND_IN, template_pods
from policies.audit.workload_report import OPEN_REPORTS
from policies.policy import Default, DeviceLimit, Policy, PolicySet, Require
from policies.state.cluster_facts import ClusterFacts
from tests.support.generators.random_worlds import catalog
from tests.support.snapshots import build

WIDE = widest(catalog())
POLICIES = (
    Policy(name="grace", mode="Audit", default=Default(grace=600)),
    Policy(name="tolerate", mode="Enforce", default=Default(accelerator_taints=True)),
)
SNAPSHOT = build(PolicySet(policies=POLICIES), catalog(), cluster=ClusterFacts())


def workload(kind: str, *, gpus: int = 1, **changes: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "c:1", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers, **changes.pop("pod", {})}}
    spec = {"jobTemplate": {"spec": {"template": template}}} if kind == "CronJob" else {"template": template}
    metadata = {"name": "w", "namespace": "n", "uid": "u", "creationTimestamp": "2026-11-23T08:00:00Z", **changes.pop("metadata", {})}
    return {"metadata": metadata, "spec": spec, **changes}


def made(kind: str, **changes: Any) -> tuple[StoredPod, ...]:
    version = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    return template_pods(workload(kind, **changes), version, kind, catalog(), WIDE)


@pytest.mark.parametrize(
    ("kind", "owner", "user"),
    [
        ("Deployment", ("ReplicaSet", STAND_IN + "u"), "replicaset-controller"),
        ("StatefulSet", ("StatefulSet", "u"), "statefulset-controller"),
        ("DaemonSet", ("DaemonSet", "u"), "daemon-set-controller"),
        ("Job", ("Job", "u"), "job-controller"),
        ("CronJob", ("Job", STAND_IN + "u"), "job-controller"),
    ],
)
def test_a_pod_is_made_as_its_controller_makes_it(kind: str, owner: tuple[str, str], user: str) -> None:
    """Its owner is what would own it, and the account the controller's."""
    (pod,) = made(kind)
    assert pod.owner is not None
    assert (pod.owner.kind, pod.owner.uid) == owner
    assert pod.request().user == f"system:serviceaccount:kube-system:{user}"
    assert (pod.template, pod.node, pod.finished, pod.namespace, pod.created) == (True, "", False, "n", "2026-11-23T08:00:00Z")


def test_what_makes_no_pods_of_its_own_has_none() -> None:
    """A Job that has finished, a workload that another one owns, one of another kind, one that can't be read."""
    owner = {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob", "name": "x", "uid": "x", "controller": True}]}
    assert made("Job", status={"conditions": [{"type": "Complete", "status": "True"}]}) == ()
    assert made("Job", status={"conditions": [{"type": "Suspended", "status": "True"}]}) != ()
    assert made("Job", metadata=owner) == ()
    assert template_pods({"metadata": {"name": "w"}, "spec": {}}, "x.example/v1", "Thing", catalog(), WIDE) == ()
    assert template_pods({"metadata": {"name": "w"}, "spec": {"template": []}}, "apps/v1", "Deployment", catalog(), WIDE) == ()
    assert MOST >= 1


def test_a_node_in_a_template_is_the_authors() -> None:
    """No scheduler has seen it."""
    (pod,) = made("Deployment", pod={"nodeName": "gpu-1"})
    assert pod.request().pod["spec"]["nodeName"] == "gpu-1"


def test_templates_count_while_there_are_no_pods() -> None:
    """In the report as what they are, and in no count of pods; what pods lack, which they will be given, is not missed."""
    ledger, (template,) = Ledger(), made("CronJob")
    assessment = Assessment(SNAPSHOT, prices(catalog()), {STAND_IN + "u": Controller("batch/v1", "CronJob", "w", "u")})
    audited = assessment.of(template)
    assert audited is not None
    ledger.put(audited)
    (key,) = ledger.workloads()
    assert (key.kind, key.name, key.uid) == ("CronJob", "w", "u")
    report = ledger.report(key, OPEN_REPORTS)
    assert report is not None
    (result,) = report["results"]
    assert (result["properties"]["finding"], result["properties"]["pods"], result["properties"]["templates"]) == ("would-change", "0", "1")
    assert ledger.totals() == {}
    ledger.put(audited._replace(stored=replace(template, template=False, name="w-x")))
    report = ledger.report(key, OPEN_REPORTS)
    assert report is not None
    assert (report["results"][0]["properties"]["pods"], "templates" in report["results"][0]["properties"]) == ("1", False)
    assert ledger.totals()["ClusterGPUPolicy/grace"].pods == 1


def test_a_template_that_is_refused_today_is_found() -> None:
    """By a policy in Enforce: its workload has no pods because of that, and nobody reads the Events of a ReplicaSet."""
    refusing = Policy(name="few", mode="Enforce", require=Require(gpus_per_pod=DeviceLimit(max=1)))
    snapshot = build(PolicySet(policies=(refusing,)), catalog(), cluster=ClusterFacts())
    (template,) = made("Job", gpus=2)
    found = Assessment(snapshot, prices(catalog()), {}).of(template)
    assert found is not None
    assert [outcome.finding for outcome in found.outcomes] == ["no-longer-fits"]
