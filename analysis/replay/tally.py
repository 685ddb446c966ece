"""What became of all pods of a recording, counted by policy, namespace and workload; bounded, whatever is in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from analysis.replay.difference import TURNS, Difference, Turn
from analysis.replay.stakes import NOTHING, Stake

MOST_LINES = 10_000
"""Namespaces, policies, and groups of pods that are listed: ten times as many as anybody reads. The pods of others are
counted all the same."""


class ReplayOutcome(NamedTuple):
    """What became of one pod, without what is its own: the pods of a Job have the same, and are counted."""

    namespace: str
    workload: tuple[str, str]
    """Kind and name."""
    word: str
    """What is decided now: ``admitted``, ``edited`` or ``denied``."""
    matched: tuple[str, ...]
    """The policies that apply to it now."""
    compared: bool
    """False if nobody knows what was decided then."""
    away: bool = False
    """True if Berth did not answer then."""
    difference: Difference | None = None
    stake: Stake = NOTHING
    """Of a pod that is decided otherwise."""


class ChangedGroup(NamedTuple):
    """Pods of one workload that are decided otherwise in the same way."""

    namespace: str
    workload: tuple[str, str]
    difference: Difference


@dataclass(slots=True)
class GroupLine:
    """The pods of one group, of one namespace, or to which one policy applies."""

    pods: int = 0
    turns: Counter[Turn] = field(default_factory=Counter)
    """Pods that are decided otherwise."""
    gpus: int = 0
    """Devices of those."""
    usd: float | None = None
    """What these cost an hour at the least; None if no price is known."""

    def add(self, outcome: ReplayOutcome, pods: int) -> None:
        """Count pods with this outcome."""
        self.pods += pods
        if outcome.difference is None:
            return
        self.turns[outcome.difference.turn] += pods
        self.gpus += outcome.stake.gpus * pods
        if outcome.stake.usd is not None:
            self.usd = (self.usd or 0.0) + outcome.stake.usd * pods

    @property
    def otherwise(self) -> int:
        """Return the number of pods that are decided otherwise."""
        return sum(self.turns[turn] for turn in TURNS)


@dataclass(slots=True)
class ReplayTally:
    """Counted so far."""

    all: GroupLine = field(default_factory=GroupLine)
    words: Counter[str] = field(default_factory=Counter)
    """What is decided now -> pods."""
    compared: int = 0
    away: int = 0
    policies: dict[str, GroupLine] = field(default_factory=dict)
    namespaces: dict[str, GroupLine] = field(default_factory=dict)
    groups: dict[ChangedGroup, GroupLine] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)
    """Pods of lines that are not listed, by the kind of line."""

    def add(self, outcome: ReplayOutcome, pods: int) -> None:
        """Count pods with the same outcome."""
        self.all.add(outcome, pods)
        self.words[outcome.word] += pods
        self.compared += pods * outcome.compared
        self.away += pods * outcome.away
        self._put(self.namespaces, "namespaces", outcome.namespace, outcome, pods)
        due = outcome.difference.policies if outcome.difference is not None else ()
        for policy in sorted({*outcome.matched, *due}):
            mine = outcome if policy in due else outcome._replace(difference=None)
            self._put(self.policies, "policies", policy, mine, pods)
        if outcome.difference is not None:
            self._put(self.groups, "groups", ChangedGroup(outcome.namespace, outcome.workload, outcome.difference), outcome, pods)

    def _put(self, lines: dict, name: str, key: object, outcome: ReplayOutcome, pods: int) -> None:  # type: ignore[type-arg]
        line = lines.get(key)
        if line is None:
            if len(lines) >= MOST_LINES:
                self.left[name] += pods
                return
            line = lines[key] = GroupLine()
        line.add(outcome, pods)
