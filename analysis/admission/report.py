"""What is said of an object that was judged: one line, then the violations and warnings for its author, and the lines that only
concern the platform team."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from analysis.admission.manifest_results import AuthorWarning, ManifestResult, PodResult, place_of, pod_warnings
from analysis.reviews import audience as warnings
from documents.printable import counted, printable
from kube.tree import Path, dotted, map_at, maps_in, text_of
from policies.document import Document
from policies.messages import cut_text
from policies.pods import unlisted_accelerators
from policies.verdict import AuditOutcome, Verdict
from policies.workloads.held import HeldAccelerator

_LAY = "describe its pod templates in a file: --catalog FILE"
_MOST_FLOW = 400
"""Most characters of a pod field's value that are shown: a node affinity of two terms."""
_MOST_HELD = 3
"""Most unjudged accelerators of one object that are named."""


def locate_document(document: Document) -> str:
    """Return a place such as ``train.yaml document 2 items[0]``, without the parts that are not needed."""
    number = "" if document.only else f" document {document.index}"
    inner = dotted(document.path)
    return f"{document.file}{number}{' ' + inner if inner else ''}"


def title(outcome: ManifestResult) -> str:
    """Return a title such as ``Pod "x"``; only the kind for an object without a name."""
    manifest = outcome.manifest
    return f'{manifest.kind} "{manifest.name}"' if manifest.name else manifest.kind


def report_lines(outcome: ManifestResult, paint: Callable[[str], str] = str) -> Iterator[str]:
    """Yield the decision, then ``reasons``. ``paint``: colours the decision."""
    aside = f"; {outcome.manifest.aside}" if outcome.manifest.aside else ""
    verdict = paint(printable(describe_verdict(outcome)))
    yield f"{printable(f'{locate_document(outcome.manifest.document)}: {title(outcome)}')}: {verdict}{printable(aside)}"
    yield from map(printable, reasons(outcome))


def reasons(outcome: ManifestResult) -> Iterator[str]:
    """Yield violations, warnings and what policies in Audit or Warn would have done, indented."""
    if outcome.claim is not None:
        yield from (f"  {line}" for line in _of_object(outcome.claim, outcome.manifest.value))
    if outcome.queue is not None:
        yield from (f"  {line}" for line in _of_object(outcome.queue, {}))
    for pod in outcome.pods:
        prefix = _in_template(pod.subject.template)
        yield from (prefix + line for line in _details(pod))


def warning_line(warning: AuthorWarning) -> str:
    """Return a warning as ``reasons`` has it."""
    return printable(f"{_in_template(warning.template)}warning: {warning.text}")


def _in_template(template: Path) -> str:
    return f"  in {dotted(template)}: " if template else "  "


def of_platform(outcome: ManifestResult) -> Iterator[str]:
    """Yield a line for each problem that only the platform team can fix; equal for all objects that have the
    problem."""
    yield from map(printable, _of_platform(outcome))


def _of_platform(outcome: ManifestResult) -> Iterator[str]:
    if outcome.queue is not None:
        yield from (f"for the platform team: {remark}" for remark in warnings.of_platform(outcome.queue.remarks, {}))
    said = outcome.claim.remarks if outcome.claim is not None else ()
    yield from (f"for the platform team: {remark}" for remark in warnings.of_platform(said, outcome.manifest.value))
    for pod in outcome.pods:
        raw = pod.subject.review.pod
        yield from (f"for the platform team: {remark}" for remark in warnings.of_platform(pod.remarks, raw))
        for audited in pod.audit_outcomes:
            yield from (f"for the platform team: {_who(audited)} would warn: {r}" for r in warnings.of_platform(audited.remarks, raw))
    yield from (f"for the platform team: {unlisted_accelerators.unknown(held.name)}" for held in outcome.held if not held.known)


def describe_verdict(outcome: ManifestResult) -> str:
    """Return the verdict on an object in a few words: ``admitted with 2 edits``."""
    if outcome.denied:
        return "denied"
    if outcome.manifest.fact:
        edited = f", and admitted with {counted(outcome.edits, 'edit')}" if outcome.edits else ""
        return f"used as facts about the cluster{edited}"
    if not outcome.pods:
        return f"not checked: {describe_podless(outcome)}"
    beside = _beside(outcome.unjudged)
    if not any(pod.is_evaluated for pod in outcome.pods):
        itself = " itself" if any(pod.subject.elsewhere for pod in outcome.pods) else ""
        return f"not checked: it {beside}, but no container requests it" if beside else f"not checked: it requests no accelerator{itself}"
    admitted = f"admitted with {counted(outcome.edits, 'edit')}" if outcome.edits else f"admitted unchanged{_why(outcome)}"
    return f"{admitted}; not checked: it {beside}" if beside else admitted


