"""Actors: how rows of the table meet, and by what a pod is told to be in one. The cells are tests/cases/actors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.pod import MIRROR, Pod
from policies.pods.actors import (
    CLAIMED,
    DAEMON,
    FLAVORED,
    FRACTION,
    PINNED,
    PLACED,
    PLAIN,
    QUEUED,
    SERVICE,
    SHARING,
    Actor,
    actor_of,
    caller,
    meet,
    workloads_of,
)
from policies.pods.fractions import SHARED_BY_NAME, is_fraction
from policies.request import Request
from tests.support.cases import golden

CATALOG = golden.catalog_with()
ROWS = (PLAIN, SERVICE, DAEMON, PINNED, PLACED, QUEUED, FLAVORED, FRACTION, SHARING, CLAIMED)
"""all but the mirror pod's, which is never met with another"""
ORDER = {
    "affinity": ("no", "check", "write"),
    "resources": ("no", "repair", "yes"),
    "grace": ("no", "named", "yes"),
    "floor": ("no", "opt-out", "yes"),
    "disruption": ("no", "named", "yes"),
}
PLACEMENT = ("none", "left", "node", "all")


@given(st.sampled_from(ROWS), st.sampled_from(ROWS))
def test_of_the_edits_the_least_of_the_denials_the_most(first: Actor, second: Actor) -> None:
    """In either order."""
    met = meet(first, second)
    for field, order in ORDER.items():
        least = min(order.index(getattr(first, field)), order.index(getattr(second, field)))
        assert order.index(getattr(met, field)) == least == order.index(getattr(meet(second, first), field))
    assert met.tolerations is (first.tolerations and second.tolerations)
    assert met.chooses is (first.chooses and second.chooses)
    most = max(PLACEMENT.index(first.placement), PLACEMENT.index(second.placement))
    assert PLACEMENT.index(met.placement) == most == PLACEMENT.index(meet(second, first).placement)
    assert met.by_driver is (first.by_driver or second.by_driver)
    assert not met.mirror


def pod(
    kind: str = "", api: str = "apps/v1", labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **spec: Any
) -> Pod:
    owners = [{"kind": kind, "apiVersion": api, "controller": True}] if kind else []
    return Pod({"metadata": {"ownerReferences": owners, "labels": labels or {}, "annotations": annotations or {}}, "spec": spec})


def asker(user: str = "alice", *groups: str) -> Request:
    return Request(operation="CREATE", namespace="ml", user=user, pod={}, phase="mutate", groups=groups)


def actor(one: Pod, *queues: str, by: Request | None = None, asked: bool = True) -> Actor:
    return actor_of(by or asker(), one, CATALOG, queues, asked=asked, workloads=workloads_of(one, CATALOG))


DAEMON_CONTROLLER = "system:serviceaccount:kube-system:daemon-set-controller"
PIN = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
PINNED_TO = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [PIN]}}}
MIRRORS = {MIRROR: "hash"}
GROUP = {"kueue.x-k8s.io/pod-group-name": "g"}
QUEUE = {"kueue.x-k8s.io/queue-name": "q"}
MANAGED = {"kueue.x-k8s.io/managed": "true"}


@pytest.mark.parametrize(
    ("one", "names"),
    [
        (pod("ReplicaSet"), {"Deployment", "ReplicaSet"}),
        (pod("Job", "batch/v1"), {"Job"}),
        (pod("Job", "batch.volcano.sh/v1alpha1"), {"VolcanoJob"}),
        (pod("Job", "example.com/v1"), set()),
        (pod(labels={"training.kubeflow.org/operator-name": "pytorchjob-controller"}), {"PyTorchJob"}),
        (pod(labels={"training.kubeflow.org/operator-name": "other"}), set()),
        (pod(labels={"notebook-name": "any"}), {"Notebook"}),
    ],
)
def test_a_workload_is_known_by_its_owner_or_a_label(one: Pod, names: set[str]) -> None:
    """Group and kind of the controlling owner, or a label the operator writes."""
    assert {w.name for w in workloads_of(one, CATALOG)} == names


