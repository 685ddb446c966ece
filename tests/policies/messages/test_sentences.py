"""The laws of sentences, over everything that any golden case makes Berth say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest

from policies.engine import evaluate
from policies.messages import OF_EDITS, TABLE
from policies.verdict import Remark, Verdict, Violation
from tests.support.cases import golden, golden_claims, golden_workloads
from webhook.admission.review import WARNING_LENGTH

AUTHOR_READS = 200
"""characters in which code, fact and fix must stand: what a Job's event or a narrow terminal shows"""
POD_NAME = "trainer-x7k2q"
"""of every pod in the cases: events that differ by pod name are not folded (kubernetes#106160)"""


@cache
def verdicts() -> tuple[tuple[str, Verdict], ...]:
    """(case, verdict) of every case of a pod, a claim or a workload that can be judged."""
    judged = [case for case in golden.cases() if "bad" not in case.expected]
    pods = ((case.name, evaluate(request, case.facts(request.namespace))) for case in judged for request in [case.request()])
    workloads = ((str(case.path), Verdict(remarks=golden_workloads.remarks(case))) for case in golden_workloads.cases())
    return *pods, *((str(case.path), golden_claims.verdict(case)) for case in golden_claims.cases()), *workloads


def violations() -> Iterator[Violation]:
    for _, verdict in verdicts():
        yield from verdict.violations
        yield from (v for would in verdict.would for v in would.violations)


def remarks() -> Iterator[Remark]:
    for _, verdict in verdicts():
        yield from verdict.remarks
        yield from (r for would in verdict.would for r in would.remarks)


@pytest.mark.no_cover
def test_code_fact_and_fix_come_first() -> None:
    """Every refusal says what is wrong and what to type within its first 200 characters."""
    long = [(len(text), text) for v in violations() if len(text := f"{v.code}: {v.fact}; {v.fix}.") > AUTHOR_READS]
    assert long == []


def test_a_sentence_begins_with_code_fact_and_fix() -> None:
    """Nothing is put before them."""
    assert all(str(v).startswith(f"{v.code}: {v.fact}; {v.fix}.") for v in violations())


def test_a_remark_fits_a_warning() -> None:
    """The API server cuts a warning at 256 characters, so none is longer."""
    assert [text for r in remarks() if len(text := str(r)) > WARNING_LENGTH] == []


def test_what_was_chosen_and_what_to_type_come_first() -> None:
    """Of remarks about edits, who asked comes after 200 characters at the latest."""
    texts = [re.split(r" \((?:default of|asked by) ", str(r))[0] for r in remarks() if r.code in OF_EDITS]
    assert texts
    assert [text for text in texts if len(text) > AUTHOR_READS] == []


def test_no_sentence_names_the_pod() -> None:
    """Neither a pod's name nor its uid, so that equal refusals stay equal."""
    texts = [str(one) for one in (*violations(), *remarks())]
    assert [text for text in texts if POD_NAME in text] == []


def test_a_sentence_is_one_line() -> None:
    """No line break, no trailing space, no two spaces, no doubled full stop."""
    texts = [str(one) for one in (*violations(), *remarks())]
    assert [text for text in texts if "\n" in text or text != text.strip() or "  " in text or ".." in text.replace("...", "")] == []


def test_every_violation_says_who_asks_or_is_about_an_annotation() -> None:
    """Who is refused can tell whom to ask; an annotation that can't be read is nobody's demand."""
    assert {v.code for v in violations() if not v.policies} <= {"BERTH-151", "BERTH-152"}


@pytest.mark.parametrize("code", [code for code, row in TABLE.items() if row.kind != "notice"])
def test_every_code_is_said_in_some_case(code: str) -> None:
    """A sentence that no case shows has been read by nobody."""
    assert code in {v.code for v in violations()} | {r.code for r in remarks()}
