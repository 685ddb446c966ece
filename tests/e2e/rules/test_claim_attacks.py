"""Claims by somebody who wants a device that policies do not allow, on a real API server, under the role ``edit``: none is stored that asks
for more, and the real scheduler gives what is stored no other device than one that is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
import yaml

from policies.facts import device_requests
from tests.support.claims.attacks import CONFINED, DENIED, FAMILY, REQUIRE, TYPE
from tests.support.claims.published_devices import API_VERSION, class_of, slice_of
from tests.support.generators.written_claims import claim, exactly
from tests.testcluster.addons import nodes
from tests.testcluster.addons.berth import SCOPE, Berth, registered
from tests.testcluster.addons.nodes import FakeNode
from tests.testcluster.controlplane.api import Api, Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import free_port
from tests.testcluster.fixtures import NewNamespace

DRIVER = "gpu.nvidia.com"
RIGHT = ("h100-0", "h100-1")
PLACER = "placer"
"""Who makes the pods: this Berth knows no claims, by which others' would be judged"""
_number = count()


def device(name: str, product: str, architecture: str, type_: str = "gpu") -> Raw:
    attributes = {"productName": product, "architecture": architecture, "type": type_}
    return {
        "name": name,
        "attributes": {key: {"string": value} for key, value in attributes.items()},
        "capacity": {"memory": {"value": "80Gi"}},
    }


DEVICES = [
    device("t4", "Tesla T4", "Turing"),
    device("slice", "NVIDIA H100 80GB HBM3", "Hopper", "mig"),
    *(device(name, "NVIDIA H100 80GB HBM3", "Hopper") for name in RIGHT),
]
"""What is not allowed stands first: the scheduler takes the first that fits."""


@pytest.fixture(scope="module")
def devices(cluster: Cluster) -> Iterator[None]:
    node = FakeNode(name=f"attacked-{next(_number)}")
    nodes.add(cluster, node)
    known = [class_of(DRIVER), {**class_of(DRIVER), "metadata": {"name": "any.nvidia"}}, slice_of(node.name, DRIVER, DEVICES)]
    for value in known:
        cluster.api.create(value)
    yield
    for value in (*known, node.manifest()):
        cluster.api.delete(value)


@pytest.fixture(scope="module")
def berth(cluster: Cluster, devices: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Berth]:
    folder = tmp_path_factory.mktemp("attacks")
    policy = {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": "guard"}}
    spec = {"mode": "Enforce", "match": {"exclude": {"users": [PLACER]}}, "require": REQUIRE}
    (folder / "policy.yaml").write_text(yaml.safe_dump({**policy, "spec": spec}))
    listen = ("--listen", f"127.0.0.1:{free_port()}")
    with registered(cluster, f"attacks-{next(_number)}", (folder / "policy.yaml",), "--platforms", "gfd", *listen) as started:
        yield started


@pytest.fixture
def namespace(cluster: Cluster, berth: Berth, new_namespace: NewNamespace) -> str:
    name = new_namespace({SCOPE: berth.name})
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "mallory"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}],
    }
    cluster.api.create(binding, name)
    return name


@pytest.fixture
def mallory(cluster: Cluster) -> Api:
    return cluster.api.acting_as("mallory", "system:authenticated")


def stored(api: Api, namespace: str, made: Raw, name: str = "gpus") -> Reply:
    return api.try_create({**made, "metadata": {**made["metadata"], "name": name}}, namespace)


def served(cluster: Cluster, made: Raw) -> bool:
    versions = {one["version"] for one in cluster.api.call("GET", "/apis/resource.k8s.io").body["versions"]}
    return made["apiVersion"].rpartition("/")[2] in versions


def test_what_asks_for_more_is_not_stored(cluster: Cluster, mallory: Api, namespace: str) -> None:
    """By Berth, with its code; or by the API server itself, which has no such form of a claim."""
    tried = {name: (made, code) for name, (made, code) in DENIED.items() if served(cluster, made)}
    cluster.wait_for(lambda: stored(mallory, namespace, claim(exactly()), f"honest-{next(_number)}").ok, "edit to be given")
    replies = {name: stored(mallory, namespace, made) for name, (made, _) in tried.items()}
    assert {name for name, reply in replies.items() if reply.ok} == set()
    theirs = {name for name, (_, code) in tried.items() if code not in replies[name].message}
    print(f"denied by Berth: {len(replies) - len(theirs)}, by the API server: {sorted(theirs)}")
    assert all(replies[name].status in (400, 403, 422) for name in theirs), replies
    assert len(replies) - len(theirs) > 15


def test_what_is_stored_is_given_no_other_device(cluster: Cluster, mallory: Api, namespace: str) -> None:
    """The first device that fits is another one, so it is theirs as soon as a selector of policies is lost."""
    cluster.wait_for(lambda: stored(mallory, namespace, claim(exactly()), f"honest-{next(_number)}").ok, "edit to be given")
    outcomes: dict[str, str] = {}
    for name, made in CONFINED.items():
        if made["kind"] != "ResourceClaim" or not served(cluster, made):
            continue
        gpus = f"claim-{next(_number)}"
        reply = stored(mallory, namespace, made, gpus)
        if not reply.ok:
            assert reply.status in (400, 422) or "BERTH-" in reply.message, (name, reply.message)
            outcomes[name] = "no such form" if reply.status in (400, 422) else f"denied {reply.status}"
            continue
        for one in device_requests.written_requests("ResourceClaim", reply.body):
            assert {FAMILY, TYPE} <= set(device_requests.expressions(one.value)), name
        given = decided(cluster, namespace, gpus)
        assert set(given) <= set(RIGHT), (name, given)
        outcomes[name] = "given" if given else "waits"
    print(outcomes)
    assert [name for name, outcome in outcomes.items() if outcome == "given"] != []
    assert outcomes["an honest one"] == outcomes["a selector of everything"] == "given"


