"""What `berth try` says on standard error: one line per object, then what its author should know; at the end what its reader can only
hand on to the platform team."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cli.judge import Judged, Outcome
from policies import lookalikes
from policies.document import Document, path_text
from policies.verdict import Edit, Verdict, Would
from policies.wording import cut
from policies.workloads import parts
from policies.workloads.held import Held
from webhook import audience

_LAY = "lay a file that says where its templates are over it: --catalog FILE"
_MOST_FLOW = 400
"""characters of a field of a pod that is told: a node affinity of two terms"""
_MOST_HELD = 3
"""accelerators of one object that are named where they are not judged"""


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
    aside = f"; {outcome.manifest.aside}" if outcome.manifest.aside else ""
    yield f"{place(outcome.manifest.document)}: {title(outcome)}: {_decision(outcome)}{aside}"
    if outcome.claim is not None:
        yield from (f"  {line}" for line in _of_claim(outcome.claim))
    for pod in outcome.pods:
        where = path_text(pod.subject.template)
        prefix = f"  in {where}: " if where else "  "
        yield from (prefix + line for line in _details(pod))


def of_platform(outcome: Outcome) -> Iterator[str]:
    """What only the platform team can mend, as one line each; the same line for every object of which it is true."""
    for pod in outcome.pods:
        raw = pod.subject.review.pod
        yield from (f"for the platform team: {remark}" for remark in audience.of_platform(pod.remarks, raw))
        for would in pod.would:
            yield from (f"for the platform team: {_who(would)} would say: {r}" for r in audience.of_platform(would.remarks, raw))
    yield from (f"for the platform team: {lookalikes.UNKNOWN}: {lookalikes.unknown(one.name)}" for one in outcome.held if not one.known)


def _decision(outcome: Outcome) -> str:
    if outcome.refused:
        return "refused"
    if outcome.manifest.fact:
        return "taken as a fact for this run"
    if not outcome.pods:
        return f"not judged: {_why_not(outcome)}"
    beside = _beside(outcome.unjudged)
    if not any(pod.judged for pod in outcome.pods):
        itself = " itself" if any(pod.subject.elsewhere for pod in outcome.pods) else ""
        return f"not judged: {beside}, where no container asks for it" if beside else f"not judged: it asks for no accelerator{itself}"
    judged = f"admitted with {_count(outcome.edits, 'edit')}" if outcome.edits else f"admitted as it is{_why(outcome)}"
    return f"{judged}; not judged: it {beside}" if beside else judged


def _why_not(outcome: Outcome) -> str:
    manifest = outcome.manifest
    beside = _beside(outcome.unjudged)
    if not beside:
        return manifest.note or ("it makes no pods" if manifest.known else "its kind is not in the catalog, and it names no accelerator")
    if manifest.note:
        return f"{beside}; {manifest.note}"
    return f"{beside}, and {'it makes no pods' if manifest.known else f'its kind is not in the catalog; {_LAY}'}"


def _beside(unjudged: tuple[Held, ...]) -> str:
    """``holds nvidia.com/gpu at spec.a["nvidia.com/gpu"]``: each name once, at the first place at which it is."""
    first = {one.name: one for one in reversed(unjudged)}
    found = [one for one in unjudged if first[one.name] is one]
    if not found:
        return ""
    told = " and ".join(f"{one.name} {'in the text ' if one.in_text else ''}at {path_text(one.path)}" for one in found[:_MOST_HELD])
    more = f" and {len(found) - _MOST_HELD} more" if len(found) > _MOST_HELD else ""
    return f"holds {told}{more}"


def _why(outcome: Outcome) -> str:
    created = all(pod.subject.review.operation == "CREATE" for pod in outcome.pods)
    return "; no policy matches" if created and not any(pod.mutate.matched for pod in outcome.pods) else ""


def _of_claim(verdict: Verdict) -> Iterator[str]:
    yield from map(str, verdict.violations)
    for would in verdict.would:
        yield from _would(would, None)


def _details(pod: Judged) -> Iterator[str]:
    yield from (_placed(str(violation), pod) for violation in pod.violations)
    raw = pod.subject.review.pod
    yield from (f"warning: {_placed(str(remark), pod)}" for remark in audience.warned(pod.remarks, pod.violations, raw))
    for would in pod.would:
        yield from _would(would, pod)
    if pod.mutate.uncounted:
        yield f"warning: {_count(pod.mutate.uncounted, 'policy', 'policies')} in Audit or Warn more than are evaluated per pod"
    for path, value in pod.unshown.items():
        yield f"its pods get {path_text(path)}, for which this manifest has no field: {_flow(value)}"
    if pod.subject.elsewhere:
        yield f"{pod.subject.elsewhere} is not in the input: what it says of these pods is not judged"
    yield from (f"{error.place}: {error.message}; it is not judged" for error in pod.subject.unread)


def _flow(value: Any) -> str:
    """On one line, and not too long a one."""
    return cut(json.dumps(value, ensure_ascii=False), _MOST_FLOW)


def _placed(text: str, pod: Judged | None) -> str:
    """With the manifest's own paths, where its pod's don't stand in one piece."""
    return text if pod is None or pod.subject.is_template else parts.placed(text, pod.subject.parts)


def _who(would: Would) -> str:
    return f"would: {would.policy} ({would.mode})"


def _would(would: Would, pod: Judged | None) -> Iterator[str]:
    yield from (f"{_who(would)} would refuse it: {_placed(str(violation), pod)}" for violation in would.violations)
    if would.edits:
        edits = ", ".join(_edit(edit) for edit in would.edits)
        yield f"{_who(would)} would make {_count(len(would.edits), 'edit')}: {_placed(edits, pod)}"
    if pod is not None:
        said = audience.warned(would.remarks, would.violations, pod.subject.review.pod)
        yield from (f"{_who(would)} would say: {_placed(str(remark), pod)}" for remark in said)


def _edit(edit: Edit) -> str:
    return f"{edit.op} {path_text(tuple(step for step in edit.path if step != '-'))}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
