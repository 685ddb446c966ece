"""The smallest change of a pod by which some place takes it, and which no policy denies."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, product

from analysis.admission_preview import AdmittedPod
from analysis.fixes.edits import changed
from analysis.fixes.steps import WEIGHTS, Offered, Step, alternatives, edits_of, steps_of
from catalog import Catalog
from kube.node import Node
from kube.scheduling import CLAIMS, Blocker, Kind, Wants, wants
from kube.tree import ReadOnly
from policies.placement.fleet import Fleet, Outlook, Place, best, blockers, outlook
from policies.placement.pool_blockers import most_devices
from policies.verdict import Edit, Violation

Admit = Callable[[ReadOnly], AdmittedPod]
"""Returns what becomes of a pod."""
Creatable = Callable[[ReadOnly], bool]
REPAIRED: tuple[Kind, ...] = ("missing", "in-flight")
"""Blockers that end when somebody repairs a node: no change to a pod ends them, and none is better than one that is for nothing else."""
MOST_OF_ONE = 64
"""Ways to fix one place that are tried: six blockers of two alternatives each."""
MOST_TRIED = 500
"""Changes that are judged: each takes a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodChange:
    """A change, and the place that takes the pod then."""

    steps: tuple[Step, ...]
    edits: tuple[Edit, ...]
    """Of the pod as its author wrote it."""
    place: Place | None
    """None if it was only searched what policies admit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The outcome of a search."""

    fix: PodChange | None
    forbidden: tuple[Violation, ...] = ()
    """Why policies deny a change of fewer steps, or the only one."""
    refused: bool = False
    """True if a place takes the pod with a change, and LimitRanges or ResourceQuotas of its namespace then refuse it."""
    admits: bool = False
    """True if the pod is denied as it is, and policies admit it with the change."""
    then: Outlook | None = None
    """What a pod that policies deny, or that selects by a misspelt value, comes to with the change; None if that is not known."""


def smallest(
    pod: ReadOnly, fleet: Fleet, catalog: Catalog, admit: Admit, most: int = MOST_TRIED, creatable: Creatable = lambda _: True
) -> SearchResult:
    """Return the change with the fewest steps; among these the gentlest, and a node before a NodePool.

    ``pod``: as its author wrote it; it is judged as it would be admitted. A pod that has a place needs none: its change has no
    step. ``most``: changes that are judged. ``creatable``: whether the limits of the namespace let a pod be created. Where the pod
    selects by a misspelt value, a change that writes the nearest known one comes before all others: that is what its author meant.
    """
    admitted = admit(pod)
    if admitted.violations:
        return SearchResult(fix=None, forbidden=admitted.violations)
    respelt = _respelt(pod, admitted)
    if respelt is not None:
        then = admit(changed(pod, respelt.edits))
        further = _first(pod, _after(respelt, pod, then, fleet, catalog), fleet, admit, most, creatable)
        if further.fix is not None:
            return further
        if not then.violations and best(then.pod, fleet) == "unknown":
            return SearchResult(fix=respelt, then="unknown")
    return _first(pod, _candidates(pod, admitted.pod, fleet, catalog), fleet, admit, most, creatable)


def _first(pod: ReadOnly, candidates: Iterator[PodChange], fleet: Fleet, admit: Admit, most: int, creatable: Creatable) -> SearchResult:
    """Return the first change by which its place takes the pod."""
    forbidden: tuple[Violation, ...] = ()
    refused = False
    for fix in islice(candidates, most):
        then = admit(changed(pod, fix.edits))
        if then.violations:
            forbidden = forbidden or then.violations
        elif fix.place is not None and not _lasting(blockers(then.pod, fix.place, fleet)):
            if not fix.steps or creatable(then.pod):
                return SearchResult(fix=fix, forbidden=forbidden)
            refused = True
    return SearchResult(fix=None, forbidden=forbidden, refused=refused)


