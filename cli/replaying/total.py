"""All pieces together: each event counted once, and one example of each difference."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from analysis.replay.creations import Passed
from analysis.replay.tally import ChangedGroup, ReplayTally
from cli.replaying.comparison import Example
from cli.replaying.counting import Counted
from documents.recordings.pieces import Piece
from policies.document import InputError

MOST_SEEN = 1_000_000
"""Events that are remembered, so that one in two files counts once: some 100 MB. Beyond it the oldest is forgotten."""
MOST_TOLD = 100
"""Errors that are told one by one."""


class SourceLocation(NamedTuple):
    """Where something stands. ``line``: 1-based; 0 in YAML."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}" if self.line else self.file


@dataclass(slots=True)
class Total:
    """The results so far."""

    tally: ReplayTally = field(default_factory=ReplayTally)
    passed: Counter[Passed] = field(default_factory=Counter)
    first: dict[Passed, SourceLocation] = field(default_factory=dict)
    examples: dict[ChangedGroup, tuple[SourceLocation, Example]] = field(default_factory=dict)
    errors: list[InputError] = field(default_factory=list)
    wrong: int = 0
    """All errors, those too that are past the most that are told."""
    damaged: list[str] = field(default_factory=list)
    """Compressed files that break off."""
    reports: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    """File -> lines read of it."""
    _seen: dict[int, None] = field(default_factory=dict)

    def fail(self, error: InputError) -> None:
        """Count something that could not be read."""
        self.wrong += 1
        if len(self.errors) < MOST_TOLD:
            self.errors.append(error)

    def add(self, piece: Piece, found: Counted) -> None:
        """Add the results of a piece; those of a file's pieces in their order."""
        before = self.files.get(piece.file, 0)
        self.files[piece.file] = before + found.lines
        self.passed.update(found.passed)
        for reason, line in found.first.items():
            self.first.setdefault(reason, SourceLocation(piece.file, line and before + line))
        for error in found.errors:
            self.fail(error)
        self.reports += found.reports
        if piece.damaged:
            self.damaged.append(piece.file)
        counts = self._counted_once(found)
        for number, outcome in enumerate(found.outcomes):
            if not counts[number]:
                continue
            self.tally.add(outcome, counts[number])
            if outcome.difference is not None and number in found.examples:
                line, example = found.examples[number]
                group = ChangedGroup(outcome.namespace, outcome.workload, outcome.difference)
                if group in self.tally.groups:
                    self.examples.setdefault(group, (SourceLocation(piece.file, line and before + line), example))

    def _counted_once(self, found: Counted) -> Counter[int]:
        counts: Counter[int] = Counter()
        for identity, number in zip(found.identities, found.numbers, strict=True):
            if identity:
                if identity in self._seen:
                    self.passed["repeated"] += 1
                    continue
                self._seen[identity] = None
                if len(self._seen) > MOST_SEEN:
                    del self._seen[next(iter(self._seen))]
            counts[number] += 1
        return counts