def describe_podless(outcome: ManifestResult) -> str:
    """Return why an object has no pod to check."""
    manifest = outcome.manifest
    beside = _beside(outcome.unjudged)
    if not beside:
        return manifest.note or ("it creates no pods" if manifest.known else "its kind is not in the catalog, and it names no accelerator")
    if manifest.note:
        return f"it {beside}; {manifest.note}"
    return f"it {beside}, but {'it creates no pods' if manifest.known else f'its kind is not in the catalog; {_LAY}'}"


def _beside(unjudged: tuple[HeldAccelerator, ...]) -> str:
    """Return ``holds nvidia.com/gpu at spec.a["nvidia.com/gpu"]``: each name once, with the first place of
    it."""
    first = {held.name: held for held in reversed(unjudged)}
    named = [held for held in unjudged if first[held.name] is held]
    if not named:
        return ""
    names = " and ".join(f"{held.name} {'in the text ' if held.in_text else ''}at {dotted(held.path)}" for held in named[:_MOST_HELD])
    more = f" and {len(named) - _MOST_HELD} more" if len(named) > _MOST_HELD else ""
    return f"names {names}{more}"


def _why(outcome: ManifestResult) -> str:
    created = all(pod.subject.review.operation == "CREATE" for pod in outcome.pods)
    return "; no policy matches" if created and not any(pod.mutate.matched for pod in outcome.pods) else ""


def _of_object(verdict: Verdict, value: Any) -> Iterator[str]:
    yield from map(str, verdict.violations)
    yield from (f"warning: {remark}" for remark in warnings.warned(verdict.remarks, verdict.violations, value))
    for outcome in verdict.audit_outcomes:
        yield from _audit_outcomes(outcome, None)


def _details(pod: PodResult) -> Iterator[str]:
    yield from (violation.text_at(place_of(pod)) for violation in pod.violations)
    yield from (f"warning: {warning.text}" for warning in pod_warnings(pod))
    for outcome in pod.audit_outcomes:
        yield from _audit_outcomes(outcome, pod)
    if pod.mutate.uncounted:
        yield f"warning: {counted(pod.mutate.uncounted, 'policy', 'policies')} in Audit or Warn not evaluated (too many match)"
    for path, value in pod.unshown.items():
        yield f"its pods get {dotted(path)} when they are created, which this manifest does not show: {_flow(value)}"
    gates = [text_of(gate.get("name")) for gate in maps_in(map_at(pod.subject.review.pod, "spec").get("schedulingGates"))]
    if gates and pod.is_evaluated:
        yield f"it waits until its scheduling gates are removed: {', '.join(gates[:_MOST_HELD])}{' ...' if len(gates) > _MOST_HELD else ''}"
    if pod.subject.elsewhere:
        yield f"{pod.subject.elsewhere} is not in the input, so its part of these pods is not checked"
    yield from (f"{error.place}: {error.message}; not checked" for error in pod.subject.unread)


def _flow(value: Any) -> str:
    """Return the value as JSON on one line, cut to a maximum length."""
    return cut_text(json.dumps(value, ensure_ascii=False), _MOST_FLOW)


def _who(outcome: AuditOutcome) -> str:
    return f"{outcome.policy} ({outcome.mode})"


def _audit_outcomes(outcome: AuditOutcome, pod: PodResult | None) -> Iterator[str]:
    place = dotted if pod is None else place_of(pod)
    yield from (f"{_who(outcome)} would deny it: {violation.text_at(place)}" for violation in outcome.violations)
    for edits, verb, of in ((outcome.edits, "make", ""), (outcome.dropped, "prevent", " of other policies")):
        if edits:
            listed = ", ".join(f"{edit.op} {place(tuple(step for step in edit.path if step != '-'))}" for edit in edits)
            yield f"{_who(outcome)} would {verb} {counted(len(edits), 'edit')}{of}: {listed}"
    if pod is not None:
        warned = warnings.warned(outcome.remarks, outcome.violations, pod.subject.review.pod)
        yield from (f"{_who(outcome)} would warn: {remark.code}: {remark.text_at(place)}" for remark in warned)
