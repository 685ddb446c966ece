"""One command installs Berth, and another one takes it away: while GPU pods are created, and nothing is left that blocks one."""

from __future__ import annotations

import time

import pytest

from tests.e2e.installation.arrivals import arriving, gpu_pod, is_policied
from tests.e2e.installation.installed import RATE, Installation, is_ready
from tests.support.counts import only_in_prove
from tests.testcluster.addons.helm import RELEASE
from tests.testcluster.addons.installed import NAMESPACE

KEPT = [
    "APIService v1alpha1.berth.dev",
    "CustomResourceDefinition clustergpupolicies.berth.dev",
    "CustomResourceDefinition gpunodetemplates.berth.dev",
    "CustomResourceDefinition gpupolicies.berth.dev",
]
"""the definitions, by their resource policy, for with them all policies would go; and what the API server makes of them"""
POLICIES = ("--set", "library.policies={berth-default},library.mode=Enforce")
OTHER_USERS = ("--set", "podSecurityContext.runAsUser=1000680000,podSecurityContext.runAsGroup=0")
"""as OpenShift chooses them"""


@pytest.fixture(scope="module", autouse=True)
def installed(installation: Installation, team: str) -> None:
    """The README's command; then until its pods are ready and a GPU pod is admitted with what policies add."""
    begun = time.monotonic()
    installation.install("--wait")
    waited = time.monotonic() - begun
    installation.upgrade(*POLICIES, "--wait")
    installation.rig.cluster.wait_for(lambda: installation.is_judged(team), "a GPU pod to be admitted with what policies add")
    print(f"ready after {waited:.1f} s, with policies in force after {time.monotonic() - begun:.1f} s")


def test_an_upgrade_and_a_rollback_fail_no_creation(installation: Installation, team: str) -> None:
    """Every replica is replaced, twice, under load: by those of a user that the cluster chose, and back."""
    with arriving(installation.api, team, RATE) as load:
        installation.upgrade(*POLICIES, *OTHER_USERS, "--wait")
        installation.settle()
        installation.helm("rollback", RELEASE, "--wait")
        installation.settle()
    print(load)
    assert load.failed() == []
    assert load.unpoliced() == 0


@only_in_prove
def test_an_image_that_cannot_be_pulled_leaves_the_old_replicas(installation: Installation, team: str) -> None:
    """The new ones wait for it, the old ones serve on, and the cluster says why; a rollback ends it. `make test` has the rollback above,
    and an upgrade whose replicas never start in tests/deploy/test_taking_effect.py."""
    before = {pod["metadata"]["name"] for pod in installation.replicas()}
    with arriving(installation.api, team, RATE) as load:
        installation.upgrade(*POLICIES, "--set", "image.tag=no-such-tag")
        installation.rig.cluster.wait_for(lambda: "image" in installation.waiting_for().lower(), "a pod to wait for its image")
        assert before <= {pod["metadata"]["name"] for pod in installation.replicas()}
        installation.helm("rollback", RELEASE, "--wait")
        installation.settle()
    print(load)
    assert load.failed() == []
    assert load.unpoliced() == 0


def test_the_audit_counts_what_runs(installation: Installation, team: str) -> None:
    """By an account and a pod of its own, beside the replicas: how many pods the policy applies to."""
    assert installation.api.try_create(gpu_pod(), team).ok

    def counted() -> bool:
        policy = installation.api.get("berth.dev/v1alpha1", "ClusterGPUPolicy", "berth-default")
        return policy is not None and policy["status"].get("audit", {}).get("pods", 0) > 0

    installation.rig.cluster.wait_for(counted, "the audit to count a GPU pod")
    (pod,) = installation.audit_pods()
    assert is_ready(pod)
    assert pod["spec"]["serviceAccountName"] == f"{RELEASE}-audit"


def test_uninstalling_blocks_nothing_and_leaves_nothing(installation: Installation, team: str) -> None:
    """Creations go on while it happens and afterwards, without policies then; what stays are the definitions."""
    with arriving(installation.api, team, RATE) as load:
        installation.helm("uninstall", RELEASE, "--wait")
        installation.rig.cluster.wait_for(lambda: installation.pods() == [], "the replicas to end")
    print(load)
    assert load.failed() == []
    reply = installation.api.try_create(gpu_pod(), team)
    assert reply.ok, reply.message
    assert not is_policied(reply.body)
    installation.rig.kubectl("delete", "namespace", NAMESPACE)
    assert installation.left_behind() == KEPT


@only_in_prove
def test_a_first_installation_that_fails_blocks_nothing(installation: Installation, team: str) -> None:
    """While its image cannot be pulled, GPU pods are created as before; with one that can, and a user of the cluster's choice as on
    OpenShift, policies act from the first replica on, and no creation fails. `make test` has it without kubelets
    (tests/deploy/test_taking_effect.py), and those users above."""
    with arriving(installation.api, team, RATE) as load:
        installation.install("--set", "image.tag=no-such-tag")
        installation.rig.cluster.wait_for(lambda: "image" in installation.waiting_for().lower(), "a pod to wait for its image")
        assert not installation.is_judged(team)
        installation.upgrade(*POLICIES, *OTHER_USERS, "--wait")
        installation.rig.cluster.wait_for(lambda: installation.is_judged(team), "a GPU pod to be admitted with what policies add")
    print(load)
    assert load.failed() == []
    installation.helm("uninstall", RELEASE, "--wait")
    installation.rig.kubectl("delete", "namespace", NAMESPACE)
    assert installation.left_behind() == KEPT
