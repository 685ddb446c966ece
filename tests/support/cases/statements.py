"""What holds of every golden case: a statement is a function that yields what breaks it, and its name says what holds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from analysis.reviews import workload_advice
from analysis.reviews.audience import warned
from analysis.reviews.review import ObjectRequest
from cli.policy_cases.outcome import PARTS
from kube.review import WARNING_LENGTH
from kube.tree import apply_patch
from policies.engine import evaluate
from policies.messages import OF_EDITS, TABLE
from policies.request import Request
from policies.rules import RULES
from policies.verdict import Remark, Verdict, Violation
from telemetry.policy_metrics import NO_POLICY, outcome_words
from tests.support.cases.golden import Case, DecidedCase
from tests.support.cases.reviews import job_review, ray_review

AUTHOR_READS = 200
"""characters in which code, fact and fix must stand: what a Job's event or a narrow terminal shows"""
POD_NAME = "trainer-x7k2q"
"""of every pod in the cases: events that differ by pod name are not folded (kubernetes#106160)"""
NOBODYS = {"BERTH-151", "BERTH-152"}
"""denials of an annotation that can't be read, which no policy asks for"""
BARE = re.compile(r"(?<![\w.\]])(?:spec\.(?!template\b)(?!require\b|default\b|gpus\b)\w+|metadata\.(?:annotations|labels))")
"""a path of a pod that a workload's author would look for in vain"""
SECOND = "spec.workerGroupSpecs[1].template"


def breaches(decided: DecidedCase) -> list[str]:
    """Return what breaks a statement about a pod or a claim, each after the statement's name."""
    case, _, verdict, request = decided
    of_pod = _breaches(OF_PODS, case, request, verdict) if request else []
    return [*_breaches(OF_DECISIONS, decided), *sentence_breaches(verdict), *of_pod]


def sentence_breaches(verdict: Verdict) -> list[str]:
    """Return what breaks a statement about sentences, each after the statement's name."""
    return _breaches(OF_SENTENCES, verdict)


def _breaches(statements: Iterable[Callable[..., Iterable[object]]], *subject: object) -> list[str]:
    return [f"{statement.__name__}: {breach}" for statement in statements for breach in statement(*subject)]


def violations(verdict: Verdict) -> list[Violation]:
    """Return the denials of all policies, in whatever mode."""
    return [*verdict.violations, *(violation for outcome in verdict.audit_outcomes for violation in outcome.violations)]


def remarks(verdict: Verdict) -> list[Remark]:
    """Return the remarks about all policies, in whatever mode."""
    return [*verdict.remarks, *(remark for outcome in verdict.audit_outcomes for remark in outcome.remarks)]


# --- decisions ---------------------------------------------------------------------------------------------------------


def the_outcome_can_be_written_down(decided: DecidedCase) -> Iterator[object]:
    """Every part is of its type, as JSON has it, and empty parts are left out."""
    outcome = decided.decision.outcome
    yield from (part for part, value in outcome.items() if not isinstance(value, PARTS[part]) or not (value or part == "patch"))
    if json.loads(json.dumps(outcome)) != outcome:
        yield "JSON has it differently"


def who_did_not_match_said_nothing(decided: DecidedCase) -> set[str]:
    """Policies named in an outcome are among those that matched; "" is the platform itself, told apart from another one."""
    return policies_named(decided) - {*decided.decision.matched, ""}


def policies_named(decided: DecidedCase) -> set[str]:
    """Return the policies that edit or would do something."""
    outcome = decided.decision.outcome
    return {name for edit in outcome.get("edits", ()) for name in edit["by"].split(", ")} | {
        audited["policy"] for audited in outcome.get("would", ())
    }


# --- sentences ---------------------------------------------------------------------------------------------------------


def code_fact_and_fix_come_first(verdict: Verdict) -> Iterator[str]:
    """A denial says what is wrong and what to type within its first 200 characters, and nothing is put before them."""
    for violation in violations(verdict):
        text = f"{violation.code}: {violation.fact}; {violation.fix}."
        if len(text) > AUTHOR_READS or not str(violation).startswith(text):
            yield text


def a_remark_fits_a_warning(verdict: Verdict) -> Iterator[str]:
    """The API server cuts a warning at 256 characters, so none is longer."""
    return (text for remark in remarks(verdict) if len(text := str(remark)) > WARNING_LENGTH)


def what_was_chosen_and_what_to_type_come_first(verdict: Verdict) -> Iterator[str]:
    """Of remarks about edits, who asked comes after 200 characters at the latest."""
    texts = (re.split(r" \((?:default of|required by) ", str(remark))[0] for remark in remarks(verdict) if remark.code in OF_EDITS)
    return (text for text in texts if len(text) > AUTHOR_READS)


