"""No sentence is data: with every template's words in the reverse order, all but the sentences stays as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from analysis.effective.effective import Effective, Look, effective
from analysis.effective.effective_probe import PodKind
from analysis.reviews import audience as warnings
from analysis.reviews import workload_advice
from analysis.reviews.review import ObjectRequest, ReviewError, answer_review
from kube.pod import PodError
from policies.engine import evaluate
from policies.messages import SHARED, TABLE
from policies.request import Phase, Request
from policies.verdict import MODES, Remark, Verdict, Violation
from telemetry.policy_metrics import tally
from tests.support.cases import golden
from tests.support.cases.reviews import review_of
from tests.support.generators import random_pods
from tests.support.generators.random_cluster import NAMESPACES
from tests.support.generators.random_worlds import World
from tests.support.generators.strategies import case_of
from webhook.admission import decision_cache

WORLDS = 20
REVIEWS = 4
"""of each world, in both phases and as a template of a Job"""
PHASES: tuple[Phase, ...] = ("mutate", "validate")


def reversed_words(template: str) -> str:
    """``{name} fits nowhere`` becomes ``nowhere fits {name}``."""
    return " ".join(reversed(template.split(" ")))


def scramble(monkeypatch: pytest.MonkeyPatch) -> None:
    for code, row in TABLE.items():
        words = {name: reversed_words(template) for name, template in row.templates.items()}
        monkeypatch.setitem(TABLE, code, replace(row, templates=words))
    for name, template in SHARED.items():
        monkeypatch.setitem(SHARED, name, reversed_words(template))


# --- what is told of a decision, without its sentences -----------------------------------------------------------------


def without_text(one: Violation | Remark) -> tuple[object, ...]:
    return one.code, one.found, one.rule, one.policies, one.path, one.fields


def codes(sentences: list[str]) -> list[str]:
    return [sentence[: len("BERTH-101")] for sentence in sentences]


def of_verdict(verdict: Verdict, review: Request, phase: Phase) -> dict[str, Any]:
    """What is decided, who hears what of it, what metrics and the log count it as."""
    response = answer_review(review, verdict, phase=phase)["response"]
    record = json.loads(decision_cache.decision_fields(verdict, phase, decision_cache.decision_word(verdict, phase)))
    return {
        "allowed": response["allowed"],
        "patch": response.get("patch"),
        "denied": [without_text(v) for v in verdict.violations],
        "would": [(w.policy, w.patch, [*map(without_text, w.violations)], [*map(without_text, w.remarks)]) for w in verdict.audit_outcomes],
        "warned": [without_text(r) for r in warnings.warned(verdict.remarks, verdict.violations, review.pod)],
        "platform": [without_text(r) for r in warnings.of_platform(verdict.remarks, review.pod)],
        "warnings": codes(response.get("warnings", [])),
        "counted": tally(phase, review.operation, verdict),
        "logged": [[entry["code"] for entry in record[key]] for key in ("denials", "remarks")],
    }


def of_workload(world: World, request: Request) -> list[str]:
    """The codes in the log line about a Job with this pod as its template."""
    metadata = request.pod.get("metadata")
    template = {"metadata": metadata if isinstance(metadata, dict) else {}, "spec": request.pod.get("spec")}
    asked = ObjectRequest(
        uid="u",
        operation="CREATE",
        namespace=request.namespace,
        user=request.user,
        api_version="batch/v1",
        kind="Job",
        name="j",
        value={"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}},
        dry_run=False,
    )
    found: list[str] = decision_cache.advice_fields(asked, workload_advice.advise(asked, world.snapshot))["codes"]
    return found


def of_look(look: Look) -> list[object]:
    rows = [(row.section, row.field, row.value, row.text, row.by, [note[:9] for note in row.notes]) for row in look.rows]
    return [rows, codes(list(look.remarks)), [violation.code for violation in look.denied]]


def of_effective(answer_: Effective) -> list[object]:
    """Each row with the codes of the remarks that belong to it."""
    layers = [
        (one.title, one.policies, [row.field for row in one.rows], len(one.denied)) for one in (*answer_.some, *answer_.audit_outcomes)
    ]
    return [*of_look(answer_.look), layers]


def codes_of(seed: int) -> list[object]:
    """Everything but sentences, of some reviews of one random world, and of what holds in one namespace of it."""
    random = Random(seed)
    world = case_of(random, MODES).world
    found: list[object] = []
    for request in [random_pods.request(random, world) for _ in range(REVIEWS)]:
        for phase in PHASES:
            review = review_of(request)
            try:
                verdict = evaluate(replace(request, phase=phase), world.snapshot.facts_for(request.namespace))
            except (PodError, ReviewError):
                continue
            found.append(of_verdict(verdict, review, phase))
        found.append(of_workload(world, request))
    kind = PodKind(workload=random.choice((None, "Job", "DaemonSet", "Notebook")), labels=(), gpus=random.choice((1, 8)))
    found.append(of_effective(effective(world.snapshot.facts_for(random.choice(NAMESPACES)), kind)))
    return found


def test_rewording_changes_sentences_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions, audiences, words of metrics, codes in the log and the rows of ``effective``, of some eighty random reviews."""
    before = [codes_of(seed) for seed in range(WORLDS)]
    scramble(monkeypatch)
    assert [seed for seed, one in enumerate(before) if codes_of(seed) != one] == []


def test_rewording_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sentence is made of the table: that of a golden case is the scrambled one."""
    case = golden.load(golden.CASES / "device_counts" / "more-than-the-most.yaml")
    request = case.request()
    scramble(monkeypatch)
    (violation,) = evaluate(request, case.facts(request.namespace)).violations
    assert violation.fact.startswith("here allowed ")
