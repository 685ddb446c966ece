"""Actors: how rows of the table meet, and by what a pod is told to be in one. The cells are tests/cases/actors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.actor import (
    CLAIMED,
    DAEMON,
    FLAVORED,
    FRACTION,
    MIRRORED,
    PLACED,
    PLAIN,
    QUEUED,
    SERVICE,
    Actor,
    actor_of,
    meet,
    workloads_of,
)
from policies.pod import Pod
from tests import golden

CATALOG = golden.catalog_with()
ROWS = (PLAIN, SERVICE, DAEMON, PLACED, MIRRORED, QUEUED, FLAVORED, FRACTION, CLAIMED)
ORDER = {
    "affinity": ("no", "judge", "write"),
    "resources": ("no", "repair", "yes"),
    "grace": ("no", "named", "yes"),
    "disruption": ("no", "named", "yes"),
}


@given(st.sampled_from(ROWS), st.sampled_from(ROWS))
def test_of_the_edits_the_least_of_the_refusals_the_most(first: Actor, second: Actor) -> None:
    """In either order."""
    met = meet(first, second)
    for field, order in ORDER.items():
        least = min(order.index(getattr(first, field)), order.index(getattr(second, field)))
        assert order.index(getattr(met, field)) == least == order.index(getattr(meet(second, first), field))
    assert met.tolerations is (first.tolerations and second.tolerations)
    assert met.refuses == first.refuses | second.refuses


def pod(kind: str = "", api: str = "apps/v1", labels: dict[str, str] | None = None, **spec: Any) -> Pod:
    owners = [{"kind": kind, "apiVersion": api, "controller": True}] if kind else []
    return Pod({"metadata": {"ownerReferences": owners, "labels": labels or {}}, "spec": spec})


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
        ({"kueue.x-k8s.io/pod-group-name": "g"}, "", ("kueue",), "judge"),
        ({"kueue.x-k8s.io/pod-group-name": "g"}, "", ("slurm-bridge",), "write"),
        ({"kueue.x-k8s.io/queue-name": "q"}, "", ("kueue",), "write"),
        ({}, "slurm-bridge-scheduler", ("slurm-bridge",), "judge"),
        ({}, "slurm-bridge-scheduler", (), "write"),
        ({}, "kai-scheduler", ("kueue", "slurm-bridge"), "write"),
    ],
)
def test_only_a_queue_that_is_in_use_takes_placement_over(
    labels: dict[str, str], scheduler: str, queues: tuple[str, ...], affinity: str
) -> None:
    """A label or a scheduler's name alone takes nobody out of the guardrail."""
    one = pod(labels=labels, schedulerName=scheduler or None)
    assert actor_of(one, CATALOG, queues, asked=True).affinity == affinity


def test_a_claim_beside_a_resource_is_a_plain_pod() -> None:
    """The row of claims is for pods that ask for nothing else."""
    one = pod(resourceClaims=[{"name": "g", "resourceClaimName": "x"}])
    assert actor_of(one, CATALOG, (), asked=True) is PLAIN
    assert actor_of(one, CATALOG, (), asked=False) is CLAIMED
