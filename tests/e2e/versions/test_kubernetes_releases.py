"""What Berth needs of Kubernetes, on each release that is promised: ``make test`` has the newest, ``make prove`` the older ones too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from policies.policy import API_VERSION
from tests.e2e.certificates.shared import KINDS, REGISTRATION, SERVICE, Installation, registered
from tests.e2e.crds.denials import SPAN
from tests.e2e.crds.specs import made
from tests.e2e.versions.side_by_side import KINDS as OURS
from tests.e2e.versions.side_by_side import conditions
from tests.support.cluster.kstatus_verdict import verdict
from tests.testcluster import programs
from tests.testcluster.addons.berth import LIBRARY, Berth, create_namespace
from tests.testcluster.controlplane.api import Raw, Reply

GPU_USE = Path(__file__).parents[3] / "deploy" / "gpu-use-without-request.yaml"
LIMITED = made("ClusterGPUPolicy", {"mode": "Enforce", "require": {"gpusPerPod": {"max": 2}}}, "at-most-two")


@pytest.fixture(scope="module")
def namespace(release: Installation) -> str:
    return create_namespace(release.cluster, "team")


@pytest.fixture(scope="module")
def berth(release: Installation, namespace: str) -> Iterator[Berth]:
    """A replica with the shipped policies, which the API server calls."""
    for file in sorted(LIBRARY.glob("*.yaml")):
        for value in yaml.safe_load_all(file.read_text()):
            reply = release.cluster.api.apply(value)
            assert (reply.ok, reply.warnings) == (True, ()), reply.message
    replica = release.started("release", "--platforms", "karpenter-aws,gfd")
    with registered(release, replica):
        release.ready(replica)
        release.cluster.wait_for(lambda: release.created(namespace).ok, "a GPU pod to be created")
        yield replica
        release.cluster.processes.end(replica.process)


def tried(release: Installation, namespace: str, container: Raw) -> Reply:
    """A pod, on a dry run."""
    pod: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried"}}
    pod["spec"] = {"containers": [{"name": "c", "image": "i:1", **container}]}
    return release.cluster.api.try_create(pod, namespace, dry_run=True)


def gpus(number: int) -> Raw:
    return {"resources": {"limits": {"nvidia.com/gpu": str(number)}}}


def test_the_api_server_is_of_the_release(release: Installation, request: pytest.FixtureRequest) -> None:
    """And not another one that was at hand."""
    version = release.cluster.api.call("GET", "/version").body["gitVersion"]
    assert version == programs.kubernetes(request.node.callspec.params["release"])


def test_all_that_is_registered_is_kept(release: Installation, berth: Berth) -> None:
    """No entry loses its conditions, and a pod without a GPU reaches nobody."""
    for one in release.configurations():
        assert all(entry["matchConditions"] for entry in one["webhooks"])
        assert {entry["matchPolicy"] for entry in one["webhooks"]} == {"Equivalent"}
    before = berth.metric("berth_requests_total")
    assert tried(release, "team", {}).ok
    assert berth.metric("berth_requests_total") == before


def test_pods_are_changed_and_denied(release: Installation, berth: Berth, namespace: str) -> None:
    """By /mutate and by /validate; a change of a policy acts on pods that follow, and so does its end."""
    assert tried(release, namespace, gpus(4)).body["spec"]["tolerations"]
    release.cluster.api.create(LIMITED)
    release.cluster.wait_for(lambda: not tried(release, namespace, gpus(4)).ok, "four GPUs to be denied")
    assert "BERTH-111" in tried(release, namespace, gpus(4)).message
    assert tried(release, namespace, gpus(2)).ok
    release.cluster.api.delete(LIMITED)
    release.cluster.wait_for(lambda: tried(release, namespace, gpus(4)).ok, "four GPUs to be admitted again")


def test_the_kinds_are_checked_by_the_api_server(release: Installation) -> None:
    """Its rules in CEL included; all are stored in one version."""
    denied = release.cluster.api.apply(made("GPUPolicy", {"default": {"gracePeriod": "30d"}}), "default")
    assert not denied.ok
    assert SPAN in denied.message
    for kind in OURS:
        plural = release.cluster.api.kind(API_VERSION, kind).plural
        definition = release.cluster.api.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.berth.dev")
        assert definition is not None
        assert definition["status"]["storedVersions"] == ["v1alpha1"]
        assert {one["type"]: one["status"] for one in definition["status"]["conditions"]}.get("NonStructuralSchema") != "True"


def test_who_waits_is_told(release: Installation, berth: Berth) -> None:
    """An object is waited for until Berth has looked at it, and is then in force."""
    value = made("ClusterGPUPolicy", {"mode": "Enforce"}, "awaited")
    stored = release.cluster.api.create(value)
    assert verdict(stored)[0] == "InProgress"

    def current() -> bool:
        found = release.cluster.api.get(API_VERSION, "ClusterGPUPolicy", "awaited")
        return found is not None and conditions(found).get("Ready") == "True" and verdict(found)[0] == "Current"

    release.cluster.wait_for(current, "it to be in force")
    release.cluster.api.delete(value)


def test_the_registration_has_the_ca_and_gets_it_back(release: Installation, berth: Berth, namespace: str) -> None:
    """Emptied by somebody, by server-side apply of our one field."""
    right = release.bundles()
    assert len(right) == 1
    for kind in KINDS:
        found = release.cluster.api.get(REGISTRATION, kind, "zz-berth")
        assert found is not None
        emptied = [{**one, "clientConfig": {**one["clientConfig"], "caBundle": ""}} for one in found["webhooks"]]
        release.cluster.api.patch(found, {"webhooks": emptied})
    release.cluster.wait_for(lambda: release.bundles() == right, "the bundle to be healed")
    release.cluster.wait_for(lambda: release.created(namespace).ok, "pods to be created again")
    material = release.material()
    assert material.leaf is not None
    assert SERVICE in material.leaf.names


def test_the_policy_of_the_api_servers_own_acts(release: Installation, namespace: str) -> None:
    """The ValidatingAdmissionPolicy beside Berth: taken without a complaint, and it warns."""
    values = list(yaml.safe_load_all(GPU_USE.read_text()))
    for value in values:
        reply = release.cluster.api.apply(value)
        assert (reply.ok, reply.warnings) == (True, ()), reply.message
    label = values[1]["spec"]["matchResources"].get("namespaceSelector", {}).get("matchLabels", {})
    metadata = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    release.cluster.api.patch(metadata, {"metadata": {"labels": label}})
    reaching = {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
    release.cluster.wait_for(lambda: tried(release, namespace, reaching).warnings, "a warning")
    for value in values:
        release.cluster.api.delete(value)
