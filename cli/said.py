"""What `berth try` says on standard error: one line per object, then what its author should know."""

from __future__ import annotations

from collections.abc import Iterator

from cli.judge import Judged, Outcome
from policies.document import Document, path_text
from policies.verdict import Edit, Would


def place(document: Document) -> str:
    """``train.yaml document 2 items[0]``, as far as it is needed."""
    number = "" if document.only else f" document {document.index}"
    inner = path_text(document.path)
    return f"{document.file}{number}{' ' + inner if inner else ''}"


def title(outcome: Outcome) -> str:
    """``Pod "x"``; an object without a name is only its kind."""
    manifest = outcome.manifest
    return f'{manifest.kind} "{manifest.name}"' if manifest.name else manifest.kind


def lines(outcome: Outcome) -> Iterator[str]:
    """The decision, then violations, warnings and what policies in Audit or Warn would have done."""
    yield f"{place(outcome.manifest.document)}: {title(outcome)}: {_decision(outcome)}"
    for pod in outcome.pods:
        where = path_text(pod.subject.template)
        prefix = f"  in {where}: " if where else "  "
        yield from (prefix + line for line in _details(pod))


def _decision(outcome: Outcome) -> str:
    if outcome.refused:
        return "refused"
    if not outcome.pods:
        note = outcome.manifest.note
        return f"not judged: {note}" if note else "not judged: it makes no pods"
    if not any(pod.judged for pod in outcome.pods):
        return "not judged: it asks for no accelerator"
    return f"admitted with {_count(outcome.edits, 'edit')}" if outcome.edits else f"admitted as it is{_why(outcome)}"


def _why(outcome: Outcome) -> str:
    created = all(pod.subject.review.operation == "CREATE" for pod in outcome.pods)
    return "; no policy matches" if created and not any(pod.mutate.matched for pod in outcome.pods) else ""


def _details(pod: Judged) -> Iterator[str]:
    yield from (str(violation) for violation in pod.violations)
    yield from (f"warning: {remark}" for remark in pod.remarks)
    for would in pod.would:
        yield from _would(would)
    if pod.mutate.uncounted:
        yield f"warning: {_count(pod.mutate.uncounted, 'policy', 'policies')} in Audit or Warn more than are evaluated per pod"


def _would(would: Would) -> Iterator[str]:
    who = f"would: {would.policy} ({would.mode})"
    yield from (f"{who} would refuse it: {violation}" for violation in would.violations)
    if would.edits:
        yield f"{who} would make {_count(len(would.edits), 'edit')}: {', '.join(_edit(edit) for edit in would.edits)}"
    yield from (f"{who} would say: {remark}" for remark in would.remarks)


def _edit(edit: Edit) -> str:
    return f"{edit.op} {path_text(tuple(step for step in edit.path if step != '-'))}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
