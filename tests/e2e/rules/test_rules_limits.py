"""The rules that bound a pod's life and what it asks for, once for real: a pod in by the API, the stored pod and its node out.

First what becomes of the same pod without Berth. Bare metal (``--platforms gfd``). kwok plays the kubelets, so what a kubelet does
with a grace period or a probe is not shown; what the API server and kubectl do with them is.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.judged import POLICIES, Judged, judged, pool
from tests.e2e.workloads import NVIDIA, TOLERATION, amounts, gpus, node_of, pod, waiting
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons import nodes
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

RULES = ("checkpoint-grace", "disruption", "disruption-cap", "requests-match-limits", "repair", "device-counts")
SKIP_DRAIN = "nvidia.com/gpu-driver-upgrade-drain.skip"


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> Iterator[Judged]:
    namespaces = {rule: {"rule": rule} for rule in RULES}
    with judged(cluster, "rules-limits", namespaces=namespaces, policies=POLICIES / "rules.yaml") as found:
        yield found


@pytest.fixture(autouse=True)
def cleared(world: Judged) -> Iterator[None]:
    yield
    world.clear("Pod")


# --- checkpoint_grace --------------------------------------------------------------------------------------------------


def probed() -> Raw:
    """A pod with probes: liveness without a grace of its own, startup with one, readiness, which never ends a container."""
    made = pod()
    check = {"httpGet": {"path": "/health", "port": 8000}}
    probes: dict[str, Any] = {
        "livenessProbe": check,
        "startupProbe": {**check, "terminationGracePeriodSeconds": 5},
        "readinessProbe": check,
    }
    made["spec"]["containers"][0] |= probes
    return made


def probe_graces(stored: Raw) -> list[int | None]:
    container = stored["spec"]["containers"][0]
    return [container[probe].get("terminationGracePeriodSeconds") for probe in ("livenessProbe", "startupProbe", "readinessProbe")]


def granted(world: Judged, stored: Raw) -> int:
    """Seconds between being told to stop and being killed, as the API server sets them when the bound pod is deleted."""
    node_of(world.cluster, stored)
    path = f"/api/v1/namespaces/{stored['metadata']['namespace']}/pods/{stored['metadata']['name']}"
    answer = world.cluster.api.call("DELETE", path).body
    return int(answer["metadata"]["deletionGracePeriodSeconds"])


def test_a_deleted_pod_has_time_for_a_checkpoint(world: Judged) -> None:
    """Without Berth 30 s; with it what the policy gives. A hung server is still killed after 30, by its probe's own grace."""
    plain = world.cluster.api.create({**probed(), "spec": {**probed()["spec"], "tolerations": [TOLERATION]}}, world["plain"])
    stored = world.cluster.api.create(probed(), world["checkpoint-grace"])
    assert (probe_graces(plain), probe_graces(stored)) == ([None, 5, None], [30, 5, None])
    assert (granted(world, plain), granted(world, stored)) == (30, 1800)


def test_a_longer_grace_than_the_policys_is_kept_up_to_the_maximum(world: Judged) -> None:
    """It is never lowered; past the maximum the pod is denied with the number to write."""
    stored = world.cluster.api.create(pod(terminationGracePeriodSeconds=3600), world["checkpoint-grace"])
    assert stored["spec"]["terminationGracePeriodSeconds"] == 3600
    sentence = world.denied("checkpoint-grace", pod(terminationGracePeriodSeconds=3601), "BERTH-141")
    assert "set spec.terminationGracePeriodSeconds to at most 3600" in sentence


# --- disruption --------------------------------------------------------------------------------------------------------


def test_a_drain_for_a_driver_upgrade_spares_a_protected_pod(world: Judged) -> None:
    """kubectl drains the node with the GPU Operator's own pod selector: of two alike, the one that Berth protects stays."""
    with pool(world.cluster, "upgraded", nodes.whole("upgraded", catalog().models("T4")[0], 2)) as selector:
        made = pod(tolerations=[TOLERATION], nodeSelector=selector)
        plain = world.cluster.api.create(made, world["plain"])
        stored = world.cluster.api.create(made, world["disruption"])
        assert stored["metadata"]["labels"] == {SKIP_DRAIN: "true"}
        assert [node_of(world.cluster, one) for one in (plain, stored)] == ["upgraded", "upgraded"]
        command = world.cluster.kubectl("drain", "upgraded", f"--pod-selector={SKIP_DRAIN}!=true", "--force", "--timeout=300s")
        subprocess.run(command, check=True, capture_output=True, text=True)
        left = world.cluster.api.list("v1", "Pod", fieldSelector="spec.nodeName=upgraded")
        assert [(one["metadata"]["name"], "deletionTimestamp" in one["metadata"]) for one in left] == [(stored["metadata"]["name"], False)]


