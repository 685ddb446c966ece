"""What a namespace's own policies say, whatever it is, stays within what the cluster grants, and within the namespace."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from policies.policy import API_VERSION
from tests.e2e.hostile.cluster_with_guardrails import Hostile, hostile, id_of, key_of, put, written
from tests.e2e.hostile.laws import tolerations
from tests.e2e.hostile.policies_of_owners import CAP, EVERYWHERE, HOSTILE, POOL, SMUGGLED, own
from tests.e2e.poison import replica_log, undisturbed
from tests.support.counts import count, only_in_prove
from tests.testcluster.controlplane.api import Raw

__all__ = ["hostile", "written"]
MANY = count(60, 5_000)
"""policies in one namespace"""
NEW_NAMES = count(2, 40)
"""policies in one namespace, each with as many names that nobody knows as the schema takes"""
DEARER = 10
"""times the CPU of a review of others, at most"""
NAMES = 256
"""the most that a list takes"""


@pytest.mark.parametrize(
    ("what", "namespace"),
    [
        pytest.param(what, namespace, marks=() if namespace == "closed" or what == "everything" else only_in_prove)
        for what in HOSTILE
        for namespace in ("closed", "open")
    ],
)
def test_nothing_is_granted_beyond(hostile: Hostile, written: list[Raw], what: str, namespace: str) -> None:
    """Whatever an editor's policy asks for, pods get no toleration, template, grace or protection that the guard does not give.
    `make test` has all of it in the closed namespace, and the policy that asks for everything in the open one."""
    value = own(namespace, HOSTILE[what], f"w{list(HOSTILE).index(what)}")
    hostile.editor.create(value)
    written.append(value)
    hostile.until(id_of(value))
    assert hostile.granted_beyond(namespace) == []
    hostile.others_are_as_before(namespace)


def test_what_is_granted_acts(hostile: Hostile, written: list[Raw]) -> None:
    """The same policy in a namespace with grants gives them, and what is capped is capped: the test above looks at policies that act."""
    value = own(
        "open",
        {
            "default": {
                "nodeTemplate": "granted",
                "tolerate": [{"key": "team", "value": "mine"}],
                "gracePeriod": "24h",
                "protectFor": "Always",
            }
        },
        "granted",
    )
    hostile.editor.create(value)
    written.append(value)
    hostile.until(id_of(value))
    pod = hostile.created("open")[0].body
    before = tolerations(hostile.before["open"][0].body)
    added = {(one["key"], one["value"]) for one in tolerations(pod) if one not in before}
    assert added == {("team", "mine"), (POOL, "granted")}
    assert pod["spec"]["terminationGracePeriodSeconds"] == CAP
    assert f'"{POOL}"' in json.dumps(pod["spec"]["affinity"])


@pytest.mark.parametrize("what", SMUGGLED)
def test_fields_of_the_cluster_are_denied(hostile: Hostile, what: str) -> None:
    """In a GPUPolicy they are unknown to the API server; from a client that wants to hear of no mistake it drops them."""
    path = f"/apis/{API_VERSION}/namespaces/closed/gpupolicies"
    value = own("closed", SMUGGLED[what], "smuggled")
    strict = hostile.editor.call("POST", path, value, dryRun="All", fieldValidation="Strict")
    assert (strict.status, f"spec.{'match.' if what != 'allow' else ''}{what}" in strict.message) == (400, True)
    lax = hostile.editor.call("POST", path, value, dryRun="All", fieldValidation="Ignore")
    assert lax.status == 201
    assert what not in json.dumps(lax.body["spec"])


def test_nothing_is_granted_past_the_schema(hostile: Hostile) -> None:
    """Written straight into etcd, with all fields of the cluster's kind, under names of others: it gets no more, and acts nowhere else."""
    names = ("everywhere", "hostile-closed", "hostile-open")
    values = [own("closed", EVERYWHERE, name) for name in names]
    with put(hostile, {key_of(value): value for value in values}):
        assert hostile.granted_beyond("closed") == []
        hostile.others_are_as_before("closed")


def test_a_policy_acts_where_the_api_server_has_it(hostile: Hostile) -> None:
    """A value whose namespace is not that of its key in etcd acts in the one where the API server lists it, and in no other."""
    value = own("free", {"default": {"gracePeriod": "77s"}}, "moved")
    with put(hostile, {key_of(own("closed", {}, "moved")): value}):
        assert [one["metadata"]["namespace"] for one in hostile.cluster.api.list(API_VERSION, "GPUPolicy")] == ["free"]
        assert hostile.created("free")[0].body["spec"]["terminationGracePeriodSeconds"] == 77
        hostile.others_are_as_before("free")


def test_many_policies_in_one_namespace(hostile: Hostile) -> None:
    """Thousands of them, in every mode and all in conflict, change nothing for others, whose answers hardly cost more."""
    modes = ("Enforce", "Audit", "Warn")
    values = [own("closed", {**HOSTILE["everything"], "mode": modes[number % 3]}, f"many-{number}") for number in range(MANY)]
    _cost(hostile, values)


def test_new_names_cost_others_nothing(hostile: Hostile) -> None:
    """Policies full of instance families that nobody has heard of, each of which others would have to be compared with, are no burden."""
    families = [[f"n{number}x{index}" for index in range(NAMES)] for number in range(NEW_NAMES)]
    values = [own("closed", {"require": {"instanceFamilies": {"notIn": names}}}, f"new-{i}") for i, names in enumerate(families)]
    _cost(hostile, values)


def _cost(hostile: Hostile, values: Sequence[Raw]) -> None:
    """Written while reviews of pods in other namespaces go on. Fails where any is answered otherwise, or costs much more."""
    asked = undisturbed.questions(["bystander", "free"])
    before = undisturbed.answers(hostile.replica, asked)
    usual = undisturbed.cost(hostile.replica, asked)
    try:
        with undisturbed.watching([hostile.replica], asked, before) as threads:
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(hostile.editor.create, values))
            hostile.until(*map(id_of, values))
            inside = hostile.created("closed")
        now = undisturbed.cost(hostile.replica, asked)
    finally:
        hostile.cluster.api.delete_all(API_VERSION, "GPUPolicy", "closed")
        hostile.until(gone=[id_of(value) for value in values])
    seen = threads[0].seen
    print(f"{len(values)} policies in a namespace: others {now * 1000:.1f} ms of CPU ({usual * 1000:.1f} before);")
    print(f"in the namespace itself a creation takes {statistics.median(one.seconds for one in inside) * 1000:.0f} ms")
    assert seen.others[:3] == []
    assert (seen.away, replica_log.forged(hostile.replica.process.log)) == (0, [])
    assert now < DEARER * usual
