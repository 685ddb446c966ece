"""What becomes of GPU pods after their creation does not hang on Berth: dead, or alive with policies that they no longer meet, 0 stuck.

Pods are judged when they are created. Of an update only new tolerations are: they would let a pod go, or stay, where it must not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import count
from pathlib import Path

import pytest

from tests.e2e import one_policy
from tests.e2e.webhook_metrics import DENIED, counted
from tests.e2e.webhooks.pod_changes import CHANGES, Change, Pods, tolerated
from tests.testcluster.addons.berth import SCOPE, Berth, manifests, registered
from tests.testcluster.controlplane.api import Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import free_port
from tests.testcluster.fixtures import NewNamespace

SHARED = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-SHARED"}
FORBIDDEN = {"key": "team", "operator": "Equal", "value": "other", "effect": "NoSchedule"}
SPEC: Raw = {
    "nodeSelector": SHARED,
    "tolerations": [FORBIDDEN],
    "terminationGracePeriodSeconds": 60,
    "containers": [{"name": "main", "image": "i:1", "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "1", "memory": "1Gi"}}}],
}
"""On the node whose GPUs are shared: there are enough for all pods here at once"""
TIGHT: Raw = {
    "sharing": ["Exclusive"],
    "families": {"in": ["hopper"]},
    "gracePeriod": {"max": "50s"},
    "gpusPerPod": {"oneOf": [2, 4]},
    "tolerations": {"forbid": [{"key": "team", "value": "other"}]},
}
"""None of which SPEC meets"""
NEW: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}, "spec": SPEC}
ADDED: list[Raw] = [{"key": "team", "operator": "Exists"}, {"operator": "Exists"}, {**FORBIDDEN, "effect": "NoExecute"}]
"""Each tolerates more of what is forbidden than FORBIDDEN does"""
_number = count()


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A file, followed by Berth, that asks for nothing yet."""
    one_policy.write(tmp_path / "policy.yaml", {})
    return tmp_path / "policy.yaml"


@pytest.fixture
def berth(cluster: Cluster, policy: Path) -> Iterator[Berth]:
    listen = ("--listen", f"127.0.0.1:{free_port()}")
    with registered(cluster, f"updates-{next(_number)}", (policy,), "--platforms", "gfd", *listen) as started:
        yield started


@pytest.fixture
def pods(cluster: Cluster, berth: Berth, new_namespace: NewNamespace) -> Pods:
    """In a namespace that Berth judges."""
    return Pods(cluster=cluster, namespace=new_namespace({SCOPE: berth.name}), spec=SPEC)


def kill(cluster: Cluster, berth: Berth) -> None:
    """And no longer expected to run."""
    berth.kill()
    cluster.processes.end(berth.process)


def failed(pods: Pods, changes: Sequence[Change]) -> dict[str, str]:
    """Begins them all: name -> the message of the first call that was denied."""
    replies = {change.name: change.begin(pods, change) for change in changes}
    return {name: next(r.message for r in of if not r.ok) for name, of in replies.items() if not all(r.ok for r in of)}


def wait_until_done(pods: Pods, changes: Sequence[Change]) -> None:
    """Raises ClusterFailed, which names what is stuck."""
    for change in changes:
        pods.cluster.wait_for(lambda change=change: change.done(pods, change), f"{change.name} to be so")  # type: ignore[misc]


def test_with_berth_dead_running_gpu_pods_finish_go_and_change_as_ever(cluster: Cluster, berth: Berth, pods: Pods) -> None:
    """0 failed, 0 stuck, though a new GPU pod is denied."""
    pods.create(CHANGES)
    kill(cluster, berth)
    assert cluster.api.try_create(NEW, pods.namespace).status == 500
    assert failed(pods, CHANGES) == {}
    wait_until_done(pods, CHANGES)


