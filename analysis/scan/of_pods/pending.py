"""GPU pods that wait, and what each lacks: as kube-scheduler's filters and Karpenter see the places that have what
it asks for. A pod for which nothing in the cluster can ever have a place is a finding of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from analysis.admission_preview import Admission
from analysis.scan.finding import Hit, Kind, Obstacle, PlaceReason, obstacle_of
from analysis.scan.of_nodes.node_pools import names_no_gpus
from analysis.scan.of_pods.rollouts import Rollouts
from analysis.scan.seen import GpuPod, ScannedCluster
from kube.pod import DEFAULT_SCHEDULER
from kube.scheduling import Blocker, Wants, wants
from kube.tree import Raw, apply_patch
from policies.facts.platform_detection import Detector
from policies.placement.fleet import OUTLOOKS, DelegatedNames, Fleet, Outlook, best, blockers, outlook
from policies.placement.together import MOST_PODS, room_for
from policies.placement.unchecked import in_order

_GROUP_WIDE = ("taint", "resource", "machines")
"""Reasons that all nodes of a group have."""
_ABSENT = ("resource", "machines")
"""Reasons by which a place has not what is asked for at all: it is named only where every place is like that."""

_FAR = {"capacity": 0, "ports": 0, "unschedulable": 0, "not-ready": 0, "label": 4, "name": 4, "machines": 8, "resource": 8}
"""How far each obstacle keeps a place: what ends by itself least, then what a toleration or a limit fixes, then another kind of node."""


class PodObstacles(NamedTuple):
    """What is in the way of one pod."""

    known: Outlook
    """The best on any place that is known."""
    never: bool
    """True if it is certain that nothing can ever run it."""
    reasons: tuple[PlaceReason, ...]
    unjudged: tuple[str, ...]
    room: int
    """How many such pods have a place now; -1 if that is not known, or without a bound."""


def find(seen: ScannedCluster, admission: Admission) -> Iterator[Hit]:
    """Yield each pod without a node, but those that misspell what they ask for."""
    judged: dict[int, PodObstacles] = {}
    plain, rolling = without_gpus(seen), Rollouts(seen)
    for pod in seen.pods:
        if pod.stored.node or any(name in seen.catalog.misspellings for name in pod.names):
            continue
        whole = seen.cluster.waiting.get((pod.stored.namespace, pod.stored.name), pod.raw)
        now = judged.get(id(whole)) or judged.setdefault(id(whole), find_obstacles(whole, seen, plain))
        if now.known == "later" and (wait := rolling.find_wait(pod, now.reasons)):
            yield Hit("rollout-waits", pod, wait, None, ("Deployment",))
            continue
        kind: Kind = "never-fits" if now.never else "pending"
        values = (("reasons", now.reasons), ("outlook", now.known), ("unjudged", now.unjudged), ("room", now.room))
        yield Hit(kind, pod, values, _fixed(pod, whole, now, seen, admission, plain))


def _fixed(pod: GpuPod, whole: Raw, now: PodObstacles, seen: ScannedCluster, admission: Admission, plain: frozenset[str]) -> bool | None:
    """Return whether policies would have given it a place; None where no place is missing, so that they can fix nothing."""
    if now.known != "never":
        return None
    patch = admission.of(pod.stored).patch
    if not patch:
        return False
    patched = wants(apply_patch(whole, patch))
    return any(outlook(found) != "never" for _, found in _places(patched, seen, plain))


def find_obstacles(whole: Raw, seen: ScannedCluster, plain: frozenset[str]) -> PodObstacles:
    """Return what is in the way of a pod that asks for devices."""
    wanted = wants(whole)
    places = list(_places(wanted, seen, plain))
    known: Outlook = min((outlook(found) for _, found in places), key=OUTLOOKS.index, default="never")
    everywhere = known == "never" and not seen.fleet.open_ended and wanted.scheduler == DEFAULT_SCHEDULER
    never = everywhere or best(wanted, seen.fleet) == "never"
    unread = ("nodes",) if "Node" in seen.cluster.unread else ()
    unjudged = in_order((*wanted.unjudged, *unread, *(seen.fleet.unchecked(wanted) if known == "now" else ())))
    # without a node that may be read nothing is lacking
    reasons = _reasons(places, wanted, seen.fleet.delegated) if places or not seen.fleet.open_ended else ()
    room = room_for([(wanted, MOST_PODS)], seen.fleet).now if known == "now" else None
    return PodObstacles(known, never, tuple(reasons), unjudged, -1 if room is None else room)


class _PendingPlace(NamedTuple):
    name: str
    nodes: int


def without_gpus(seen: ScannedCluster) -> frozenset[str]:
    """Return the NodePools that name machines of which none can have a GPU."""
    found = set()
    detector = Detector(seen.catalog)
    for name, pool in seen.cluster.facts.nodepools.items():
        platform = seen.catalog.platforms.get(detector.of_pool(pool).platform)
        if platform is not None and names_no_gpus(pool, platform):
            found.add(name)
    return frozenset(found)


def _places(wanted: Wants, seen: ScannedCluster, plain: frozenset[str]) -> Iterator[tuple[_PendingPlace, tuple[Blocker, ...]]]:
    """Yield each group of nodes with what is in the way on the node of it that comes nearest, and each NodePool."""
    fleet: Fleet = seen.fleet
    for group in fleet.groups:
        nearest: tuple[Blocker, ...] | None = None
        for node in group.nodes:
            found = blockers(wanted, node, fleet)
            if nearest is None or _distance(found) < _distance(nearest):
                nearest = found
            if not found or any(one.kind in _GROUP_WIDE and not one.passing for one in found):
                break
        if nearest is not None:
            what, name = seen.nodes[group.nodes[0].name].group
            yield _PendingPlace(f"{what} {name}", len(group.nodes)), nearest
    for pool in fleet.pools:
        if pool.name not in plain:
            yield _PendingPlace(f"new nodes of NodePool {pool.name}", 0), blockers(wanted, pool, fleet)


def _distance(found: tuple[Blocker, ...]) -> tuple[int, int, int]:
    """Return how far a place is from having the pod: a node with more of what is short of capacity is nearer."""
    return OUTLOOKS.index(outlook(found)), len(found), -max((one.have for one in found if one.kind == "capacity"), default=0)


def _reasons(places: list[tuple[_PendingPlace, tuple[Blocker, ...]]], wanted: Wants, delegated: DelegatedNames) -> Iterator[PlaceReason]:
    """Yield why the pod is on none of the places that have what it asks for, those that are alike together; where none has it, what
    comes nearest."""
    having = [(place, found) for place, found in places if not any(one.kind in _ABSENT and _device(one) for one in found)]
    merged: dict[tuple[Obstacle, ...], list[_PendingPlace]] = {}
    for place, found in having or _most(places, wanted, delegated):
        merged.setdefault(tuple(obstacle_of(one) for one in found), []).append(place)

    def far(one: tuple[tuple[Obstacle, ...], list[_PendingPlace]]) -> tuple[int, int]:
        return sum(_FAR.get(found.kind, 1) for found in one[0]), -sum(place.nodes for place in one[1])

    for obstacles, named in sorted(merged.items(), key=far):
        yield PlaceReason(tuple(dict.fromkeys(place.name for place in named)), sum(place.nodes for place in named), obstacles)


def _most(
    places: list[tuple[_PendingPlace, tuple[Blocker, ...]]], wanted: Wants, delegated: DelegatedNames
) -> list[tuple[_PendingPlace, tuple[Blocker, ...]]]:
    """Return, for each device that the pod asks for and that is missing, the most that any place has of it."""
    found: dict[str, tuple[_PendingPlace, Blocker]] = {}
    for place, every in places:
        for one in every:
            if one.kind in _ABSENT and _device(one) and (one.key not in found or one.have > found[one.key][1].have):
                found[one.key] = place, one
    return [(place if one.have else _PendingPlace("", 0), (one,)) for place, one in found.values()] or [
        (_PendingPlace("", 0), (Blocker("resource", name, need=need),))
        for name, need in wanted.requests.items()
        if "/" in name and name not in delegated
    ]


def _device(one: Blocker) -> bool:
    return "/" in one.key
