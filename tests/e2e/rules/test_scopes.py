"""Whose pods a policy is for: namespaces by label, a namespace's own policies, users who are left alone, namespaces that are never judged.

Berth knows a namespace's labels from a dump (``--from``), which it follows while it runs; of a namespace that no dump lists it
knows the name alone. kwok plays the kubelets, which have no part in this.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.judged import KNOWN, Judged, dump, judged
from tests.e2e.workloads import NVIDIA, TOLERATION, affinity, expression, gpus, node_of, pod, pod_of, terms, tolerations, workload
from tests.testcluster.addons.berth import SCOPE
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

FAMILY = "nvidia.com/gpu.family"
T4 = {"nvidia.com/gpu.product": "Tesla-T4"}
RUNNER = "system:serviceaccount:ci:runner"
OPERATORS = ("gpu-operator", "node-feature-discovery", "kube-amd-gpu")
"""left out by name, as `berth webhooks --exclude-namespace` does it"""
RESEARCH: Raw = {"matchExpressions": [expression(FAMILY, "ampere", "hopper")]}


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> Iterator[Judged]:
    teams = {"tight": "research", "wide": "research", "vision": "vision"}
    namespaces = {key: {"team": team} for key, team in teams.items()}
    with judged(cluster, "scopes", namespaces=namespaces, excluded=OPERATORS) as found:
        yield found


@pytest.fixture(autouse=True)
def cleared(world: Judged) -> Iterator[None]:
    yield
    world.clear("Job")


def preferring_a_t4() -> Raw:
    """Nothing but a policy keeps it from T4s."""
    return pod(affinity=affinity(preferred=T4))


@contextmanager
def namespace(world: Judged, name: str, labels: dict[str, str]) -> Iterator[Raw]:
    """One more, that the same Berth judges."""
    api = world.cluster.api
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {SCOPE: world.berth.name, **labels}}}
    api.create(made)
    try:
        yield made
    finally:
        api.delete_all("v1", "Pod", name)
        api.delete(made)


# --- labels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "wanted", "where"),
    [
        ("vision", [], {"t4"}),
        ("wide", [RESEARCH], {"a10g", "a100-shared", "h100", "h200"}),
        ("tight", [{"matchExpressions": [expression(FAMILY, "hopper")]}], {"h100", "h200"}),
    ],
)
def test_the_labels_of_a_namespace_pick_its_policies(world: Judged, key: str, wanted: list[Raw], where: set[str]) -> None:
    """One policy is for team research; one of its two namespaces has a policy of its own, which tightens that and widens nothing."""
    stored = world.cluster.api.create(preferring_a_t4(), world[key])
    assert terms(stored) == wanted
    assert node_of(world.cluster, stored) in where


def test_a_namespace_is_known_by_the_next_dump(world: Judged) -> None:
    """A new one of the team is judged by its name alone until it is dumped; and no longer by its team's policy once it has left.

    A pod whose two reviews lie on either side of a dump is denied by BERTH-123, which says to create it again.
    """
    api = world.cluster.api
    with namespace(world, "scopes-new", {"team": "research"}) as made:

        def stored() -> list[Raw] | None:
            reply = api.try_create(pod(), "scopes-new", dry_run=True)
            assert reply.ok or "BERTH-123: " in reply.message
            return terms(reply.body) if reply.ok else None

        assert stored() == []
        dump(world.cluster, KNOWN, world.facts)
        world.cluster.wait_for(lambda: stored() == [RESEARCH], "Berth to read the dump")
        api.patch(made, {"metadata": {"labels": {"team": "vision"}}})
        dump(world.cluster, KNOWN, world.facts)
        world.cluster.wait_for(lambda: stored() == [], "Berth to read the next dump")


# --- a namespace's own policies ----------------------------------------------------------------------------------------


def test_a_policy_of_one_namespace_never_acts_in_another(world: Judged) -> None:
    """The other namespace of the team has the same labels, and gets neither its constraint nor its tolerations."""
    stored = {key: world.cluster.api.create(pod(nodeSelector={FAMILY: "ampere"}), world[key]) for key in ("wide", "vision")}
    assert [tolerations(one) for one in stored.values()] == [[TOLERATION]] * 2
    assert [node_of(world.cluster, one) in {"a10g", "a100-shared"} for one in stored.values()] == [True, True]
    denied = world.cluster.api.try_create(pod(nodeSelector={FAMILY: "ampere"}), world["tight"])
    assert denied.status == 403
    assert "GPUPolicy/scopes-tight/own" in denied.message


def test_a_namespace_cannot_give_itself_what_the_cluster_forbids(world: Judged) -> None:
    """Its own policy names turing; the cluster's does not, and counts."""
    denied = world.cluster.api.try_create(pod(nodeSelector={FAMILY: "turing"}), world["tight"])
    assert denied.status == 403
    assert "BERTH-121: " in denied.message
    assert "ClusterGPUPolicy/research" in denied.message