def test_called_for_every_update_a_dead_berth_would_hold_finished_jobs_for_ever(cluster: Cluster, berth: Berth, pods: Pods) -> None:
    """The trap that the registration keeps clear of: with entries for UPDATE at Fail, what is done here is denied until they are gone."""
    by_hand, finished = by_name("deleted-and-let-go", "ungated", "labelled"), by_name("finished")
    pods.create((*by_hand, *finished))
    ours = manifests(berth, scope=berth.name)
    apply(cluster, [with_updates(value) for value in ours])
    kill(cluster, berth)
    cluster.wait_for(lambda: not relabelled(pods).ok, "entries for updates to be in force")
    before = rejected_updates(cluster)
    assert failed(pods, by_hand).keys() == {change.name for change in by_hand}
    assert end_of_run(pods, finished[0]).ok, "the kubelet's word is status, which is not pods"
    cluster.wait_for(lambda: rejected_updates(cluster) > before + len(by_hand), "the Job controller to be denied")
    assert not finished[0].done(pods, finished[0])
    apply(cluster, ours)
    cluster.wait_for(lambda: relabelled(pods).ok, "the registration to be as it was")
    assert failed(pods, by_hand) == {}
    wait_until_done(pods, (*by_hand, *finished))


def by_name(*names: str) -> list[Change]:
    return [change for change in CHANGES if change.name in names]


def with_updates(configuration: Raw) -> Raw:
    """The entry that judges created pods asks for every update of them too."""
    changed = deepcopy(configuration)
    for webhook in changed["webhooks"]:
        if webhook["name"] == "validate.pods.berth.dev":
            webhook["rules"][0]["operations"] = ["CREATE", "UPDATE"]
    return changed


def apply(cluster: Cluster, values: Sequence[Raw]) -> None:
    """Each is stored."""
    assert [reply.message for value in values if not (reply := cluster.api.apply(value)).ok] == []


def relabelled(pods: Pods) -> Reply:
    """A change that is only tried."""
    return pods.call("PATCH", "labelled", {"metadata": {"labels": {"tried": "so"}}}, dryRun="All")


def rejected_updates(cluster: Cluster) -> float:
    """By the entry that does not answer."""
    return counted(cluster).get((DENIED, "validate.pods.berth.dev", "UPDATE"), 0.0)


def end_of_run(pods: Pods, change: Change) -> Reply:
    """As the kubelet says it."""
    return pods.call("PATCH", f"{pods.of(change)[0]['metadata']['name']}/status", {"status": {"phase": "Succeeded"}})


def test_after_a_policy_is_tightened_pods_that_no_longer_meet_it_go_on_as_ever(
    cluster: Cluster, berth: Berth, pods: Pods, policy: Path
) -> None:
    """0 failed, 0 stuck, with Berth alive; a new pod like them is denied, and has been admitted before."""
    pods.create(CHANGES)
    one_policy.write(policy, TIGHT)
    message = cluster.wait_for(lambda: denial(cluster, pods), "the new policy to act")
    assert set(re.findall("BERTH-[0-9]+", message)) == {"BERTH-112", "BERTH-121", "BERTH-131", "BERTH-141"}
    assert failed(pods, CHANGES) == {}
    wait_until_done(pods, CHANGES)


def denial(cluster: Cluster, pods: Pods) -> str:
    """Of a new pod; "" where it is admitted."""
    reply = cluster.api.try_create({**NEW, "spec": pods.spec}, pods.namespace, dry_run=True)
    return reply.message if reply.status == 403 else ""


def test_an_update_may_not_add_a_toleration_that_is_forbidden(cluster: Cluster, berth: Berth, pods: Pods, policy: Path) -> None:
    """Who leaves tolerations alone, or adds an allowed one, may go on, with a forbidden one that was there before too."""
    changes = by_name("labelled", "tolerating-more")
    pods.create(changes)
    one_policy.write(policy, {"tolerations": TIGHT["tolerations"]})
    cluster.wait_for(lambda: denial(cluster, pods), "the new policy to act")
    for change in changes:
        for added in ADDED:
            reply = tolerated(change.name, added).begin(pods, change)[0]
            assert (reply.status, "BERTH-131: spec.tolerations[4] tolerates" in reply.message) == (403, True), reply.message
    assert not any(added in pod["spec"]["tolerations"] for change in changes for pod in pods.of(change) for added in ADDED)
    assert failed(pods, changes) == {}
    wait_until_done(pods, changes)
