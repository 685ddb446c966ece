"""The smallest change of a pod that policies deny, by which they admit it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace

from analysis.admission_preview import AdmittedPod
from analysis.fixes.edits import changed
from analysis.fixes.smallest import MOST_TRIED, Admit, PodChange, SearchResult, smallest
from analysis.fixes.steps import WEIGHTS, Step, edits_of, steps_of
from catalog import Catalog
from kube.tree import ReadOnly
from policies.placement.fleet import OUTLOOKS, Fleet, Outlook, best
from policies.verdict import Edit, Violation

MOST_COMPARED = 8
"""Changes of as many steps that are compared by whether the cluster has a place for the pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SteppedPod:
    """The pod with some steps."""

    change: PodChange
    pod: ReadOnly
    admitted: AdmittedPod

    @property
    def denied(self) -> tuple[Violation, ...]:
        return self.admitted.violations

    @property
    def weight(self) -> int:
        return sum(WEIGHTS[step.kind] for step in self.change.steps)


def smallest_admitted(pod: ReadOnly, fleet: Fleet | None, catalog: Catalog, admit: Admit, most: int = MOST_TRIED) -> SearchResult:
    """Return the change with the fewest steps by which policies admit a pod that they deny; of those with as many the gentlest
    with which some place may run it. Where none does, the steps by which one takes it follow.

    ``pod``: as its author wrote it. ``fleet``: None if no place is known. ``most``: changes that are judged.
    """
    tries = _Tries(admit, most)
    compared: list[_SteppedPod] = []
    for state in _admitted(pod, tries):
        if compared and (len(state.change.steps) > len(compared[0].change.steps) or len(compared) == MOST_COMPARED):
            break
        compared.append(state)
    if not compared:
        return SearchResult(fix=None)
    if fleet is None:
        return SearchResult(fix=compared[0].change, admits=True)
    chosen = min(compared, key=lambda state: _rank(state, fleet))
    fix, then = chosen.change, best(chosen.admitted.pod, fleet)
    if then != "never":
        return SearchResult(fix=fix, admits=True, then=then)
    further = smallest(chosen.pod, fleet, catalog, admit, max(1, tries.left)).fix
    if further is None:
        return SearchResult(fix=fix, admits=True, then="never")
    both = replace(further, steps=(*fix.steps, *further.steps), edits=(*fix.edits, *further.edits))
    return SearchResult(fix=both, admits=True, then="now")


def _rank(state: _SteppedPod, fleet: Fleet) -> tuple[bool, int, int]:
    found: Outlook = best(state.admitted.pod, fleet)
    return found == "never", state.weight, OUTLOOKS.index(found)


class _Tries:
    """Evaluates changes, so many at most."""

    def __init__(self, admit: Admit, most: int) -> None:
        self._admit = admit
        self.left = most

    def state(self, steps: tuple[Step, ...], edits: tuple[Edit, ...], pod: ReadOnly) -> _SteppedPod:
        self.left -= 1
        return _SteppedPod(change=PodChange(steps=steps, edits=edits, place=None), pod=pod, admitted=self._admit(pod))


def _admitted(pod: ReadOnly, tries: _Tries) -> Iterator[_SteppedPod]:
    """Yield what policies admit, the fewest steps first: the one that has the fewest steps and denials together is looked at
    next, as each denial is a step more."""
    first = tries.state((), (), pod)
    waiting: list[tuple[int, int, int, _SteppedPod]] = [(len(first.denied), 0, 0, first)]
    seen: set[str] = set()
    number = 0
    while waiting:
        *_, state = heapq.heappop(waiting)
        if not state.denied:
            yield state
            continue
        for steps in (steps_of(fix, state.pod) for fix in state.denied[0].fixes):
            added = edits_of(steps, state.pod)
            edits = (*state.change.edits, *added)
            if tries.left <= 0:
                break
            if not steps or (key := repr(sorted(map(repr, edits)))) in seen:
                continue
            seen.add(key)
            then = tries.state((*state.change.steps, *steps), edits, changed(state.pod, added))
            if all(violation.key != state.denied[0].key for violation in then.denied):
                number += 1
                heapq.heappush(waiting, (len(then.change.steps) + len(then.denied), then.weight, number, then))
