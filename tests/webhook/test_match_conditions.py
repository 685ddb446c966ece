"""The API server, by its own code, calls Berth for exactly what the engine judges, and no condition ever errors."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.counts import count
from tests.random_fields import chance
from tests.random_oddities import odd_pod
from tests.random_worlds import catalog
from tests.webhook.api_server import NAMESPACE, Asked, judge
from tests.webhook.calls_wanted import CHANGED, GPU_POD, LIMIT_OF_ONE, NAMED, NOTHING, OTHERS, pod_with, wanted

Raw = dict[str, Any]
REVIEWS = Path(__file__).parent.parent / "reviews"


def asked_by(review: Path) -> Asked:
    request = json.loads(review.read_text())["request"]
    resource = request["resource"]
    return Asked(
        object=request["object"],
        old=request["oldObject"],
        operation=request["operation"],
        namespace=request["namespace"],
        resource=(resource["group"], resource["version"], resource["resource"]),
    )


# --- pods --------------------------------------------------------------------------------------------------------------


def test_recorded_pods() -> None:
    """What kube-apiserver really sent is called for as the engine judges it."""
    asked = [asked_by(review) for review in sorted(REVIEWS.glob("pods-create-*.json"))]
    _, told = judge(asked, namespaces=sorted({one.namespace for one in asked}))
    assert [(one.called, dict(one.errors)) for one in told] == [(wanted(one.object), {}) for one in asked]
    assert {one.called for one in told} == {NAMED, OTHERS, NOTHING}


def test_generated_pods_as_the_api_server_decodes_them() -> None:
    """Every pod that the engine judges, by name or otherwise, no mirror pod, nothing else, and never an error."""
    random = Random(1)
    asked = [Asked(object=odd_pod(random, canonical=False)) for _ in range(count(2000, 20000))]
    _, told = judge(asked)
    decoded = [one for one in told if not one.undecodable]
    assert len(decoded) > 0.7 * len(told)
    for one in decoded:
        assert (one.called, one.errors) == (wanted(one.object), {}), one.object
    assert min(sum(one.called == each for one in decoded) for each in (NAMED, OTHERS, NOTHING)) > 0.03 * len(decoded)


def test_generated_pods_with_every_null() -> None:
    """As custom resources come: null and absent read alike, and an amount that is no quantity asks."""
    random = Random(2)
    asked = [Asked(object=odd_pod(random, canonical=True), typed=False) for _ in range(count(2000, 20000))]
    _, told = judge(asked)
    for one, answer in zip(asked, told, strict=True):
        assert (answer.called, answer.errors) == (wanted(one.object), {}), one.object


PLAIN: dict[str, Raw] = {
    "nothing": {},
    "null spec": {"spec": None},
    "null metadata": {"metadata": None, "spec": {}},
    "null lists": {"spec": {"containers": None, "initContainers": None, "resourceClaims": None, "tolerations": None}},
    "null annotations": {"metadata": {"annotations": None}, "spec": {"containers": [{"name": "c"}]}},
    "no resources": {"spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}},
    "null resources": {"spec": {"containers": [{"name": "c", "resources": None}]}},
    "null limits": {"spec": {"containers": [{"name": "c", "resources": {"limits": None, "requests": None}}]}},
    "no limits": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}},
    "empty claims": {"spec": {"containers": [{"name": "c"}], "resourceClaims": []}},
}


@pytest.mark.parametrize("typed", [True, False], ids=["typed", "untyped"])
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_plain_pods_are_nobody_s_business(typed: bool, operation: str) -> None:
    """However little is in them: no call, and no condition that errors, which at Fail would refuse a plain pod."""
    pods = [{"apiVersion": "v1", "kind": "Pod", **parts} for parts in PLAIN.values()]
    old = None if operation == "CREATE" else {"apiVersion": "v1", "kind": "Pod", "spec": {"tolerations": [{"operator": "Exists"}]}}
    _, told = judge([Asked(object=pod, old=old, operation=operation, typed=typed) for pod in pods])
    assert {name: (one.called, dict(one.errors)) for name, one in zip(PLAIN, told, strict=True)} == dict.fromkeys(PLAIN, (NOTHING, {}))


USUAL = ["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/foo"]
EXTENDED = ["vpc.amazonaws.com/efa", "rdma/hca_shared_devices_a", "nvidia.com/gpumem", "smarter-devices/fuse", "github.com/fuse"]
OTHER_LETTER = [f"example.com/device-{number:02}" for number in range(12)]
SAME_LETTER = [f"nvidia.com/own-{number:02}" for number in range(12)]
"""as ``nvidia.com/mig-`` begins"""


def test_large_pods_are_within_the_budget() -> None:
    """Plain ones of 3,000 containers with 12 resources, 1,500 where the names begin like patterns, by limit and by request.

    The small count takes a tenth of each, and of the budget.
    """
    part = count(1, 10)
    claims = [{"name": "g", "resourceClaimName": "g"}]
    pods = [
        pod_with(300 * part, OTHER_LETTER),
        pod_with(150 * part, SAME_LETTER),
        pod_with(100 * part, EXTENDED, resourceClaims=claims),
        pod_with(100 * part, ["nvidia.com/gpu"]),
    ]
    _, told = judge([Asked(object=pod, cost=True) for pod in pods])
    assert [(one.called, dict(one.errors)) for one in told] == [(NOTHING, {}), (NOTHING, {}), (OTHERS, {}), (NAMED, {})]
    assert all(0 < cost < 0.08 * part * LIMIT_OF_ONE for one in told for cost in one.cost.values())


@pytest.mark.parametrize(("names", "units"), [(USUAL, 8), (OTHER_LETTER, 8), (SAME_LETTER, 20)], ids=["usual", "extended", "as a pattern"])
def test_what_an_amount_costs(names: list[str], units: int) -> None:
    """As the docstring of match_conditions says: 37 units for each container, so many for each amount, and 30 for the rest of a pod."""
    containers = 100
    _, told = judge([Asked(object=pod_with(containers, names), cost=True)])
    assert max(told[0].cost.values()) <= containers * (37 + units * 2 * len(names)) + 60


# --- what is never sent ------------------------------------------------------------------------------------------------


def test_excluded_namespaces() -> None:
    """Whatever asks for a GPU in the control plane's and the operators' own namespaces never waits for Berth."""
    namespaces = [*catalog().excluded_namespaces, NAMESPACE]
    _, told = judge([Asked(object=GPU_POD, namespace=name) for name in namespaces], namespaces=namespaces)
    assert [one.called for one in told] == [NOTHING] * (len(namespaces) - 1) + [NAMED]


@pytest.mark.parametrize("subresource", ["status", "binding", "eviction", "resize", "ephemeralcontainers"])
def test_subresources(subresource: str) -> None:
    """A pod that runs can finish, be bound and be moved while Berth is down."""
    tolerating = {**GPU_POD, "spec": {**GPU_POD["spec"], "tolerations": [{"operator": "Exists"}]}}
    operations = ("CREATE", "UPDATE")
    _, told = judge([Asked(object=tolerating, old=GPU_POD, operation=o, subresource=subresource) for o in operations])
    assert [one.called for one in told] == [NOTHING, NOTHING]


# --- updates -----------------------------------------------------------------------------------------------------------


def updates(random: Random, number: int) -> Iterator[Asked]:
    """Half change tolerations, all change something else."""
    for _ in range(number):
        new = odd_pod(random, canonical=True)
        old = copy.deepcopy(new)
        new["x-top"] = [2]
        if chance(random, 0.5):
            taint = {"key": random.choice("ab"), "operator": "Exists"}
            new["spec"]["tolerations"] = [*(new["spec"].get("tolerations") or ()), taint]
        elif chance(random, 0.2):
            old["spec"]["tolerations"] = []
        yield Asked(object=new, old=old, operation="UPDATE")


def test_an_update_is_judged_only_where_tolerations_changed() -> None:
    """A finalizer that goes, a gate that lifts, a label: nobody is asked."""
    asked = list(updates(Random(3), count(1000, 10000)))
    _, told = judge(asked)
    for one, answer in zip(asked, told, strict=True):
        if not answer.undecodable:
            changed = (one.object["spec"].get("tolerations") or []) != ((one.old or {})["spec"].get("tolerations") or [])
            assert (answer.called, answer.errors) == (CHANGED if changed and wanted(answer.object) else NOTHING, {}), one
    assert sum(answer.called == CHANGED for answer in told) > 0.1 * len(told)


def test_the_recorded_update_changed_a_label() -> None:
    """What kube-apiserver sent for every update is no call any more."""
    one = asked_by(REVIEWS / "pods-update-amd-bench.json")
    _, told = judge([one], namespaces=[one.namespace])
    assert (told[0].called, told[0].errors) == (NOTHING, {})
