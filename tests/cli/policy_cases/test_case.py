"""What a case file may say, and what is said of one that can't be used."""

from __future__ import annotations

from typing import Any

import pytest

from cli.policy_cases import case as cases
from cli.policy_cases.case import DEFAULTS, Case
from policies.document import Document

GOOD: dict[str, Any] = {"why": "w", "policies": [], "pod": {}, "expect": {}}


def errors(value: Any, **defaults: Any) -> list[str]:
    """The lines on a document that is no case."""
    found = cases.read_case(Document(file="c.yaml", value=value), {**DEFAULTS, **defaults})
    assert isinstance(found, list)
    return [str(error) for error in found]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"polices": []}, 'c.yaml, polices: unknown field "polices"; did you mean "policies"?'),
        ({"why": " "}, 'why: the text " " is not a sentence that says what the case is there for'),
        ({"pod": None}, "c.yaml: must have pod or review or claim; write pod: {...}"),
        ({"claim": {"kind": "ResourceClaim"}}, "c.yaml: must have only one of pod and review and claim; remove one"),
        ({"claim": {"kind": "Claim"}, "pod": None}, "c.yaml, claim.kind: must be ResourceClaim or ResourceClaimTemplate"),
        ({"pod": "trainer"}, 'c.yaml, pod: must be a map, found the text "trainer"; write pod: {...}'),
        ({"policies": [5]}, "c.yaml, policies[0]: must be an object, or a path relative to this file; found the number 5"),
        ({"facts": None}, "c.yaml, facts: must be an object, or a path"),
        ({"platforms": "gke"}, 'c.yaml, platforms: must be a list, found the text "gke"; write platforms: [gke]'),
        ({"queues": ["kueu"]}, 'c.yaml, queues[0]: must be one of kueue, slurm-bridge, found the text "kueu"; did you mean "kueue"?'),
        ({"phase": "both"}, "c.yaml, phase: must be one of mutate, validate"),
        ({"maxMode": "audit"}, "c.yaml, maxMode: must be one of Audit, Warn, Enforce"),
        ({"namespace": 5}, "c.yaml, namespace: must be text, found the number 5; write it in quotes"),
        ({"defaults": "no"}, "c.yaml, defaults: must be true or false"),
        ({"expect": []}, "c.yaml, expect: must be a map, found a list; write expect: {} and let berth test --write fill it in"),
        ({"expect": {"edit": []}}, 'c.yaml, expect.edit: unknown field "edit"; did you mean "edits"?'),
        ({"expect": {"edits": {}}}, "c.yaml, expect.edits: must be a list, found a map; write edits: [...]"),
        ({"expect": {"uncounted": True}}, "c.yaml, expect.uncounted: must be a whole number, found the boolean true; write uncounted: 1"),
        ({"expect": {"bad": 1}}, "c.yaml, expect.bad: must be text, found the number 1; write it in quotes"),
    ],
)
def test_a_mistake_is_told_with_its_place(change: dict[str, Any], wanted: str) -> None:
    """And with what to write instead."""
    found = errors({**GOOD, **change})
    assert len(found) == 1
    assert wanted in found[0]


def test_all_mistakes_are_told_at_once() -> None:
    """So that one run is enough."""
    assert len(errors({"why": "", "expect": {"edits": 1}, "user": 1})) == 5


def test_what_is_missing_is_told() -> None:
    """Policies may come from the command line instead; an expectation is written as empty first."""
    without = {key: value for key, value in GOOD.items() if key not in ("policies", "expect")}
    policies, expect = errors(without)
    assert "policies is missing; write policies: [../policies]" in policies
    assert "expect is missing; write expect: {}" in expect
    (only,) = errors(without, policies=["p"])
    assert "expect" in only


@pytest.mark.parametrize("value", [None, [], "text", {"replicas": 3}])
def test_a_document_that_is_no_case_says_so(value: Any) -> None:
    """A values file, a list, text: one line, not one for each key."""
    (only,) = errors(value)
    assert "why, policies, pod and expect" in only


def test_objects_are_no_cases() -> None:
    """A policy may stand in the same folder."""
    assert cases.is_object(Document(file="f", value={"apiVersion": "v1", "kind": "Namespace"}))
    assert not cases.is_object(Document(file="f", value={"kind": "Namespace"}))


def test_paths_start_from_the_file() -> None:
    """As seen from where the command is typed."""
    found = cases.read_case(Document(file="a/b/c.yaml", value={**GOOD, "policies": "../p"}), DEFAULTS)
    assert isinstance(found, Case)
    assert [found.path(path) for path in found.items("policies")] == ["a/p"]
