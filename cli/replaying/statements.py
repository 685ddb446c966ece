"""What of a recording was not judged, and what could not be compared: a sentence for each reason."""

from __future__ import annotations

from collections.abc import Iterator

from cli.replaying.creations import Passed
from cli.replaying.total import Total
from policies.document import InputError

_SENTENCES: dict[Passed, str] = {
    "accelerator": "pods that ask for no accelerator",
    "stage": "events of pods at other stages than ResponseComplete",
    "dry-run": "dry runs, which create nothing",
    "resource": "entries about other resources than pods",
    "verb": "events of pods that create none: reads, deletions, changes of parts such as their status",
    "update": "changes of pods, which an audit log has without the pod as it was before",
    "level": "creations of pods at level Metadata, which has no pod; log pods at level Request",
    "truncated": "creations whose pod the API server cut out of the event; raise --audit-log-truncate-max-event-size",
    "early": "creations that the API server ended before it had read the pod",
    "excluded": "pods in namespaces that Berth never judges",
    "namespace": "pods in other namespaces",
    "repeated": "events that are recorded twice, counted once",
    "large": "pods that are too large to be judged",
    "unshaped": "objects that are not shaped like a pod",
    "kind": "objects that are no recordings; berth try FILE judges manifests",
    "unreadable": "entries that are not JSON",
    "beginning": "files that begin in the middle of a line",
    "end": "files that end in the middle of a line",
    "long": "lines that are longer than any event",
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
            yield f"passed over: {sentence} ({number}{place})"
    if total.reports:
        yield f"reports, compared with the pods that exist now ({len(total.reports)})"
    yield from (f"{file}: its compressed data break off; what came before is judged" for file in total.damaged)


def uncompared(total: Total) -> Iterator[str]:
    """Yield a sentence if nobody knows what was decided of some pods then."""
    tally = total.tally
    if missing := tally.all.pods - tally.compared:
        yield f"no record says what was decided then, so that they are only counted ({missing}); name the policies of then: --against PATH"
    if tally.away:
        yield f"admitted while Berth did not answer, and compared as admitted without edits ({tally.away})"


def nothing_to_judge(total: Total) -> InputError | None:
    """Return an error where a recording of pods has none that can be judged: it would say that nothing differs."""
    if total.tally.all.pods or not (found := [reason for reason in NO_RECORD if total.passed[reason]]):
        return None
    file = total.first[found[0]].file
    number = total.passed[found[0]]
    return InputError(file=file, message=f"has nothing that can be judged: {_SENTENCES[found[0]]} ({number})")