def user_of(name: str) -> Raw:
    containers = [{"name": "c", "image": "train:1", "resources": {"claims": [{"name": "gpu"}]}}]
    spec = {"containers": containers, "resourceClaims": [{"name": "gpu", "resourceClaimName": name}], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def decided(cluster: Cluster, namespace: str, name: str) -> tuple[str, ...]:
    """The devices that the real scheduler gives to the claim for a pod; () where it finds none. Both are gone afterwards."""
    cluster.api.acting_as(PLACER).create(user_of(name), namespace)

    def found() -> list[tuple[str, ...]]:
        claimed = cluster.api.get(API_VERSION, "ResourceClaim", name, namespace) or {}
        if "allocation" in claimed.get("status", {}):
            return [tuple(one["device"] for one in claimed["status"]["allocation"]["devices"]["results"])]
        pod = cluster.api.get("v1", "Pod", name, namespace) or {}
        conditions = pod.get("status", {}).get("conditions", ())
        return [()] if any(one.get("reason") in ("Unschedulable", "SchedulerError") for one in conditions) else []

    (given,) = cluster.wait_for(found, f"kube-scheduler to decide on {name}")
    for kind in ("Pod", "ResourceClaim"):
        value = {"apiVersion": "v1" if kind == "Pod" else API_VERSION, "kind": kind, "metadata": {"name": name, "namespace": namespace}}
        cluster.api.delete(value, grace=0)
    cluster.wait_for(lambda: cluster.api.get(API_VERSION, "ResourceClaim", name, namespace) is None, "the devices to be given back")
    return given


def test_nothing_is_changed_afterwards(cluster: Cluster, mallory: Api, namespace: str) -> None:
    """An allocation that comes with a claim is dropped, and ``edit`` may write none. What policies wrote can't be taken out, only the
    record of it."""
    cluster.wait_for(lambda: stored(mallory, namespace, claim(exactly()), f"honest-{next(_number)}").ok, "edit to be given")
    result = {"request": "gpu", "driver": DRIVER, "pool": "attacked", "device": "t4"}
    allocated: Raw = {"allocation": {"devices": {"results": [result]}}}
    made = stored(mallory, namespace, {**claim(exactly()), "status": allocated}).body
    assert "allocation" not in made.get("status", {})
    path = cluster.api.path_of(made, namespace)
    assert mallory.call("PUT", f"{path}/status", {**made, "status": allocated}).status == 403
    bare = {**made, "spec": claim(exactly())["spec"]}
    assert mallory.call("PUT", path, bare).body["spec"] == made["spec"], "as if applied again"
    assert mallory.call("PUT", path, {**made, "spec": claim(exactly(count=2))["spec"]}).status == 422
    unmarked = mallory.call("PUT", path, {**made, "metadata": {**made["metadata"], "annotations": {}}}).body
    assert unmarked["spec"] == made["spec"]
    assert "berth.dev/applied" not in unmarked["metadata"].get("annotations", {})


def test_a_class_that_changes_gives_no_other_device(cluster: Cluster, mallory: Api, namespace: str) -> None:
    """Its selectors are asked when devices are given, and the claim's beside them: such a claim waits."""
    odd: Raw = {**class_of(DRIVER), "metadata": {"name": "vfio.gpu.nvidia.com"}}
    cluster.api.create(odd)
    cluster.wait_for(lambda: stored(mallory, namespace, claim(exactly(odd["metadata"]["name"])), "later").ok, "edit to be given")
    turing: Any = {"selectors": [{"cel": {"expression": f'device.attributes["{DRIVER}"].architecture == "Turing"'}}]}
    cluster.api.patch(odd, {"spec": turing})
    assert decided(cluster, namespace, "later") == ()
    cluster.api.delete(odd)


def test_a_quota_of_a_class_counts_what_is_made_anew(cluster: Cluster, mallory: Api, namespace: str) -> None:
    """What no review of a single claim can hold: the devices of all claims of a namespace together."""
    cluster.wait_for(lambda: stored(mallory, namespace, claim(exactly()), "first").ok, "edit to be given")
    hard = {f"{DRIVER}.deviceclass.resource.k8s.io/devices": "4"}
    cluster.api.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus"}, "spec": {"hard": hard}}, namespace)

    def known() -> bool:
        quota = cluster.api.get("v1", "ResourceQuota", "gpus", namespace) or {}
        return bool(quota.get("status", {}).get("used", {}) == {**hard, next(iter(hard)): "1"})

    cluster.wait_for(known, "the quota to be counted")
    reply = stored(mallory, namespace, claim(exactly(count=4)), "second")
    assert (reply.status, "exceeded quota" in reply.message) == (403, True), reply.message
    assert stored(mallory, namespace, claim(exactly(count=3)), "third").ok