def test_a_namespaces_toleration_wants_a_grant(world: Judged) -> None:
    """Of its two tolerations the one that the cluster allows is added."""
    stored = world.cluster.api.create(pod(), world["tight"])
    assert [one["key"] for one in tolerations(stored)] == [NVIDIA, "granted"]


# --- users -------------------------------------------------------------------------------------------------------------


def test_an_excluded_user_is_left_alone(world: Judged) -> None:
    """By who asks, and never by what the pod says of itself: only the policy that excludes the runner is silent, and only for it."""
    runner = world.cluster.api.acting_as(RUNNER)
    stored = runner.create(preferring_a_t4(), world["wide"])
    assert (terms(stored), tolerations(stored)) == ([], [TOLERATION])
    assert node_of(world.cluster, stored) == "t4"
    claims = pod(metadata={"annotations": {"berth.dev/user": RUNNER}}, serviceAccountName="runner", affinity=affinity(preferred=T4))
    for user in (world.cluster.api, world.cluster.api.acting_as("system:serviceaccount:ci:other")):
        assert terms(user.create(claims, world["wide"])) == [RESEARCH]


def test_a_job_of_an_excluded_user_is_judged(world: Judged) -> None:
    """Its pods are asked for by the Job's controller, whoever made the Job."""
    world.cluster.api.acting_as(RUNNER).create(workload("Job", pod()), world["wide"])
    assert terms(pod_of(world.cluster, world["wide"])) == [RESEARCH]


# --- excluded namespaces -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operators_own_namespace_is_never_judged(world: Judged, name: str) -> None:
    """The API server does not call Berth for its pods, though it carries every label; the same pod elsewhere is judged."""
    with namespace(world, name, {"team": "research"}):
        before = world.calls()
        stored = world.cluster.api.create(pod(gpus(64)), name)
        assert world.calls() == before
        assert (terms(stored), tolerations(stored)) == ([], [])
    world.cluster.api.create(pod(gpus(64)), world["wide"])
    assert world.calls() == before + 2


def test_kube_system_is_never_judged(world: Judged) -> None:
    """Not even where somebody labels it: a namespace that is labelled after it is judged already."""
    api = world.cluster.api
    labels = {"metadata": {"labels": {SCOPE: world.berth.name}}}
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
    with namespace(world, "scopes-witness", {SCOPE: ""}) as witness:
        api.patch(system, labels)
        try:
            api.patch(witness, labels)
            world.cluster.wait_for(lambda: tolerations(api.create(pod(), "scopes-witness", dry_run=True)), "labels to be in force")
            before = world.calls()
            stored = api.create(pod(), "kube-system", dry_run=True)
            assert (world.calls(), tolerations(stored)) == (before, [])
        finally:
            api.patch(system, {"metadata": {"labels": {SCOPE: None}}})
