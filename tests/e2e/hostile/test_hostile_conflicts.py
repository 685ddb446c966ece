"""Policies that contradict each other, and templates that are not there, come late, or go while they are in use."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.hostile.cluster_with_guardrails import Hostile, hostile, id_of, written
from tests.e2e.hostile.policies_of_owners import own, policy
from tests.testcluster.addons.berth import PROBE
from tests.testcluster.controlplane.api import Raw, Reply

__all__ = ["hostile", "written"]
GRACE = 77
LATE = policy("GPUNodeTemplate", "late", {"labels": {"late-pool": "a"}, "taints": [{"key": "late-pool", "value": "a"}]})
CLOSED = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "closed"}}}
GRANT = policy("ClusterGPUPolicy", "hostile-late", {"mode": "Enforce", "match": CLOSED, "allow": {"nodeTemplates": ["late"]}})


@pytest.fixture
def late(hostile: Hostile) -> Iterator[None]:
    """The template may be granted; it is not there yet."""
    hostile.cluster.api.create(GRANT)
    yield
    for value in (GRANT, LATE):
        hostile.cluster.api.delete(value)


def write(hostile: Hostile, written: list[Raw], *values: Raw) -> None:
    """As the editor, and known to the replica."""
    for value in values:
        hostile.editor.create(value)
        written.append(value)
    hostile.until(*map(id_of, values))


def probe(hostile: Hostile) -> Reply:
    """A pod for one GPU in the namespace closed, on dry run."""
    return hostile.cluster.api.try_create(PROBE, "closed", dry_run=True)


def test_policies_that_leave_nothing(hostile: Hostile, written: list[Raw]) -> None:
    """Two policies of a namespace that admit no GPU together: the denial says that it is no fault of the pod, and names both."""
    first, second = (own("closed", {"require": {"families": {"in": [family]}}}, f"only-{family}") for family in ("ampere", "hopper"))
    write(hostile, written, first)
    assert probe(hostile).ok
    write(hostile, written, second)
    denied = probe(hostile)
    assert denied.status == 403
    assert "BERTH-122: only-ampere (families in [ampere]) and only-hopper (families in [hopper]) together allow no GPU" in denied.message
    assert "a policy conflict, not a pod error" in denied.message
    hostile.others_are_as_before("closed")


def test_a_policy_that_contradicts_the_guard(hostile: Hostile, written: list[Raw]) -> None:
    """Nothing is won by it: no GPU is left, and both are named."""
    write(hostile, written, own("closed", {"require": {"families": {"in": ["turing"]}}}, "only-turing"))
    denied = probe(hostile)
    assert denied.status == 403
    assert "a policy conflict, not a pod error" in denied.message
    assert all(name in denied.message for name in ("hostile-closed (families in [", "only-turing (families in [turing])")), denied.message
    hostile.others_are_as_before("closed")


def test_defaults_that_contradict(hostile: Hostile, written: list[Raw]) -> None:
    """Two defaults of one namespace on one axis: neither acts, the pod is admitted, and the warning names both."""
    values = [own("closed", {"default": {"families": {"in": [name]}}}, f"likes-{name}") for name in ("ampere", "hopper")]
    write(hostile, written, *values)
    reply = probe(hostile)
    assert reply.ok, reply.message
    text = " ".join(reply.warnings)
    assert all(f"likes-{name}" in text for name in ("ampere", "hopper")), reply.warnings
    assert reply.body["spec"].get("affinity") == hostile.before["closed"][0].body["spec"].get("affinity")
    hostile.others_are_as_before("closed")


def test_a_template_comes_late_and_goes_early(hostile: Hostile, written: list[Raw], late: None) -> None:
    """While it is not there the policy acts in all else, and says so; from when it comes it is whole; deleted in use, as before."""
    write(hostile, written, own("closed", {"default": {"nodeTemplate": "late", "gracePeriod": f"{GRACE}s"}}, "wants-late"))
    for there in (False, True, False, True):
        if there:
            hostile.cluster.api.create(LATE)
        elif probed(hostile):
            hostile.cluster.api.delete(LATE)
        hostile.cluster.wait_for(lambda there=there: probed(hostile) is there, f"the template to be there: {there}")  # type: ignore[misc]
        reply = probe(hostile)
        assert reply.body["spec"]["terminationGracePeriodSeconds"] == GRACE
        assert ("BERTH-204" in warnings_of(hostile)) is not there
    hostile.others_are_as_before("closed")


def warnings_of(hostile: Hostile) -> str:
    """What the replica remarks, for the platform team, about a pod that is created now: a dry run is in no log."""
    before = len(hostile.replica.events("decision"))
    pod = hostile.cluster.api.create({**PROBE, "metadata": {"generateName": "said-"}}, "closed")
    hostile.cluster.api.delete(pod, grace=0)
    found = hostile.cluster.wait_for(lambda: hostile.replica.events("decision")[before:], "the decision to be logged")
    return json.dumps([one["remarks"] for one in found])


def probed(hostile: Hostile) -> bool:
    """Whether a pod is sent to the template's nodes."""
    reply = probe(hostile)
    assert reply.ok, reply.message
    return "late-pool" in json.dumps(reply.body["spec"])
