"""What of a recording was not judged, and what could not be compared: a sentence for each reason."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.replay.creations import Passed
from cli.replaying.total import Total
from policies.document import InputError

_SENTENCES: dict[Passed, str] = {
    "accelerator": "pods that request no accelerator",
    "stage": "pod events at stages other than ResponseComplete",
    "dry-run": "dry runs",
    "resource": "entries about other resources than pods",
    "verb": "pod events that create no pod: reads, deletions, changes of subresources",
    "update": "updates of pods (an audit log does not have the previous pod)",
    "level": "creations at level Metadata, which does not include the pod; log pods at level Request",
    "truncated": "creations whose event was truncated; raise --audit-log-truncate-max-event-size",
    "early": "creations that failed before the API server read the pod",
    "excluded": "pods in namespaces that Berth is not called for",
    "namespace": "pods in other namespaces",
    "repeated": "duplicate events, counted once",
    "large": "pods that are too large to evaluate",
    "unshaped": "objects that are not valid pods",
    "kind": "objects that are not recordings; to check manifests, use berth try FILE",
    "unreadable": "entries that are not JSON",
    "beginning": "files that begin in the middle of a line",
    "end": "files that end in the middle of a line",
    "long": "lines that are too long to be an event",
}
PLACED: tuple[Passed, ...] = ("unreadable", "long", "unshaped", "large", "truncated", "kind")
"""Reasons of which the first place is told."""
NO_RECORD: tuple[Passed, ...] = ("level", "truncated")
"""Pods that were created, and of which the recording has nothing that can be judged."""


def passed_over(total: Total) -> Iterator[str]:
    """Yield a sentence for each reason why something was passed over."""
    for reason, sentence in _SENTENCES.items():
        if number := total.passed[reason]:
            place = f"; the first: {total.first[reason]}" if reason in PLACED and reason in total.first else ""
            yield f"skipped: {sentence} ({number}{place})"
    if total.reports:
        yield f"reports, compared with the pods that exist now ({len(total.reports)})"
    yield from (f"{file}: the compressed data is incomplete; the part before is evaluated" for file in total.damaged)


def uncompared(total: Total) -> Iterator[str]:
    """Yield a sentence if nobody knows what was decided of some pods then."""
    tally = total.tally
    if missing := tally.all.pods - tally.compared:
        yield f"pods without a recorded decision are only counted ({missing}); to compare them, pass the old policies: --against PATH"
    if tally.away:
        yield f"pods admitted while Berth did not answer, compared as admitted unchanged ({tally.away})"


def nothing_to_judge(total: Total) -> InputError | None:
    """Return an error where a recording of pods has none that can be judged: it would say that nothing differs."""
    if total.tally.all.pods or not (found := [reason for reason in NO_RECORD if total.passed[reason]]):
        return None
    file = total.first[found[0]].file
    number = total.passed[found[0]]
    return InputError(file=file, message=f"has nothing to evaluate: {_SENTENCES[found[0]]} ({number})")
