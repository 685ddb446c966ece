"""An API server that stands still, is slow, turns Berth away or takes its rights away: what was known acts, that is said, and nothing is
lost."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import yaml

from tests.e2e.faults.load import Load
from tests.e2e.faults.world import WATCH, World
from tests.support.counts import count
from tests.testcluster.addons.installed import ACCOUNT, DEPLOY, NAMESPACE, token, write_kubeconfig
from tests.testcluster.controlplane import restarting
from tests.testcluster.controlplane.api import Api, Raw

TIMES = count(1, 10)
SLOW = 0.2
"""seconds by which each piece of what the API server says is late"""
FLOWS = "flowcontrol.apiserver.k8s.io/v1"
NOBODY: Raw = {"nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}
"""a priority level that lets nothing through while a call is under way: every other gets 429 and Retry-After"""
USER = "waiting"
"""whose calls are under way"""


def test_an_api_server_that_stands_still(world: World, load: Load) -> None:
    """SIGSTOP, for longer than a watch lasts: it is noticed though every connection stays open, and over when it goes on."""
    for _ in range(TIMES):
        world.write()
        with restarting.paused(world.cluster, "kube-apiserver"):
            begun = time.monotonic()
            world.says("does not answer in time", "the last known objects are used")
            noticed = time.monotonic() - begun
        world.write()
        print(f"noticed after {noticed:.1f} s of watches of {WATCH} s, agreed after {world.settled(load):.1f} s")


def test_an_api_server_that_is_slow(world: World, load: Load) -> None:
    """Everything it says comes later by a fifth of a second, and so do policies; nothing fails by that.

    A machine that stands still for a second breaks a watch too, and so may the end of the fault before this one; neither does so in
    each of five rounds.
    """
    world.proxy.delay(SLOW)
    try:
        assert any(_undisturbed(world, load) for _ in range(5)), world.known()
    finally:
        world.proxy.delay(0)


def _undisturbed(world: World, load: Load) -> bool:
    """Whether every watch goes on while policies change, until each of them has been renewed."""
    before = {kind: one["errors"] for kind, one in world.known().items()}
    for _ in range(3 * TIMES):
        world.write()
        world.settled(load)
    time.sleep(WATCH + 2)
    return {kind: one["errors"] for kind, one in world.known().items()} == before


def test_an_api_server_that_turns_berth_away(world: World, load: Load) -> None:
    """429 to every call of its account, by a priority level of no seats: the last policies act, /readyz says why, and it heals."""
    with _turned_away(world):
        line = world.says("ClusterGPUPolicy:", "429", "the last known objects are used")
        world.write()
        time.sleep(2)
    print(line[:200])
    world.settled(load)


@contextmanager
def _turned_away(world: World) -> Iterator[None]:
    """A priority level without seats lets one call through at a time; so one is always under way: it waits for a webhook that never
    answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        values = list(_level(f"https://127.0.0.1:{silent.getsockname()[1]}"))
        for value in values:
            reply = world.api.apply(value)
            assert reply.ok, reply.message
        waiting = Waiting(world.api.acting_as(USER, "waiting"))
        waiting.start()
        try:
            yield
        finally:
            waiting.ended.set()
            for value in values:
                world.api.delete(value)
            waiting.join()


class Waiting(threading.Thread):
    """One call after the other, each of which waits."""

    def __init__(self, api: Api) -> None:
        super().__init__(daemon=True)
        self._api = api
        self.ended = threading.Event()

    def run(self) -> None:
        """Until ``ended``."""
        value: Raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": USER}}
        while not self.ended.is_set():
            self._api.call("POST", "/api/v1/namespaces/default/configmaps", value, dryRun="All")
        self._api.close()


def _level(url: str) -> Iterator[Raw]:
    everything: Raw = {
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "subjects": [
            {"kind": "ServiceAccount", "serviceAccount": {"namespace": NAMESPACE, "name": ACCOUNT}},
            {"kind": "User", "user": {"name": USER}},
        ],
    }
    webhook: Raw = {
        "name": "silent.tests.berth.dev",
        "clientConfig": {"url": url},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
    }
    role: Raw = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}]
    yield {
        **_named("ClusterRoleBinding", "rbac.authorization.k8s.io/v1"),
        "roleRef": role,
        "subjects": subjects,
    }
    yield {**_named("ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1"), "webhooks": [webhook]}
    yield {**_named("PriorityLevelConfiguration", FLOWS), "spec": {"type": "Limited", "limited": NOBODY}}
    schema: Raw = {"priorityLevelConfiguration": {"name": USER}, "matchingPrecedence": 50, "rules": [everything]}
    yield {**_named("FlowSchema", FLOWS), "spec": schema}


def _named(kind: str, api_version: str) -> Raw:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": USER}}


def test_rights_that_are_taken_away(world: World, load: Load) -> None:
    """The binding is deleted: each kind is named with what to type; applied again, it follows again."""
    binding = _installed("ClusterRoleBinding")
    world.api.delete(binding)
    world.says(
        "Berth may not read clustergpupolicies.berth.dev",
        "Berth may not read namespaces",
        "type: kubectl apply -f deploy/rbac.yaml",
        "the last known objects are used",
    )
    world.write()
    assert world.api.apply(binding).ok
    print(f"agreed {world.settled(load):.1f} s after the rights were back")


def test_an_account_that_is_made_anew(world: World, load: Load) -> None:
    """Its tokens are denied from then on (401), and said to be; with a new one in the kubeconfig it follows again."""
    account = _installed("ServiceAccount")
    world.api.delete(account)
    assert world.api.apply(account).ok
    world.says("does not accept Berth's credentials: 401", "the last known objects are used")
    world.write()
    write_kubeconfig(world.kubeconfig, world.cluster, token(world.cluster), world.proxy.port)
    print(f"agreed {world.settled(load):.1f} s after there was a new token")


def _installed(kind: str) -> Raw:
    values: list[Raw] = list(yaml.safe_load_all((DEPLOY / "rbac.yaml").read_text()))
    [value] = [one for one in values if one["kind"] == kind and one["metadata"]["name"] == "berth"]
    return value
