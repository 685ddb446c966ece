"""The API server, by its own code, calls Berth for exactly what the engine judges, and no condition ever errors."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from registration.entries import ALWAYS, InstallChoices
from tests.support.calls.expected_calls import CHANGED, GPU_POD, LIMIT_OF_ONE, MADE, NAMED, NODE, NOTHING, pod_with, wanted
from tests.support.calls.webhook_dispatch import NAMESPACE, AdmissionRequest, judge
from tests.support.counts import count
from tests.support.generators.random_fields import chance
from tests.support.generators.random_oddities import odd_pod
from tests.support.generators.random_worlds import catalog
from tests.support.generators.written_claims import claim, exactly, first_of

Raw = dict[str, Any]
REVIEWS = Path(__file__).parent.parent / "reviews"


def asked_by(review: Path) -> AdmissionRequest:
    request = json.loads(review.read_text())["request"]
    resource = request["resource"]
    return AdmissionRequest(
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
    _, answers = judge(asked, namespaces=sorted({one.namespace for one in asked}))
    assert [(one.called, dict(one.errors)) for one in answers] == [(wanted(one.object), {}) for one in asked]
    assert {one.called for one in answers} == {NAMED, NOTHING}


GROUPS = (("system:authenticated",), NODE, ())


def test_generated_pods_as_the_api_server_decodes_them() -> None:
    """Every pod that the engine judges, by name or otherwise, no mirror pod, nothing else, and never an error."""
    random = Random(1)
    asked = [AdmissionRequest(object=odd_pod(random, canonical=False), groups=random.choice(GROUPS)) for _ in range(count(800, 20000))]
    _, answers = judge(asked)
    decoded = [(one.groups, answer) for one, answer in zip(asked, answers, strict=True) if not answer.undecodable]
    assert len(decoded) > 0.7 * len(answers)
    for groups, one in decoded:
        assert (one.called, one.errors) == (wanted(one.object, groups=groups), {}), one.object
    assert min(sum(one.called == each for _, one in decoded) for each in (NAMED, NOTHING)) > 0.03 * len(decoded)


def test_generated_pods_with_every_null() -> None:
    """Null and absent read alike, and an amount that is no quantity asks."""
    random = Random(2)
    asked = [AdmissionRequest(object=odd_pod(random, canonical=True), typed=False) for _ in range(count(800, 20000))]
    _, answers = judge(asked)
    for one, answer in zip(asked, answers, strict=True):
        assert (answer.called >= wanted(one.object), answer.errors) == (True, {}), one.object


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
def test_plain_pods_are_nobody_s_business(*, typed: bool, operation: str) -> None:
    """However little is in them: no call, and no condition that errors, which at Fail would deny a plain pod."""
    pods = [{"apiVersion": "v1", "kind": "Pod", **parts} for parts in PLAIN.values()]
    old = None if operation == "CREATE" else {"apiVersion": "v1", "kind": "Pod", "spec": {"tolerations": [{"operator": "Exists"}]}}
    _, answers = judge([AdmissionRequest(object=pod, old=old, operation=operation, typed=typed) for pod in pods])
    assert {name: (one.called, dict(one.errors)) for name, one in zip(PLAIN, answers, strict=True)} == dict.fromkeys(PLAIN, (NOTHING, {}))


LARGE = {
    "containers": pod_with(201, ["cpu"]),
    "init containers": {"spec": {"containers": [], "initContainers": pod_with(201, ["cpu"])["spec"]["containers"]}},
    "names": pod_with(1, [f"example.com/device-{number:02}" for number in range(17)]),
}


@pytest.mark.parametrize("what", LARGE)
def test_a_pod_that_is_too_large_to_be_walked_is_sent(what: str) -> None:
    """Berth reads it, which no budget keeps from it."""
    (answer,) = judge([AdmissionRequest(object={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, **LARGE[what]})])[1]
    assert (answer.called, dict(answer.errors)) == (NAMED, {})


# --- what is never sent ------------------------------------------------------------------------------------------------


def test_excluded_namespaces() -> None:
    """Whatever asks for a GPU in the control plane's, Berth's own and a named namespace never waits; a name that is not there is judged."""
    outside, inside = [*ALWAYS, "berth-system", "gpu-operator"], ["nvidia-gpu-operator", NAMESPACE]
    chosen = InstallChoices(excluded=(*ALWAYS, "gpu-operator"))
    asked = [AdmissionRequest(object=GPU_POD, namespace=name) for name in (*outside, *inside)]
    _, answers = judge(asked, namespaces=[*outside, *inside], chosen=chosen)
    assert [one.called for one in answers] == [NOTHING] * len(outside) + [NAMED] * len(inside)


def test_a_name_that_nobody_listed() -> None:
    """Called for once it is named."""
    asked = [AdmissionRequest(object=pod_with(1, ["acme.example/card"]))]
    assert [judge(asked, chosen=InstallChoices(names=names))[1][0].called for names in ((), ("acme.example/card",))] == [NOTHING, NAMED]


@pytest.mark.parametrize("subresource", ["status", "binding", "eviction", "ephemeralcontainers"])
def test_subresources(subresource: str) -> None:
    """A pod that runs can finish, be bound and be moved while Berth is down."""
    tolerating = {**GPU_POD, "spec": {**GPU_POD["spec"], "tolerations": [{"operator": "Exists"}]}}
    operations = ("CREATE", "UPDATE")
    _, answers = judge([AdmissionRequest(object=tolerating, old=GPU_POD, operation=o, subresource=subresource) for o in operations])
    assert [one.called for one in answers] == [NOTHING, NOTHING]


def test_a_mirror_pod_is_known_by_who_makes_it() -> None:
    """A node's own; the annotation alone, which anybody may write, excludes nothing."""
    mirror = {**GPU_POD, "metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}}
    by_claim = {**pod_with(1, [], resourceClaims=[{"name": "g", "resourceClaimName": "g"}]), "metadata": mirror["metadata"]}
    asked = [AdmissionRequest(object=pod, groups=groups) for pod in (mirror, by_claim) for groups in (NODE, ("system:authenticated",))]
    _, answers = judge(asked)
    assert [(one.called, dict(one.errors)) for one in answers] == [(NOTHING, {}), (NAMED, {})] * 2


# --- claims ------------------------------------------------------------------------------------------------------------

OF_CLAIMS: list[tuple[Raw, bool]] = [
    (claim(exactly()), True),
    (claim(exactly(), template=True), True),
    (claim(exactly(), api="v1beta2"), True),
    (claim({"name": "gpu", **exactly()["exactly"]}, api="v1beta1"), True),
    (claim(exactly("dra.net"), first_of(exactly("dra.net"), exactly("acme"))), True),
    (claim(exactly("dra.net")), False),
    (claim(exactly("dra.net"), template=True), False),
    (claim({"name": "nic", **exactly("dra.net")["exactly"]}, api="v1beta1"), False),
    (claim(first_of(exactly("dra.net"), exactly("compute-domain.nvidia.com"))), False),
    (claim(), False),
    (claim(*[exactly("compute-domain.nvidia.com")] * 32), False),
]


def of_claim(made: Raw, **more: Any) -> AdmissionRequest:
    kind, (group, version) = made["kind"], made["apiVersion"].split("/")
    return AdmissionRequest(object=made, resource=(group, version, f"{kind.lower()}s"), **more)


@pytest.mark.parametrize("typed", [True, False], ids=["typed", "untyped"])
def test_claims_for_what_may_be_an_accelerator(*, typed: bool) -> None:
    """Made anew, in every version; not those for classes that are named like drivers of other devices."""
    _, answers = judge([of_claim(made, typed=typed) for made, _ in OF_CLAIMS])
    assert [(one.called, dict(one.errors)) for one in answers] == [(MADE if called else NOTHING, {}) for _, called in OF_CLAIMS]


def test_an_update_of_a_claim_is_sent_where_its_spec_would_change() -> None:
    """As one that is applied again does; its status, finalizers and labels never wait for Berth."""
    made, other = claim(exactly()), claim(exactly(count=2))
    asked = [
        of_claim(made, old=made, operation="UPDATE"),
        of_claim(made, old={**made, "metadata": {"name": "gpus", "labels": {"a": "b"}}}, operation="UPDATE"),
        of_claim(made, old=other, operation="UPDATE"),
        of_claim(made, old=other, operation="UPDATE", subresource="status"),
    ]
    assert [one.called for one in judge(asked)[1]] == [NOTHING, NOTHING, {"mutate.claims-made"}, NOTHING]


def test_the_largest_claims_are_within_the_budget() -> None:
    """32 requests of 8 ways each, as many as the API server takes: every class is looked at where none is called for."""
    largest = claim(*[first_of(*[exactly("compute-domain.nvidia.com")] * 8)] * 32)
    _, answers = judge([of_claim(largest, typed=False, cost=True)])
    assert (answers[0].called, dict(answers[0].errors)) == (NOTHING, {})
    assert 0 < answers[0].cost["validate.claims-made"] < 0.02 * LIMIT_OF_ONE


NULLS: list[Raw] = [
    {"spec": None},
    {"spec": {"devices": None}},
    {"spec": {"devices": {"requests": None}}},
    {"spec": {"spec": None}},
    {"spec": {"devices": {"requests": [{"exactly": None}, {"firstAvailable": None}, {"deviceClassName": None}]}}},
]


def test_no_condition_about_claims_errors() -> None:
    """However little is in one: at Fail an error would deny it."""
    asked = [of_claim({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **parts}, typed=False) for parts in NULLS]
    assert [dict(one.errors) for one in judge(asked)[1]] == [{}] * len(NULLS)


def test_without_claims_there_is_neither_entry_nor_condition() -> None:
    """--claims Off: pods by claim alone and claims are nobody's business, a fraction by annotation waits as named devices do."""
    by_claim = pod_with(1, [], resourceClaims=[{"name": "g", "resourceClaimName": "g"}])
    fraction = {**pod_with(1, []), "metadata": {"name": "p", "annotations": {"gpu-fraction": "0.5"}}}
    asked = [
        AdmissionRequest(object=by_claim),
        AdmissionRequest(object=fraction),
        AdmissionRequest(object=GPU_POD),
        of_claim(claim(exactly())),
        AdmissionRequest(object=pod_with(1, [])),
    ]
    invalid, answers = judge([*asked, AdmissionRequest(object=asked[0].object, cost=True)], chosen=InstallChoices(claims="Off"))
    assert invalid == []
    assert [(one.called, dict(one.errors)) for one in answers[:5]] == [(called, {}) for called in (NOTHING, NAMED, NAMED, NOTHING, NOTHING)]
    entries = {"mutate.pods", "validate.pods", "mutate.updates", "validate.updates", "advise.workloads", "advise.operators"}
    assert set(answers[5].cost) == entries


# --- updates -----------------------------------------------------------------------------------------------------------

MARKS = [(p.where, p.key) for p in catalog().protections]


def updates(random: Random, number: int) -> Iterator[AdmissionRequest]:
    """Some change tolerations, some a mark of protection, all something else."""
    for _ in range(number):
        new = odd_pod(random, canonical=True)
        old = copy.deepcopy(new)
        new["x-top"] = [2]
        if chance(random, 0.4):
            taint = {"key": random.choice("ab"), "operator": "Exists"}
            new["spec"]["tolerations"] = [*(new["spec"].get("tolerations") or ()), taint]
        elif chance(random, 0.2):
            old["spec"]["tolerations"] = []
        if chance(random, 0.3):
            where, key = random.choice([*MARKS, ("annotations", "a"), ("labels", "b")])
            one = random.choice([new, old])
            metadata = one["metadata"] = {**(one.get("metadata") or {})}
            metadata[where] = {**(metadata.get(where) or {}), key: random.choice(["true", "false", "24h"])}
        yield AdmissionRequest(object=new, old=old, operation="UPDATE")


def judged_parts(pod: Raw) -> list[Any]:
    """What is judged of a pod that is there."""
    metadata = pod.get("metadata") or {}
    return [(pod["spec"].get("tolerations") or []), *((metadata.get(where) or {}).get(key) for where, key in MARKS)]


def test_an_update_is_judged_only_where_something_that_is_judged_changed() -> None:
    """A finalizer that goes, a gate that lifts, a label: nobody is asked."""
    asked = list(updates(Random(3), count(400, 10000)))
    _, answers = judge(asked)
    for one, answer in zip(asked, answers, strict=True):
        if not answer.undecodable:
            changed = judged_parts(one.object) != judged_parts(one.old or {})
            assert (answer.called, answer.errors) == (CHANGED if changed and wanted(answer.object) else NOTHING, {}), one
    assert sum(answer.called == CHANGED for answer in answers) > 0.1 * len(answers)


def test_each_mark_of_protection_is_judged_when_it_is_added_later() -> None:
    """Of a pod with a device; a plain pod may have what it likes."""
    before = [(where, key, pod) for where, key in MARKS for pod in (GPU_POD, pod_with(1, ["cpu"]))]
    marked = [{**pod, "metadata": {"name": "p", where: {key: "true"}}} for where, key, pod in before]
    _, answers = judge([AdmissionRequest(object=new, old=old, operation="UPDATE") for new, (_, _, old) in zip(marked, before, strict=True)])
    assert [(mark, one.called) for mark, one in zip(before, answers, strict=True)] == [
        (mark, CHANGED if mark[2] is GPU_POD else NOTHING) for mark in before
    ]


def test_amounts_that_are_changed_while_a_pod_runs_are_judged() -> None:
    """``/resize`` of a pod with a device, and no other."""
    plain = pod_with(1, ["cpu"])
    asked = [AdmissionRequest(object=pod, old=pod, operation="UPDATE", subresource="resize") for pod in (GPU_POD, plain)]
    assert [(one.called, dict(one.errors)) for one in judge(asked)[1]] == [(CHANGED, {}), (NOTHING, {})]


def test_the_recorded_update_changed_a_label() -> None:
    """What kube-apiserver sent for every update is no call any more."""
    one = asked_by(REVIEWS / "pods-update-amd-bench.json")
    _, answers = judge([one], namespaces=[one.namespace])
    assert (answers[0].called, answers[0].errors) == (NOTHING, {})
