"""The screen "Policies": the list, one policy, one namespace."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import Any

import pytest

from analysis.effective.effective import effective
from analysis.effective.effective_probe import PodKind
from console.world.scope import EVERYTHING, ListableNamespaces, Scope
from policies.policy import API_VERSION
from tests.support.console.asked import asked
from tests.support.console.worlds import OPTIONS, world
from tests.support.recorded import eks

BRAKED = replace(OPTIONS, max_mode="Audit")


def policy(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": spec}


def test_every_policy_is_listed_with_what_it_means() -> None:
    """Each object has a row, with the line that its status has."""
    found = world(eks.objects())
    text = html.unescape(asked(found, "/policies").text)
    for key, finding in found.conditions.items():
        assert key[2] in text
        assert " ".join(finding.what.split()) in text


def test_what_is_amiss_comes_first() -> None:
    """A policy that can't be understood and two that leave nothing are told, before those that are well."""
    found = world(
        eks.objects(),
        [
            policy("a-good", mode="Enforce", default={"acceleratorTaints": "Tolerate"}),
            policy("b-wrong", mode="Enforce", require={"families": {"in": ["hoper"]}}),
            policy("c-hopper", mode="Enforce", require={"families": {"in": ["hopper"]}}),
            policy("d-turing", mode="Enforce", require={"families": {"in": ["turing"]}}),
        ],
    )
    text = html.unescape(asked(found, "/policies").text)
    assert 'did you mean "hopper"?' in text
    assert text.index("b-wrong") < text.index("a-good")
    assert text.index("c-hopper") < text.index("a-good")
    one = html.unescape(asked(found, "/policies/one", name="ClusterGPUPolicy/b-wrong").text)
    assert "This policy is not accepted" in one
    assert "it has no effect" in one


def test_with_the_brake_on_every_page_says_what_acts() -> None:
    """The mode that acts in the list and on the page of a policy, with the reason of Ready; the foot of each page names the cap."""
    found = world(eks.objects(), [policy("strict", mode="Enforce", require={"gpusPerPod": {"max": 1}})], options=BRAKED)
    pages: list[tuple[str, dict[str, Any]]] = [("/policies", {}), ("/policies/one", {"name": "ClusterGPUPolicy/strict"})]
    for path, fields in pages:
        text = html.unescape(asked(found, path, **fields).text)
        assert "All policies are capped at Audit" in text
        assert ">Enforce<" not in text
    assert "the server's --max-mode (maxMode of the chart) caps mode Enforce" in text
    assert "All policies are capped" not in asked(world(eks.objects()), "/policies").text


def test_a_namespace_shows_what_acts() -> None:
    """Every row of `berth effective` is there, and with another kind of pod those of it."""
    found = world(eks.objects())
    looks: list[tuple[dict[str, Any], PodKind]] = [({}, PodKind()), ({"workload": "Job", "gpus": "8"}, PodKind(workload="Job", gpus=8))]
    for fields, kind in looks:
        text = html.unescape(asked(found, "/policies/namespace", namespace="research", **fields).text)
        rows = effective(found.snapshot.facts_for("research"), kind).look.rows
        assert rows
        assert [row.field for row in rows if row.field not in text or " ".join(row.text.split()) not in text] == []


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"namespace": "nowhere"}, 404),
        ({"namespace": "research", "gpus": "many"}, 400),
        ({"namespace": "research", "workload": "Jbo"}, 400),
    ],
)
def test_what_cannot_be_shown_is_an_answer(fields: dict[str, Any], status: int) -> None:
    """A namespace that does not exist, and fields that make no sense."""
    assert asked(world(eks.objects()), "/policies/namespace", **fields).status == status


def test_rights_bound_what_is_named() -> None:
    """Who may list no guardrails sees none; who may list them alone sees no policy of a namespace."""
    metadata = {"name": "secret-own", "namespace": "web"}
    own = {"apiVersion": API_VERSION, "kind": "GPUPolicy", "metadata": metadata, "spec": {"mode": "Audit"}}
    found = world(eks.objects(), [policy("secret-guard", mode="Enforce"), own])
    web = Scope(who="ada", pods=ListableNamespaces(names=frozenset({"web"})), own_policies=ListableNamespaces(names=frozenset({"web"})))
    guards = Scope(who="bob", cluster_policies=True)
    assert "secret-own" in asked(found, "/policies", web).text
    assert "secret-guard" not in asked(found, "/policies", web).text
    assert "secret-own" not in asked(found, "/policies", guards).text
    assert asked(found, "/policies/one", web, name="ClusterGPUPolicy/secret-guard").status == 404
    assert asked(found, "/policies/namespace", web, namespace="web").status == 404
    assert asked(found, "/policies/namespace", EVERYTHING, namespace="web").status == 200


def test_pods_are_counted_of_namespaces_whose_pods_may_be_listed() -> None:
    """Who may list a guardrail and no pods learns no number of pods of others."""
    found = world(eks.objects(), [policy("guard", mode="Enforce", default={"acceleratorTaints": "Tolerate"})])
    every = found.ledger.totals()["ClusterGPUPolicy/guard"].pods
    web = sum(pod.stored.namespace == "web" for pod in found.ledger.pods.values() if not pod.stored.template)
    assert 0 < web < every
    numbers = {EVERYTHING: every, Scope(who="ada", cluster_policies=True): 0}
    numbers[Scope(who="bob", cluster_policies=True, pods=ListableNamespaces(names=frozenset({"web"})))] = web
    for scope, number in numbers.items():
        assert f'<td class="n">{number}</td>' in asked(found, "/policies", scope).text