def test_who_wants_to_be_drained_is_drained(world: Judged) -> None:
    """The author's opposite word stands."""
    stored = world.cluster.api.create(pod(metadata={"labels": {SKIP_DRAIN: "false"}}), world["disruption"])
    assert stored["metadata"]["labels"] == {SKIP_DRAIN: "false"}


def test_a_protection_for_ever_is_denied_under_a_maximum(world: Judged) -> None:
    """The message says which label to remove."""
    sentence = world.denied("disruption-cap", pod(metadata={"labels": {SKIP_DRAIN: "true"}}), "BERTH-142")
    assert sentence.startswith(
        f'metadata.labels["{SKIP_DRAIN}"] is "true", which protects the node for longer than the maximum of 24h here; remove it'
    )


# --- requests_match_limits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requests", "limits", "message", "fix"),
    [
        (
            {NVIDIA: "1"},
            {NVIDIA: "2"},
            f"must be equal to {NVIDIA} limit",
            'set spec.containers[0].resources.requests["nvidia.com/gpu"] to 2',
        ),
        ({NVIDIA: "2"}, {}, "Limit must be set", 'set spec.containers[0].resources.limits["nvidia.com/gpu"] to 2'),
    ],
    ids=["less-than-the-limit", "no-limit"],
)
def test_requests_that_are_not_limits(world: Judged, requests: Raw, limits: Raw, message: str, fix: str) -> None:
    """Without Berth the API server denies the pod, and names no fix; Berth does, or mends it where a policy says so, and it runs."""
    made = pod({"requests": requests, "limits": limits})
    plain = world.cluster.api.try_create(made, world["plain"])
    assert plain.status == 422
    assert message in plain.message
    assert fix in world.denied("requests-match-limits", made, "BERTH-101")
    stored = world.cluster.api.create(made, world["repair"])
    assert amounts(stored) == ({NVIDIA: "2"}, {NVIDIA: "2"})
    assert node_of(world.cluster, stored)


def test_a_fraction_of_a_dra_extended_resource_is_denied(world: Judged) -> None:
    """The API server alone stores a request of half a device, and nothing ever runs it."""
    made = pod(gpus(name="deviceclass.resource.kubernetes.io/gpu"))
    made["spec"]["containers"][0]["resources"]["limits"] = {"deviceclass.resource.kubernetes.io/gpu": "500m"}
    assert waiting(world.cluster, world.cluster.api.create(made, world["plain"]))
    sentence = world.denied("requests-match-limits", made, "BERTH-102")
    assert 'set spec.containers[0].resources.limits["deviceclass.resource.kubernetes.io/gpu"] to a whole number' in sentence


# --- device_counts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "code", "fix"),
    [
        ({"nvdia.com/gpu": "1"}, "BERTH-114", "write nvidia.com/gpu"),
        ({"nvidia.com/mig-3g.70gb": "1"}, "BERTH-115", "write nvidia.com/mig-3g.71gb"),
        ({NVIDIA: "1", "nvidia.com/mig-1g.20gb": "1"}, "BERTH-113", "remove one of them from spec.containers[0].resources"),
        ({NVIDIA: "64"}, "BERTH-111", "request at most 8, or split the work over more pods"),
    ],
    ids=["misspelt", "no-such-slice", "whole-and-slice", "more-than-a-machine-has"],
)
def test_what_no_node_can_give_is_rejected_at_once(world: Judged, limits: Raw, code: str, fix: str) -> None:
    """Without Berth the API server stores it, and it is Pending for ever: an author who tolerates the taint reads "Insufficient"."""
    made = pod({"limits": limits}, tolerations=[TOLERATION])
    assert "Insufficient" in waiting(world.cluster, world.cluster.api.create(made, world["plain"]))
    assert fix in world.denied("device-counts", made, code)


def test_an_odd_number_of_gpus_is_denied_with_the_next_even_one(world: Judged) -> None:
    """Without Berth three of eight are taken, and of the five that are left most jobs can use four."""
    made = pod(gpus(3), tolerations=[TOLERATION])
    assert node_of(world.cluster, world.cluster.api.create(made, world["plain"]))
    assert "allowed here: 1, 2, 4, 8; request 4" in world.denied("device-counts", made, "BERTH-112")
    assert node_of(world.cluster, world.cluster.api.create(pod(gpus(4)), world["device-counts"]))
