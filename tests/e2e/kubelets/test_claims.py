"""A claim under policy, to its end: a real driver publishes devices, a real scheduler allocates one that the policy allows, and a real
kubelet gives it to the container."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pytest

from kube.tree import apply_patch
from policies.claims import claim_verdict
from policies.claims.claim_request import ClaimRequest
from policies.facts.cluster_facts import ClusterFacts
from tests.support.cases import golden
from tests.support.snapshots import build
from tests.testcluster import thirdparty
from tests.testcluster.addons.devices import example_driver
from tests.testcluster.addons.devices.example_driver import DRIVER
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.fixtures import needs_sources
from tests.testcluster.images.small_image import ANSWERING
from tests.testcluster.kubelets import containers
from tests.testcluster.kubelets.rig import Rig

NODE = "node-2"
PUBLISHED = {
    "driver": DRIVER,
    "vendor": "nvidia",
    "classes": {DRIVER: ""},
    "model": "model",
    "names": {"H100-80GB": ["LATEST-GPU-MODEL"], "A100-80GB": ["ANOTHER-GPU-MODEL"]},
    "source": "general",
    "mark": "third-party",
}
"""The driver's only model (internal/profiles/gpu) stands for one GPU of the catalog, and a name that no device has for another."""


@pytest.fixture(scope="module")
def node(kubelets: Rig, request: pytest.FixtureRequest) -> Iterator[str]:
    """One on which the example driver runs, with two devices."""
    needs_sources(request.config, thirdparty.EXAMPLE_DRIVER)
    process = example_driver.start(kubelets, NODE, devices=2)
    yield NODE
    kubelets.cluster.processes.end(process)


def admitted(name: str, models: Sequence[str]) -> Raw:
    """A ResourceClaimTemplate for one device, as a policy that requires these models admits it."""
    catalog = golden.catalog_with(json.dumps([{"draDrivers": [PUBLISHED]}]))
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "x"}}
    policies = golden.policies_of([{**policy, "spec": {"mode": "Enforce", "require": {"models": {"in": [*models]}}}}], catalog)
    facts = build(policies, catalog, platforms=("gfd",), cluster=ClusterFacts.from_objects([example_driver.CLASS])).facts_for("default")
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
    made: Raw = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    verdict = claim_verdict.evaluate_claim(ClaimRequest(kind="ResourceClaimTemplate", made=made), facts)
    assert verdict.violations == ()
    assert verdict.edits
    edited: Raw = apply_patch(made, verdict.patch)
    return edited


def with_claim(rig: Rig, name: str, models: Sequence[str]) -> Raw:
    """A pod, created, with one claim of that template."""
    rig.api.create(admitted(name, models))
    container = {"name": "main", "image": ANSWERING, "resources": {"claims": [{"name": "gpu"}]}}
    spec = {"containers": [container], "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": name}]}
    pod: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {**spec, "terminationGracePeriodSeconds": 1}}
    return rig.api.create(pod)


def test_a_container_sees_the_device_that_the_policy_allows(kubelets: Rig, node: str) -> None:
    """It runs on the driver's node, with the very device that its claim was given."""
    made = with_claim(kubelets, "allowed", ["H100-80GB"])
    kubelets.cluster.wait_for(lambda: status(kubelets, "allowed").get("phase") == "Running", "the pod with a claim to run")
    (of_pod,) = status(kubelets, "allowed")["resourceClaimStatuses"]
    claim = kubelets.api.get("resource.k8s.io/v1", "ResourceClaim", of_pod["resourceClaimName"], "default")
    assert claim is not None
    (given,) = claim["status"]["allocation"]["devices"]["results"]
    environment = containers.environment(kubelets.nodes[node].machine, made["metadata"]["uid"], "main")
    seen = [value for key, value in environment.items() if key.startswith("GPU_DEVICE_") and value.startswith("gpu-")]
    assert seen == [given["device"]]
    kubelets.kubectl("delete", "pod", "allowed", "--wait")


def test_no_device_is_given_where_the_policy_allows_none(kubelets: Rig, node: str) -> None:
    """Both devices are free, and the pod waits: neither is of a model that is allowed."""
    with_claim(kubelets, "outside", ["A100-80GB"])

    def waits() -> bool:
        conditions = status(kubelets, "outside").get("conditions", [])
        return any(one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable" for one in conditions)

    kubelets.cluster.wait_for(waits, "kube-scheduler to find no device")
    kubelets.kubectl("delete", "pod", "outside", "--wait")


def status(rig: Rig, name: str) -> Raw:
    return dict((rig.api.get("v1", "Pod", name, "default") or {}).get("status") or {})