def no_sentence_names_the_pod(verdict: Verdict) -> Iterator[str]:
    """Neither a pod's name nor its uid, so that equal denials stay equal."""
    return (text for text in _texts(verdict) if POD_NAME in text)


def a_sentence_is_one_line(verdict: Verdict) -> Iterator[str]:
    """No line break, no trailing space, no two spaces, no doubled full stop."""
    return (text for text in _texts(verdict) if "\n" in text or text != text.strip() or "  " in text or ".." in text.replace("...", ""))


def _texts(verdict: Verdict) -> list[str]:
    return [str(sentence) for sentence in (*violations(verdict), *remarks(verdict))]


def a_denial_says_who_asks(verdict: Verdict) -> Iterator[str]:
    """Who is denied can tell whom to ask; an annotation that can't be read is nobody's demand."""
    return (str(violation) for violation in violations(verdict) if not violation.policies and violation.code not in NOBODYS)


# --- pods --------------------------------------------------------------------------------------------------------------


def a_second_mutate_changes_nothing(case: Case, request: Request, verdict: Verdict) -> Iterator[str]:
    """On the edited pod it changes nothing, denies nothing, and tells nothing again of what was edited."""
    if request.phase == "validate" or request.operation != "CREATE" or verdict.violations or not verdict.judged:
        return
    again = evaluate(replace(request, pod=apply_patch(request.pod, verdict.patch)), case.facts(request.namespace))
    yield from (f"it would {op['op']} {op['path']}" for op in again.patch)
    yield from (f"it says again: {remark}" for remark in again.remarks if remark.code in OF_EDITS)
    yield from (f"it denies: {violation}" for violation in again.violations)


def labels_of_metrics_are_names_of_ours(case: Case, _: Request, verdict: Verdict) -> Iterator[object]:
    """Policies of the snapshot in their own mode, or none; rules that exist."""
    live = {(compiled.id, compiled.mode) for compiled in case.world.snapshot.policies} | {(NO_POLICY, "Enforce")}
    rules = {rule.name for rule in RULES}
    return (each for each in outcome_words(verdict) if (each.policy, each.mode) not in live or each.rule not in rules)


def only_defaults_of_policies_are_kept_from_authors(_: Case, request: Request, verdict: Verdict) -> Iterator[Remark]:
    """Whatever is not told names the policies whose metrics count it."""
    shown = list(warned(verdict.remarks, (), request.pod))
    untold = (remark for remark in verdict.remarks if remark not in shown)
    return (remark for remark in untold if not remark.policies or TABLE[remark.code].audience != "platform")


def all_that_is_said_of_pods_is_said_of_templates(case: Case, *_: object) -> Iterator[str]:
    """With the pod as the template of a Job, each sentence has its code, and names no path that only its pods have."""
    named = re.compile(r"BERTH-\d{3} \((?:its pods from )?spec\.template\b")
    for code, text in _advice(case, job_review):
        bare = BARE.search(re.sub(r'"[^"]*"', "", text)) and not named.match(text)
        if bare or not re.match(rf"{code}(?: \([^)]+\))?: ", text):
            yield text


def a_denial_of_one_of_several_templates_names_it_once(case: Case, *_: object) -> Iterator[str]:
    """With the pod as the second of two templates, the opening names it only where no path in the sentence does."""
    for _code, text in _advice(case, lambda pod, namespace: ray_review({}, pod, namespace=namespace)):
        if "will be denied)" in text and (SECOND not in text or (f"from {SECOND} will" in text and text.count(SECOND) > 1)):
            yield text


def _advice(case: Case, review: Callable[..., ObjectRequest]) -> Iterator[tuple[str, str]]:
    """Yield code and text of what is said of a workload with the pod; nothing where a review was recorded."""
    if pod := case.given["pod"]:
        advice = workload_advice.advise(review(pod, namespace=case.given["namespace"]), case.world.snapshot)
        yield from ((each.code, each.text) for each in advice)


OF_DECISIONS = (the_outcome_can_be_written_down, who_did_not_match_said_nothing)
OF_SENTENCES = (
    code_fact_and_fix_come_first,
    a_remark_fits_a_warning,
    what_was_chosen_and_what_to_type_come_first,
    no_sentence_names_the_pod,
    a_sentence_is_one_line,
    a_denial_says_who_asks,
)
OF_PODS = (
    a_second_mutate_changes_nothing,
    labels_of_metrics_are_names_of_ours,
    only_defaults_of_policies_are_kept_from_authors,
    all_that_is_said_of_pods_is_said_of_templates,
    a_denial_of_one_of_several_templates_names_it_once,
)
