"""Which policies can meet: in which namespaces each acts, and whether one pod can match two of them.

A set of namespaces is a Python integer, bit i for namespace i, so that a thousand policies in a thousand namespaces are a thousand
numbers, not a million look-ups. Nothing here is kept in the snapshot, which may be out of force before the work is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from policies.compiled import Compiled
from policies.policy import LabelExpression, LabelSelector, Match
from policies.snapshot import NAMESPACE_LABEL, Snapshot

MOST_PAIRS = 1_000_000
"""pairs of matches whose answer is remembered: 100 MB would be more than a replica may take; each is 100 bytes"""


class Namespaces:
    """All of them, and for each label those that carry it, once ``steps`` are done."""

    def __init__(self, snapshot: Snapshot) -> None:
        labels = snapshot.cluster.namespaces
        own = {c.policy.namespace for c in snapshot.policies if c.policy.namespace is not None}
        self.names: Sequence[str] = sorted({*labels, *own})
        self.bit: Mapping[str, int] = {name: 1 << i for i, name in enumerate(self.names)}
        self.all = (1 << len(self.names)) - 1
        self._pairs: dict[tuple[str, str], int] = {}
        self._keys: dict[str, int] = {}
        self._labels = labels

    def steps(self) -> Iterator[None]:
        """Fills in; done piece by piece."""
        for name in self.names:
            for key, value in {**self._labels.get(name, {}), NAMESPACE_LABEL: name}.items():
                self._pairs[key, value] = self._pairs.get((key, value), 0) | self.bit[name]
                self._keys[key] = self._keys.get(key, 0) | self.bit[name]
            yield

    def picked(self, selector: LabelSelector | None) -> int:
        """Those that a selector picks."""
        rows = self.all
        if selector is not None:
            for pair in selector.match_labels:
                rows &= self._pairs.get(pair, 0)
            for expression in selector.match_expressions:
                rows &= self._expressed(expression)
        return rows

    def _expressed(self, expression: LabelExpression) -> int:
        if expression.operator in ("Exists", "DoesNotExist"):
            rows = self._keys.get(expression.key, 0)
        else:
            rows = 0
            for value in expression.values:
                rows |= self._pairs.get((expression.key, value), 0)
        return rows if expression.operator in ("Exists", "In") else self.all & ~rows

    def first(self, rows: int) -> str:
        """The first by name of a set that is not empty."""
        return self.names[(rows & -rows).bit_length() - 1]


@dataclass(slots=True)
class Reach:
    """Of every policy of a snapshot."""

    namespaces: Namespaces
    of: dict[Compiled, int] = field(default_factory=dict)
    """the namespaces in which it acts"""
    _number: dict[Match, int] = field(default_factory=dict)
    _match: dict[Compiled, int] = field(default_factory=dict)
    _meet: dict[tuple[int, int], bool] = field(default_factory=dict)

    def steps(self, snapshot: Snapshot) -> Iterator[None]:
        """Fills in; done piece by piece."""
        yield from self.namespaces.steps()
        for compiled in snapshot.policies:
            policy = compiled.policy
            picked = self.namespaces.picked(policy.match.namespace_selector)
            self.of[compiled] = picked if policy.namespace is None else self.namespaces.bit[policy.namespace]
            self._match[compiled] = self._number.setdefault(policy.match, len(self._number))
            yield

    def like(self, compiled: Compiled) -> tuple[int, int]:
        """The same for policies that match the same pods of the same namespaces."""
        return self._match[compiled], self.of[compiled]

    def together(self, one: Compiled, other: Compiled) -> int:
        """The namespaces in which one pod can match both."""
        shared = self.of[one] & self.of[other]
        return shared if shared and self._may_meet(one, other) else 0

    def _may_meet(self, one: Compiled, other: Compiled) -> bool:
        numbers = self._match[one], self._match[other]
        found = self._meet.get(numbers)
        if found is None:
            found = may_meet(one.policy.match, other.policy.match)
            if len(self._meet) < MOST_PAIRS:
                self._meet[numbers] = found
        return found


def may_meet(one: Match, other: Match) -> bool:
    """Whether one pod can match both, namespaces aside. True where that can't be told."""
    if one.gpus is not None and other.gpus is not None:
        least = max(one.gpus.min or 0, other.gpus.min or 0)
        if any(bounds.max is not None and bounds.max < least for bounds in (one.gpus, other.gpus)):
            return False
    if one.workloads and other.workloads and set(one.workloads).isdisjoint(other.workloads):
        return False
    if one.pod_selector is None or other.pod_selector is None:
        return True
    return not _exclude(one.pod_selector, other.pod_selector)


def _exclude(one: LabelSelector, other: LabelSelector) -> bool:
    """Whether no set of labels satisfies both, though each can be: some key can have no value, and can't be missing either."""
    shared = one.keys & other.keys
    said = [*_expressions(one), *_expressions(other)] if shared else []
    return any(not _possible([e for e in said if e.key == key]) for key in shared)


def _expressions(selector: LabelSelector) -> Iterator[LabelExpression]:
    for key, value in selector.match_labels:
        yield LabelExpression(key=key, operator="In", values=(value,))
    yield from selector.match_expressions


def _possible(said: Sequence[LabelExpression]) -> bool:
    """Whether a label can satisfy all of these, which speak of one key. Of values that none of them names there is always one more."""
    key = said[0].key
    named = {value for expression in said for value in expression.values}
    fresh = f"{''.join(sorted(named))}-"  # longer than each
    return any(all(e.holds(labels) for e in said) for labels in ({}, *({key: value} for value in (*sorted(named), fresh))))