def _respelt(pod: ReadOnly, admitted: AdmittedPod) -> PodChange | None:
    """Return the change that writes the nearest known values in place of misspelt ones; None if none is misspelt."""
    steps = tuple(chain.from_iterable(steps_of(fix, pod) for remark in admitted.remarks for fix in remark.fixes))
    return PodChange(steps=steps, edits=edits_of(steps, pod), place=None) if steps else None


def _after(respelt: PodChange, pod: ReadOnly, then: AdmittedPod, fleet: Fleet, catalog: Catalog) -> Iterator[PodChange]:
    """Yield that change with what may fix any place then, but for changes of the same values."""
    paths = {edit.path for edit in respelt.edits}
    for change in () if then.violations else _candidates(changed(pod, respelt.edits), then.pod, fleet, catalog):
        if all(edit.path[: len(path)] != path[: len(edit.path)] for edit in change.edits for path in paths):
            yield replace(change, steps=(*respelt.steps, *change.steps), edits=(*respelt.edits, *change.edits))


def _lasting(every: Sequence[Blocker]) -> list[Blocker]:
    """Return the blockers that a change of the pod has to end."""
    return [blocker for blocker in every if blocker.kind not in REPAIRED]


def _candidates(pod: ReadOnly, admitted: ReadOnly, fleet: Fleet, catalog: Catalog) -> Iterator[PodChange]:
    """Yield what may fix any place, the smallest first; places that are to be repaired last."""
    wanted = wants(admitted)
    waiting: list[tuple[bool, int, int, int, int, tuple[Step, ...], Place]] = []
    for rank, (place, found) in enumerate(_places(wanted, fleet)):
        lasting = _lasting(found)
        each = alternatives(lasting, pod, offered_amounts(place, wanted.requests), catalog)
        for number, ways in enumerate(islice(product(*each), MOST_OF_ONE) if each is not None else ()):
            steps = tuple(chain.from_iterable(ways))
            weight = sum(WEIGHTS[step.kind] for step in steps)
            heapq.heappush(waiting, (len(lasting) < len(found), len(steps), weight, rank, number, steps, place))
    while waiting:
        *_, steps, place = heapq.heappop(waiting)
        yield PodChange(steps=steps, edits=edits_of(steps, pod), place=place)


def _places(wanted: Wants, fleet: Fleet) -> Iterator[tuple[Place, Sequence[Blocker]]]:
    """Yield each kind of place once: of nodes with the same blockers the first."""
    for group in fleet.groups:
        seen = set()
        for node in group.nodes:
            found = blockers(wanted, node, fleet)
            if found not in seen:
                seen.add(found)
                yield node, found
    for pool in fleet.pools:
        yield pool, blockers(wanted, pool, fleet)


def offered_amounts(place: Place, requests: Mapping[str, int]) -> Offered:
    """Return what a place has for a pod: of a node what is free, of a NodePool what one machine of it has at most."""
    if isinstance(place, Node):
        amounts = {name: here if (free := place.free(name)) is None else free for name, here in place.allocatable.items()}
        if physical := len(place.registered):
            amounts = {name: min(here, physical) if "/" in name else here for name, here in amounts.items()}
        return Offered(labels={key: (value,) for key, value in place.labels.items()}, amounts=amounts, shared=place.used is None)
    labels = {key: tuple(sorted(one.values)) for key, one in place.requirements.items() if not one.complement}
    return Offered(labels=labels, amounts=most_devices(place), shared=bool(place.unchecked))


def runs(pod: ReadOnly, fleet: Fleet) -> list[Place]:
    """Return the places that take a pod as it is; none for a pod with claims, of which drivers decide."""
    wanted = wants(pod)
    every: list[Place] = [] if CLAIMS in wanted.unjudged else [*fleet.nodes, *fleet.pools]
    return [place for place in every if outlook(blockers(wanted, place, fleet)) == "now"]
