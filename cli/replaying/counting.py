"""One piece of a recording, judged: outcomes with how many pods have each, and how much was passed over and why."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from analysis.replay.creations import Creation, Passed, creation
from analysis.replay.tally import ReplayOutcome
from cli.replaying.comparison import Comparer, Example
from documents.recordings.entries import RecordingEntry, entries
from documents.recordings.pieces import Piece
from policies.document import InputError

_ABOUT = (b"pods", b"Report")
"""One of them stands in every event and review that is about pods, as the name of the resource; and in every report, as
its kind."""
MOST_ERRORS = 20
"""Errors of one piece that are told."""


@dataclass(slots=True)
class Counted:
    """The results of one piece. It is sent between processes."""

    lines: int = 0
    passed: Counter[Passed] = field(default_factory=Counter)
    first: dict[Passed, int] = field(default_factory=dict)
    """The line, in the piece, of the first that was passed over for a reason."""
    errors: list[InputError] = field(default_factory=list)
    outcomes: dict[ReplayOutcome, int] = field(default_factory=dict)
    """Each with its number."""
    examples: dict[int, tuple[int, Example]] = field(default_factory=dict)
    """Number of an outcome that differs -> its first pod, with the line."""
    identities: array[int] = field(default_factory=lambda: array("Q"))
    """Of each pod; 0 for one that has none."""
    numbers: array[int] = field(default_factory=lambda: array("L"))
    """The outcome of each pod."""
    reports: list[dict[str, Any]] = field(default_factory=list)

    def add(self, outcome: ReplayOutcome, line: int, example: Callable[[], Example], identity: int = 0) -> None:
        """Count a pod. ``example``: called for the first of an outcome that differs."""
        number = self.outcomes.setdefault(outcome, len(self.outcomes))
        if outcome.difference is not None and number not in self.examples:
            self.examples[number] = line, example()
        self.identities.append(identity)
        self.numbers.append(number)

    def pass_over(self, reason: Passed, line: int) -> None:
        """Count something that is not judged."""
        self.passed[reason] += 1
        self.first.setdefault(reason, line)


def count_piece(piece: Piece, comparer: Comparer) -> Counted:
    """Judge what is in a piece."""
    found = Counted()
    for entry in entries(piece, _ABOUT):
        if entry.unread is not None:
            _unread(entry, found)
        elif entry.value is None:
            found.lines = entry.line
        else:
            _one(entry, comparer, found)
    return found


def _unread(entry: RecordingEntry, found: Counted) -> None:
    if isinstance(entry.unread, InputError):
        found.passed["unreadable"] += 1
        if len(found.errors) < MOST_ERRORS:
            found.errors.append(entry.unread)
    elif entry.unread is not None:
        found.pass_over("resource" if entry.unread == "other" else entry.unread, entry.line)


def _one(entry: RecordingEntry, comparer: Comparer, found: Counted) -> None:
    made = creation(entry.value, comparer.chosen.now.catalog)
    if not isinstance(made, Creation):
        if made == "reports" and isinstance(entry.value, dict):
            found.reports.append(entry.value)
        else:
            found.pass_over(made, entry.line)
        return
    judged = comparer.of(made)
    if isinstance(judged, str):
        found.pass_over(judged, entry.line)
        return
    outcome, result = judged
    found.add(outcome, entry.line, lambda: comparer.example(made, outcome, result), _identity(made.identity))


def _identity(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(errors="replace"), digest_size=8).digest()) or 1 if text else 0
