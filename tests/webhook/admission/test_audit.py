"""Audit is the same code path as Enforce, told in the answer: what is recorded of an audited policy is what it then does."""

from __future__ import annotations

import base64
import copy
import json
from dataclasses import replace
from typing import Any

from hypothesis import given

from analysis.reviews.review import answer_review
from policies.engine import evaluate
from tests.support.cases.reviews import review_of
from tests.support.generators.random_worlds import World, with_policies
from tests.support.generators.strategies import Case, audited, examples


def response(case: Case, world: World) -> dict[str, Any]:
    """What /mutate would send for the case's pod under these policies."""
    request = replace(case.request, phase="mutate", dry_run=False)
    sent: dict[str, Any] = answer_review(review_of(request), evaluate(request, world.snapshot.facts_for(request.namespace)))["response"]
    return sent


def in_mode(case: Case, mode: Any, *ids: str) -> World:
    """The case's world with the named policies, or all, in another mode."""
    policies = [replace(p, mode=mode) if not ids or p.id in ids else p for p in case.world.policy_set.policies]
    return with_policies(case.world, policies)


@examples(30, 20_000)
@given(audited())
def test_the_recorded_patch_is_the_patch_of_enforce(case: Case) -> None:
    """Each policy of the annotation, switched alone to Enforce, makes the server send just that patch or that denial."""
    for recorded in json.loads(response(case, case.world).get("auditAnnotations", {}).get("would", "[]")):
        enforced = response(case, in_mode(case, "Enforce", recorded["policy"]))
        sent = json.loads(base64.b64decode(enforced["patch"])) if "patch" in enforced else []
        assert recorded.get("patch", sent) == sent
        assert recorded.get("operations", len(sent)) == len(sent)
        assert {denial["code"] for denial in recorded["denials"]} <= {word[:9] for word in codes(enforced)}


def codes(sent: dict[str, Any]) -> list[str]:
    """The sentences of a denial, each led by its code."""
    message = sent.get("status", {}).get("message", "")
    return [line.removeprefix("- ") for line in message.splitlines()]


@examples(30, 20_000)
@given(audited())
def test_an_audited_pod_is_unchanged(case: Case) -> None:
    """With every policy in Audit the answer allows, patches nothing and warns of nothing, and the pod in the review is as it was."""
    before = copy.deepcopy(case.request.pod)
    sent = response(case, in_mode(case, "Audit"))
    assert set(sent) <= {"uid", "allowed", "auditAnnotations"}
    assert sent["allowed"] is True
    assert case.request.pod == before