@pytest.mark.parametrize(
    ("labels", "scheduler", "queues", "affinity"),
    [
        ({**GROUP, **QUEUE, **MANAGED}, "", ("kueue",), "check"),
        ({**GROUP, **QUEUE, **MANAGED}, "", ("slurm-bridge",), "write"),
        (GROUP, "", ("kueue",), "write"),
        ({**GROUP, **QUEUE}, "", ("kueue",), "write"),
        ({**GROUP, **QUEUE, "kueue.x-k8s.io/managed": "false"}, "", ("kueue",), "write"),
        ({**GROUP, **MANAGED}, "", ("kueue",), "write"),
        ({**QUEUE, **MANAGED}, "", ("kueue",), "write"),
        ({}, "slurm-bridge-scheduler", ("slurm-bridge",), "check"),
        ({}, "slurm-bridge-scheduler", (), "write"),
        ({}, "kai-scheduler", ("kueue", "slurm-bridge"), "write"),
    ],
)
def test_only_a_queue_that_is_in_use_takes_placement_over(
    labels: dict[str, str], scheduler: str, queues: tuple[str, ...], affinity: str
) -> None:
    """A label or a scheduler's name alone takes nobody out of the guardrail."""
    one = pod(labels=labels, schedulerName=scheduler or None)
    assert actor(one, *queues).affinity == affinity


def test_a_claim_beside_a_resource_is_a_plain_pod() -> None:
    """The row of claims is for pods that ask for nothing else."""
    one = pod(resourceClaims=[{"name": "g", "resourceClaimName": "x"}])
    assert actor(one) is PLAIN
    assert actor(one, asked=False) is CLAIMED


@pytest.mark.parametrize(
    ("request_", "who"),
    [
        (asker(), ""),
        (asker(DAEMON_CONTROLLER), "daemon"),
        (asker("system:kube-controller-manager"), "daemon"),
        (asker("system:serviceaccount:ml:daemon-set-controller"), ""),
        (asker("system:serviceaccount:kube-system:job-controller"), ""),
        (asker("system:node:a", "system:nodes", "system:authenticated"), "node"),
        (asker("system:node:a"), ""),
        (asker("alice", "system:masters"), ""),
    ],
    ids=lambda value: value.user if isinstance(value, Request) else value,
)
def test_who_asks_is_told_by_the_request(request_: Request, who: str) -> None:
    """A user's name that looks like a node's makes no node: the group that only the API server's authenticators give does."""
    assert caller(request_.user, request_.groups) == who


def test_only_a_node_makes_mirror_pods() -> None:
    """Its annotation, written by anybody else, changes nothing."""
    one = pod(annotations=MIRRORS)
    assert actor(one, by=asker("system:node:a", "system:nodes")).mirror
    assert actor(one) is PLAIN
    assert actor(one, by=asker(DAEMON_CONTROLLER)) is PLAIN
    assert actor(pod(), by=asker("system:node:a", "system:nodes")) is PLAIN


def test_a_pin_is_the_daemonset_controllers_or_anybodys() -> None:
    """An owner of kind DaemonSet does not tell them apart: every author can write one."""
    one = pod("DaemonSet", affinity=PINNED_TO)
    assert actor(one, by=asker(DAEMON_CONTROLLER)) is DAEMON
    assert actor(one) is PINNED
    assert actor(pod("DaemonSet")) is PLAIN
    assert actor(pod("DaemonSet"), by=asker(DAEMON_CONTROLLER)) is PLAIN


def test_a_fraction_is_alone_or_beside_a_gpu() -> None:
    """Beside one, the pod has offers, and is judged by them; HAMi's parts are always beside one."""
    annotated = pod(annotations={"gpu-fraction": "0.5"})
    assert actor(annotated, asked=False) is FRACTION
    assert actor(annotated) is SHARING
    by_name = pod(containers=[{"resources": {"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}}}])
    assert actor(by_name) is SHARING
    assert actor(by_name, asked=False) is PLAIN


@pytest.mark.parametrize("name", SHARED_BY_NAME)
def test_a_part_by_name_is_chosen_no_nodes(name: str) -> None:
    """HAMi's and Volcano's names, in whichever container."""
    other = {"resources": {"requests": {name: 1}}}
    assert actor(pod(containers=[{"resources": {"limits": {"nvidia.com/gpu": 1}}}, other])) is SHARING


@pytest.mark.parametrize(
    "key",
    [
        "gpu-fraction-container-name", "gpu-memory.limit", "gpu-sm-percentage", "nvidia.com/use-gputype", "nvidia.com/nouse-gputype",
        "nvidia.com/use-gpuuuid", "nvidia.com/vgpu-mode", "volcano.sh/vgpu-mode", "hami.io/gpu-scheduler-policy",
    ],
)  # fmt: skip
def test_a_word_to_a_sharing_scheduler_makes_no_fraction(key: str) -> None:
    """Beside a GPU no default chooses nodes then; nobody is denied for it, and alone it asks for nothing."""
    one = pod(annotations={key: "x"})
    assert actor(one) is SHARING
    assert actor(one, asked=False) is PLAIN
    assert not is_fraction(one)
