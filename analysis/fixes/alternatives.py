"""Other devices on which a pod would run sooner or for less: each a small change of the pod, admitted by the policies, judged
against the places of the cluster, and priced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from analysis.admission_preview import AdmittedPod
from analysis.fixes import cautions
from analysis.fixes.cautions import AuthorRequests, Caution
from analysis.fixes.edits import changed, put, rename_resource
from analysis.fixes.placement import SOON, Placement, Placer, Soon, better
from analysis.fixes.smallest import Admit, offered_amounts
from analysis.fixes.steps import Step, edits_of
from analysis.fixes.steps import alternatives as ways
from analysis.fixes.targets import KINDS, FixTarget, FleetOffers, nodes_of
from catalog import Catalog, Resource
from catalog.prices import Prices
from kube.node import Node
from kube.pod import NODE_SELECTOR, containers_of
from kube.scheduling import Blocker, Wants, wants
from kube.tree import ReadOnly, map_at, value_at
from policies.offers.table import Table
from policies.placement.fleet import Fleet, Place, blockers
from policies.placement.pools import Pool
from policies.verdict import Edit

MOST_TRIED = 30
"""Variants that policies judge: each takes one to three milliseconds."""
MOST_EACH = 3
"""Alternatives of one ``Soon`` that are searched: a person compares a handful."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternativePod:
    """One change of the pod as its author wrote it, and what it comes to."""

    edits: tuple[Edit, ...]
    resource: str
    """That the pod asks for then, as admitted."""
    count: int
    placement: Placement
    cautions: tuple[Caution, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternatives:
    """The outcome of a search: those that are sooner or cheaper than ``as_written``, the soonest and cheapest first."""

    as_written: Placement
    found: tuple[AlternativePod, ...] = ()
    denied: int = 0
    """Variants that policies deny."""
    tried: int = 0


class AlternativeSearch:
    """Searches alternatives of pods in one fleet."""

    def __init__(self, fleet: Fleet, catalog: Catalog, prices: Prices, tables: Mapping[str, Table]) -> None:
        self._fleet = fleet
        self._catalog = catalog
        self._tables = tables
        self._places = FleetOffers(catalog, prices)
        self._placer = Placer(fleet, prices, self._places)

    def alternatives(self, pod: ReadOnly, admit: Admit) -> Alternatives | None:
        """Return the alternatives of a pod, as its author wrote it; None if it does not ask for devices of one kind that have
        others in their place, or if it is denied as it is."""
        admitted = admit(pod)
        name, asked = self._asked(wants(pod)), self._asked(wants(admitted.pod))
        if admitted.violations or name is None or asked is None:
            return None
        before = self._placer.of(wants(admitted.pod), asked)
        words = cautions.read_author_requests(pod, name, before.device, self._catalog, self._tables)
        found: dict[str, AlternativePod | None] = {}
        tried = forbidden = 0
        each: dict[Soon, int] = dict.fromkeys(SOON, 0)
        for likely, target in self._promising(pod, name, before):
            if tried >= MOST_TRIED:
                break
            if each[likely] >= MOST_EACH:
                continue
            tried += 1
            edits, then = self._variant(pod, name, target, admit)
            if then.violations:
                forbidden += 1
            if not edits or then.violations or (key := repr(edits)) in found:
                continue
            found[key] = one = self._evaluate(edits, then.pod, words, target)
            if one is not None and better(one.placement, before):
                each[one.placement.soon] += 1
        sooner = [one for one in found.values() if one is not None and better(one.placement, before)]
        sooner.sort(key=_order)
        return Alternatives(as_written=before, found=tuple(_distinct(sooner)), denied=forbidden, tried=tried)

    def _asked(self, wanted: Wants) -> Resource | None:
        names = [name for name, need in wanted.requests.items() if need > 0 and "/" in name]
        known = [found for name in names if (found := self._catalog.resource(name)) is not None]
        return known[0] if len(known) == 1 and known[0].kind in KINDS else None

    def _promising(self, pod: ReadOnly, name: Resource, before: Placement) -> list[tuple[Soon, FixTarget]]:
        """Return the targets that may be sooner or cheaper, the most promising first: by room on nodes, and price."""
        wanted = wants(pod)
        count = wanted.requests[name.name]
        found: list[tuple[int, float, int, Soon, FixTarget]] = []
        for number, target in enumerate(self._places.targets(self._fleet, name.vendor)):
            if target.resource != name.name and self._several(pod, name.name):
                continue
            amounts = {key: need for key, need in wanted.requests.items() if key != name.name} | {target.resource: count}
            soon = _room(target, amounts)
            usd = None if target.device.usd is None else target.device.usd * count
            likely = Placement(soon=soon, capacity=target.capacity, usd=usd)
            if soon != "never" and (usd is None or better(likely, before)):
                found.append((SOON.index(soon), float("inf") if usd is None else usd, number, soon, target))
        return [(soon, target) for *_, soon, target in sorted(found, key=lambda one: one[:3])]

    def _several(self, pod: ReadOnly, name: str) -> bool:
        """Return whether a container asks for more than one device: what makes one program of several is not a matter of names."""
        return any(wants({"spec": {"containers": [one]}}).requests.get(name, 0) > 1 for _, one in containers_of(map_at(pod, "spec")))

    def _variant(self, pod: ReadOnly, name: Resource, target: FixTarget, admit: Admit) -> tuple[tuple[Edit, ...], AdmittedPod]:
        """Return the edits by which the pod goes to a target, and what becomes of the pod with them; no
        edits if words of the author's keep it away that are not about machines."""
        first = tuple(chain(rename_resource(pod, name.name, target.resource), _pinned(pod, target.labels)))
        then = admit(changed(pod, first))
        if then.violations:
            return first, then
        place = self._nearest(then.pod, target)
        found = [one for one in blockers(then.pod, place, self._fleet) if not one.passing]
        if not found:
            return first, then
        steps = self._steps(found, changed(pod, first), place)
        if steps is None:
            return (), then
        edits = (*first, *edits_of(steps, changed(pod, first)))
        return edits, admit(changed(pod, edits))

    def _nearest(self, then: ReadOnly, target: FixTarget) -> Place:
        """Return the node of the target with the least in the way of the pod, or the NodePool."""
        wanted, nodes = wants(then), nodes_of(target)
        if isinstance(target.place, Pool):
            return target.place
        return min(nodes[:MOST_TRIED], key=lambda node: len(blockers(wanted, node, self._fleet)))

    def _steps(self, found: Sequence[Blocker], pod: ReadOnly, place: Place) -> list[Step] | None:
        """Return the steps that fix these blockers; None if one of them needs more than tolerations and labels of machines."""
        labels = offered_amounts(place, {})
        for blocker in found:
            about_machines = blocker.kind in ("label", "machines") and cautions.is_placement(blocker.key, self._catalog)
            if blocker.kind != "taint" and not about_machines:
                return None
        each = ways(found, pod, labels, self._catalog)
        chosen = []
        for alternatives in each if each is not None else ():
            way = next((way for way in alternatives if all(step.kind in ("tolerate", "relabel") for step in way)), None)
            if way is None:
                return None
            chosen += list(way)
        return chosen if each is not None else None

    def _evaluate(self, edits: tuple[Edit, ...], then: ReadOnly, words: AuthorRequests, target: FixTarget) -> AlternativePod | None:
        wanted = wants(then)
        asked = self._asked(wanted)
        if asked is None:
            return None
        placement = self._placer.of(wanted, asked)
        if placement.soon == "never":
            return None
        placement = placement if placement.capacity is not None else replace(placement, capacity=target.capacity)
        named = tuple(cautions.find_cautions(edits, words, asked, placement.device, placement.capacity, self._catalog))
        return AlternativePod(edits=edits, resource=asked.name, count=wanted.requests[asked.name], placement=placement, cautions=named)


def _room(target: FixTarget, amounts: Mapping[str, int]) -> Soon:
    """Return when a target has room for these amounts, whatever else is in the way."""
    if isinstance(target.place, Pool):
        return "made"
    if any(target.place.allocatable.get(name, 0) < need for name, need in amounts.items()):
        return "never"
    free: Callable[[Node, str], int | None] = Node.free
    for node in nodes_of(target):
        if not node.cordoned and all((left := free(node, name)) is None or left >= need for name, need in amounts.items()):
            return "now"
    return "later"


def _pinned(pod: ReadOnly, labels: Mapping[str, str]) -> Iterator[Edit]:
    written = value_at(pod, NODE_SELECTOR)
    for key, value in labels.items():
        before = written.get(key) if isinstance(written, Mapping) else None
        if before != value:
            yield put((*NODE_SELECTOR, key), value, "add" if before is None else "replace")


def _order(one: AlternativePod) -> tuple[int, float, bool, int]:
    usd = one.placement.usd
    return SOON.index(one.placement.soon), float("inf") if usd is None else usd, one.placement.capacity != "spot", len(one.edits)


def _distinct(found: Sequence[AlternativePod]) -> Iterator[AlternativePod]:
    """Yield of those that come to the same the one with the fewest edits, which comes first."""
    seen = set()
    for one in found:
        device = one.placement.device
        key = (one.placement.soon, one.resource, device and device.model, device and device.memory_gb, one.placement.capacity)
        if key not in seen or device is None:
            seen.add(key)
            yield one
