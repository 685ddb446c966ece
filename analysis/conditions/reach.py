"""Which policies can meet: in which namespaces each applies, and whether one pod can match two of them.

A set of namespaces is a Python integer, bit i for namespace i, so that a thousand policies in a thousand
namespaces are a thousand numbers, not a million look-ups. Nothing here is stored in the snapshot, which may
be out of force before the work is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kube.labels import Expression, LabelSelector, may_all_hold
from policies.offers.constraints import Compiled
from policies.policy import Match
from policies.state.snapshot import NAMESPACE_LABEL, Snapshot

MOST_PAIRS = 1_000_000
"""Pairs of matches whose answer is cached: each takes 100 bytes, and more than 100 MB is too much for a
replica."""


class NamespaceIndex:
    """All namespaces of a snapshot, and for each label those that carry it, once ``steps`` are done.

    ``registered``: the namespaces whose pods the API server sends to Berth; None for all. Others count nowhere.
    """

    def __init__(self, snapshot: Snapshot, registered: LabelSelector | None = None) -> None:
        labels = snapshot.cluster.namespaces
        own = {c.policy.namespace for c in snapshot.policies if c.policy.namespace is not None}
        self.names: Sequence[str] = sorted({*labels, *own})
        self.bit: Mapping[str, int] = {name: 1 << i for i, name in enumerate(self.names)}
        self.all = 0
        """Those of which pods are sent; complete once ``steps`` are done."""
        self._pairs: dict[tuple[str, str], int] = {}
        self._keys: dict[str, int] = {}
        self._labels = labels
        self._registered = registered or LabelSelector()

    def steps(self) -> Iterator[None]:
        """Index the namespaces by label, one per step."""
        for name in self.names:
            labels = {**self._labels.get(name, {}), NAMESPACE_LABEL: name}
            yield
            if not self._registered.matches(labels):
                continue
            self.all |= self.bit[name]
            for key, value in labels.items():
                self._pairs[key, value] = self._pairs.get((key, value), 0) | self.bit[name]
                self._keys[key] = self._keys.get(key, 0) | self.bit[name]

    def picked(self, selector: LabelSelector | None) -> int:
        """Return the bit set of the namespaces that a selector selects."""
        rows = self.all
        if selector is not None:
            for pair in selector.match_labels:
                rows &= self._pairs.get(pair, 0)
            for expression in selector.match_expressions:
                rows &= self._expressed(expression)
        return rows

    def _expressed(self, expression: Expression) -> int:
        if expression.operator in ("Exists", "DoesNotExist"):
            rows = self._keys.get(expression.key, 0)
        else:
            rows = 0
            for value in expression.values:
                rows |= self._pairs.get((expression.key, value), 0)
        return rows if expression.operator in ("Exists", "In") else self.all & ~rows

    def first(self, rows: int) -> str:
        """Return the first namespace, by name, of a bit set that is not empty."""
        return self.names[(rows & -rows).bit_length() - 1]


@dataclass(slots=True)
class Reach:
    """The namespaces in which each policy of a snapshot applies, and which policies can match the same
    pod."""

    namespaces: NamespaceIndex
    of: dict[Compiled, int] = field(default_factory=dict)
    """Bit set of the namespaces in which a policy applies."""
    _number: dict[Match, int] = field(default_factory=dict)
    _match: dict[Compiled, int] = field(default_factory=dict)
    _meet: dict[tuple[int, int], bool] = field(default_factory=dict)

    def steps(self, snapshot: Snapshot) -> Iterator[None]:
        """Fill in the indexes, piece by piece."""
        yield from self.namespaces.steps()
        for compiled in snapshot.policies:
            policy = compiled.policy
            picked = self.namespaces.picked(policy.match.namespace_selector)
            self.of[compiled] = picked if policy.namespace is None else self.namespaces.bit[policy.namespace] & self.namespaces.all
            self._match[compiled] = self._number.setdefault(policy.match, len(self._number))
            yield

    def like(self, compiled: Compiled) -> tuple[int, int]:
        """Return a key that is equal for policies that match the same pods of the same namespaces."""
        return self._match[compiled], self.of[compiled]

    def together(self, one: Compiled, other: Compiled) -> int:
        """Return the bit set of the namespaces in which one pod can match both."""
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
    """Return whether one pod can match both, namespaces aside; True if that cannot be decided."""
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
    """Return whether no set of labels satisfies both selectors, though each can be satisfied alone.

    That is so if there is a key that can have no value that both accept, and can't be missing either.
    """
    shared = one.keys & other.keys
    expressions = [*_expressions(one), *_expressions(other)] if shared else []
    return any(not may_all_hold([e for e in expressions if e.key == key]) for key in shared)


def _expressions(selector: LabelSelector) -> Iterator[Expression]:
    for key, value in selector.match_labels:
        yield Expression(key=key, operator="In", values=(value,))
    yield from selector.match_expressions
