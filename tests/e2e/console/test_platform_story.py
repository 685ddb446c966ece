"""A platform engineer: a policy in Audit, what it would do, its diff, Enforce by kubectl, and how the page then counts it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.console.desk import Desk

TEAM = "vision"
POLICY = "gpu-taints"
ID = f"ClusterGPUPolicy/{POLICY}"
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def policy() -> dict[str, Any]:
    """In Audit, as a policy that says nothing of its mode is."""
    match = {"namespaceSelector": {"matchLabels": {"team": TEAM}}}
    spec = {"match": match, "default": {"acceleratorTaints": "Tolerate"}}
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": POLICY}, "spec": spec}


def pod(name: str) -> dict[str, Any]:
    """Of somebody who does not know that GPU nodes are tainted."""
    container = {"name": "trainer", "image": "registry.example/trainer:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    metadata = {"name": name, "namespace": TEAM}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"restartPolicy": "Never", "containers": [container]}}


@pytest.fixture(autouse=True)
def _gone_afterwards(desk: Desk) -> Iterator[None]:
    """Policies of a whole cluster would act in other tests."""
    yield
    desk.cluster.api.delete(policy())


def test_a_policy_goes_from_audit_to_enforce(desk: Desk) -> None:
    """Clicked through: the table counts the pod that waits, a cell opens the diff, and after `kubectl patch` the page says Enforce; a new
    pod has what the diff showed, and runs."""
    browser, watched = desk.browser, desk.watched
    desk.apply(policy())
    desk.apply(pod("before"))
    desk.once(lambda: waits(desk, "before"), "a pod without a toleration to wait")

    row = desk.reload_until("Impact", lambda: counted(desk, "1 change"), "the table to count the pod")
    assert row.find(".mode").text == "Audit"
    assert watched.wrong() == []
    row.link("1 change").click()
    assert desk.says(f"{ID} in {TEAM}")
    assert desk.says("1 would have been changed and 0 denied")
    added = [one.text for one in browser.find_all(".diff .added")]
    assert added == [
        "+++ Pod/before (with this policy)",
        "+  - effect: NoSchedule",
        "+    key: nvidia.com/gpu",
        "+    operator: Exists",
    ]

    patch = json.dumps({"spec": {"mode": "Enforce"}})
    done = desk.kubectl("patch", "clustergpupolicy", POLICY, "--type=merge", "-p", patch)
    assert done.returncode == 0, done.stderr
    desk.once(lambda: enforced(desk), "a new pod to get the toleration")
    desk.apply(pod("after"))
    desk.once(lambda: desk.pod("after").get("status", {}).get("phase") == "Running", "the new pod to run")
    assert TOLERATION in desk.pod("after")["spec"]["tolerations"]
    assert waits(desk, "before"), "what exists is not touched"

    row = desk.reload_until("Impact", lambda: counted(desk, "1 change", pods="2"), "the table to count both pods")
    assert row.find(".mode").text == "Enforce"
    row.link("1 change").click()
    assert desk.says("In force. Of 2 matching pods, 1 ")
    assert watched.wrong() == []


def waits(desk: Desk, name: str) -> bool:
    """kube-scheduler has said that no node will do."""
    conditions = desk.pod(name).get("status", {}).get("conditions", ())
    return any(one.get("reason") == "Unschedulable" for one in conditions)


def enforced(desk: Desk) -> bool:
    """The server follows policies: what it would make of a pod, by a dry run."""
    reply = desk.cluster.api.try_create(pod("dry"), TEAM, dry_run=True)
    return TOLERATION in reply.body["spec"].get("tolerations", ())


def counted(desk: Desk, words: str, pods: str = "1") -> Any:
    """The row of the policy, once a cell of it has these words and its number of pods is this."""
    row = desk.row(ID)
    return row if row is not None and words in row.text and row.find("td.n").text == pods else None
