"""The selectors that policies write into claims, on a real control plane: the API server takes them, whatever the policies, and the
real scheduler allocates a device that the policies allow, out of devices as drivers publish them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import count as numbers
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from kube.tree import apply_patch
from policies.claims import claim_verdict
from policies.claims.claim_request import ClaimRequest
from policies.facts import device_requests
from policies.state.snapshot import NamespaceFacts
from registration.configurations import NAME
from tests.reference import claims as reference
from tests.support.cases.golden import catalog_with
from tests.support.claims import random_claims
from tests.support.claims.published_devices import class_of, slice_of
from tests.support.claims.random_claims import any_claim, facts_of, policies
from tests.support.counts import count
from tests.support.generators.written_claims import claim, exactly
from tests.testcluster.addons import nodes
from tests.testcluster.addons.berth import SCOPE, Berth, registered
from tests.testcluster.addons.nodes import FakeNode
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import free_port
from tests.testcluster.fixtures import NewNamespace

CATALOG = catalog_with()
NODE = "claimed"
_number = numbers()


def edited(made: Raw, facts: NamespaceFacts) -> Raw | None:
    """As /mutate leaves it; None if it is denied or left as it is."""
    verdict = claim_verdict.evaluate_claim(ClaimRequest(kind=made["kind"], made=made), facts)
    return apply_patch(copy.deepcopy(made), verdict.patch) if verdict.edits and not verdict.violations else None


def test_the_api_server_takes_what_is_written(cluster: Cluster, new_namespace: NewNamespace) -> None:
    """Random claims of each version that is served, under random policies, on a dry run: every selector compiles and is within its
    cost and length; nothing of it is dropped."""
    namespace, random, tried = new_namespace(), Random(20), 0
    texts: set[str] = set()
    served = {one["version"] for one in cluster.api.call("GET", "/apis/resource.k8s.io").body["versions"]}
    while tried < count(120, 10_000):
        facts = facts_of(random, CATALOG, policies(random))
        for _ in range(8):
            made = any_claim(random)
            made.pop("unknown", None)
            written = edited(made, facts) if made["apiVersion"].rpartition("/")[2] in served else None
            if written is None:
                continue
            reply = cluster.api.try_create(written, namespace, dry_run=True)
            assert reply.ok, (reply.message, written)
            stored, sent = (
                tuple(device_requests.expressions(one.value) for one in device_requests.written_requests(made["kind"], x))
                for x in (reply.body, written)
            )
            assert stored == sent
            texts.update(text for way in sent for text in way)
            tried += 1
    assert len(texts) > 50


# --- the real scheduler ------------------------------------------------------------------------------------------------


@pytest.fixture
def devices(cluster: Cluster) -> Iterator[dict[str, tuple[Any, Raw]]]:
    """Name -> (model, device): two of each of some models of each driver, in ResourceSlices of a node of their own."""
    random, found, by_driver = Random(3), {}, dict[str, list[Raw]]()
    gpus = [gpu for gpu in CATALOG.gpus if gpu.model in random_claims.MODELS]
    for number, gpu in enumerate(gpu for gpu in gpus for _ in range(2)):
        device = random_claims.device(random, gpu, CATALOG, f"d{number}")
        if device is not None:
            found[device["name"]] = gpu, device
            by_driver.setdefault(device["driver"], []).append({key: value for key, value in device.items() if key != "driver"})
    node = FakeNode(name=f"{NODE}-{next(_number)}")
    nodes.add(cluster, node)
    classes = [class_of(driver) for driver in by_driver]
    slices = [slice_of(node.name, driver, listed) for driver, listed in by_driver.items()]
    for value in (*classes, *slices):
        reply = cluster.api.try_create(value)
        assert reply.ok or reply.status == 409, reply.message
    yield found
    for value in (*classes, *slices, node.manifest()):
        cluster.api.delete(value)


def user_of(name: str) -> Raw:
    """A pod with this claim."""
    containers = [{"name": "c", "image": "train:1", "resources": {"claims": [{"name": "gpu"}]}}]
    spec = {"containers": containers, "resourceClaims": [{"name": "gpu", "resourceClaimName": name}], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def allocated(cluster: Cluster, namespace: str, name: str) -> str | None:
    """The device that the claim was given; "" where kube-scheduler says that there is none; None so far."""
    value = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}}
    status = cluster.api.call("GET", cluster.api.path_of(value, namespace)).body.get("status", {})
    if "allocation" in status:
        return str(status["allocation"]["devices"]["results"][0]["device"])
    pod = cluster.api.call("GET", cluster.api.path_of(user_of(name), namespace)).body
    waiting = [one for one in pod.get("status", {}).get("conditions", ()) if one.get("reason") == "Unschedulable"]
    return "" if waiting else None


def test_the_scheduler_allocates_what_is_allowed(
    cluster: Cluster, devices: dict[str, tuple[Any, Raw]], new_namespace: NewNamespace
) -> None:
    """Out of two of each model: a device that every policy allows by the reference, and one wherever there is such a device; none
    where there is none. No selector fails."""
    random, outcomes = Random(11), {"given": 0, "none": 0}
    while sum(outcomes.values()) < count(8, 200):
        given = policies(random, defaults=False, more=False)
        facts = facts_of(random, CATALOG, given)
        driver = random.choice(sorted({device["driver"] for _, device in devices.values()}))
        name = f"claim-{next(_number)}"
        verdict = claim_verdict.evaluate_claim(ClaimRequest(made=(made := claim(exactly(driver), name=name))), facts)
        if verdict.violations or any(remark.code == "BERTH-242" for remark in verdict.remarks):
            continue
        rules = [policy["spec"]["require"] for policy in given]
        right = {
            key
            for key, (gpu, device) in devices.items()
            if device["driver"] == driver and all(reference.allowed(rule, gpu, shared(device)) for rule in rules)
        }
        namespace = new_namespace()
        cluster.api.create(apply_patch(made, verdict.patch), namespace)
        cluster.api.create(user_of(name), namespace)
        device = decided(cluster, namespace, name)
        assert device in right if right else device == "", (rules, device, right)
        outcomes["given" if right else "none"] += 1
        cluster.api.delete(user_of(name) | {"metadata": {"name": name, "namespace": namespace}})
        given_back(cluster, namespace, name)
    assert outcomes["given"] > 2


def decided(cluster: Cluster, namespace: str, name: str) -> str:
    """As ``allocated``, once kube-scheduler has decided."""

    def found() -> tuple[str] | None:
        device = allocated(cluster, namespace, name)
        return None if device is None else (device,)

    return cluster.wait_for(found, f"kube-scheduler to decide on {name}")[0]


def given_back(cluster: Cluster, namespace: str, name: str) -> None:
    """Once the claim has no device any more."""
    value = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}}
    path = cluster.api.path_of(value, namespace)
    cluster.wait_for(lambda: "allocation" not in cluster.api.call("GET", path).body.get("status", {}), f"{name} to be given back")


def shared(device: Raw) -> str:
    return "MIG" if device["attributes"].get("type", {}).get("string") == "mig" else "Exclusive"


# --- through Berth -----------------------------------------------------------------------------------------------------


@pytest.fixture
def berth(cluster: Cluster, tmp_path: Path) -> Iterator[Berth]:
    policy = {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": "hopper"}}
    spec = {"mode": "Enforce", "require": {"families": {"in": ["hopper"]}, "sharing": ["Exclusive"]}}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump({**policy, "spec": spec}))
    listen = ("--listen", f"127.0.0.1:{free_port()}")
    with registered(cluster, f"selectors-{next(_number)}", (tmp_path / "policy.yaml",), "--platforms", "gfd", *listen) as started:
        yield started


@pytest.mark.parametrize("template", [False, True], ids=["claim", "template"])
def test_a_claim_is_stored_with_its_selectors(cluster: Cluster, berth: Berth, new_namespace: NewNamespace, *, template: bool) -> None:
    """And with the record of who wrote them; the same again is stored as it is."""
    namespace = new_namespace({SCOPE: berth.name})
    stored = cluster.api.create(claim(exactly(), template=template), namespace)
    (way,) = device_requests.written_requests(stored["kind"], stored)
    assert [text.split(" && ")[1] for text in device_requests.expressions(way.value)] == [
        'has(device.attributes["gpu.nvidia.com"].architecture)',
        'has(device.attributes["gpu.nvidia.com"].type)',
    ]
    assert "ClusterGPUPolicy/hopper" in stored["metadata"]["annotations"]["berth.dev/applied"]
    again = {**claim(exactly(), template=template, name="again"), "spec": stored["spec"]}
    assert cluster.api.create(again, namespace)["spec"] == stored["spec"]


def test_a_claim_that_the_controller_makes_gets_them_too(cluster: Cluster, berth: Berth, new_namespace: NewNamespace) -> None:
    """Its template may be older than the policy."""
    namespace = new_namespace({SCOPE: berth.name})
    made = claim(exactly())
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": "0", "controller": True, "blockOwnerDeletion": True}
    made["metadata"] = {"generateName": "train-gpu-", "ownerReferences": [owner]}
    controller = cluster.api.acting_as("system:serviceaccount:kube-system:resource-claim-controller")
    (way,) = device_requests.written_requests("ResourceClaim", controller.create(made, namespace, dry_run=True))
    assert len(device_requests.expressions(way.value)) == 2


def test_a_claim_without_its_selectors_is_denied(cluster: Cluster, berth: Berth, new_namespace: NewNamespace) -> None:
    """Told apart from one that never came to /mutate by nobody: here that webhook is taken away."""
    namespace = new_namespace({SCOPE: berth.name})
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": f"{NAME}-{berth.name}"},
    }
    cluster.api.delete(configuration)
    reply = cluster.wait_for(
        lambda: None if (one := cluster.api.try_create(claim(exactly()), namespace, dry_run=True)).ok else one, "no claim to be edited"
    )
    assert "BERTH-127" in reply.message
