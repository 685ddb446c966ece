"""No place: the author of a pod that nothing in the cluster can run learns why.

Reads   the accelerators that the pod requests, its tolerations, nodeSelector and required terms, readable claims; every node and
        NodePool
Writes  nothing
Checks  nothing: a remark names the place that comes nearest. It needs every node and NodePool (``policies.facts.places``) and
        follows ``policies.placement``. Another one names the resource to request in place of a claim: Karpenter ignores pods with
        claims (aws/karpenter-provider-aws#9519; its option --ignore-dra-requests is on by default), so the pod waits for ever if no
        node has devices of the vendor. A node with labels of GPUs that offers none may have a DRA driver
Never   rejects a place by a label of another key than the catalog's; remarks on a pod that others place: another scheduler, a
        queue, ``spec.nodeName``, claims, or a fraction of a device
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kube.node import Node
from kube.pod import DEFAULT_SCHEDULER, NONE, TOLERATIONS
from kube.requests import PODS
from kube.scheduling import AffinityTerm, Blocker, Wants, of_node, wants
from policies.facts.places import KnownPlaces
from policies.messages import At, Phrase, phrase
from policies.placement.fleet import OUTLOOKS, outlook
from policies.placement.pool_blockers import of_pool
from policies.placement.pools import Pool
from policies.planning.plan import ReviewedPod
from policies.planning.prepared_places import PreparedPlaces, prepare_places
from policies.pods.actors import KUEUE_LABELS
from policies.rules.node_affinity import NAME
from policies.state.snapshot import Snapshot
from policies.verdict import Remark

CODE, NOT_FROM_ZERO = "BERTH-223", "BERTH-243"
_COUNTED = ("gpu", "mig", "shared", "other")
"""Kinds of resource that kube-scheduler counts on nodes; parts of a device are an extender's."""
_CUT = ("mig", "shared")
_SHOWN = 3
"""Resource names, taints and values that are named: the sentence is cut at 256 characters."""


def check_admitted(subject: ReviewedPod, snapshot: Snapshot) -> Iterator[Remark]:
    """Yield the remarks on a created pod that no place can run, or that only makes Karpenter wait."""
    if snapshot.known_places is not None:
        yield from _nowhere(subject, snapshot, snapshot.known_places)
        yield from _not_from_zero(subject, snapshot, snapshot.known_places)


def _nowhere(subject: ReviewedPod, snapshot: Snapshot, known: KnownPlaces) -> Iterator[Remark]:
    """Yield the remark on a pod that no place can run."""
    places, pod = prepare_places(snapshot, known), None
    if snapshot.max_mode != "Audit" and not snapshot.cluster.device_classes and _is_checked(subject, known):
        pod = _asked(subject, places)
    if pod is None:
        return
    on_nodes = [(node, of_node(pod, node)) for node in places.nodes if pod.requests.keys() & node.allocatable.keys()]
    if any(outlook(found) != "never" for _, found in on_nodes):
        return
    on_pools = [(pool, of_pool(pod, pool)) for pool in places.pools]
    if all(outlook(found) == "never" for _, found in on_pools):
        yield Remark(code=CODE, found=_sentence(pod, on_nodes, on_pools, places), rule=NAME)


def _not_from_zero(subject: ReviewedPod, snapshot: Snapshot, places: KnownPlaces) -> Iterator[Remark]:
    """Yield the remark on a pod with claims alone for devices that no node has."""
    devices = subject.devices
    vendors = {vendor for claim in devices.claimed for vendor in claim.vendors}
    if devices.asked or len(vendors) != 1 or not places.pools:
        return
    (vendor,) = vendors
    known = (snapshot.catalog.resource(name) for name in places.resources)
    whole = snapshot.catalog.whole.get(vendor)
    if whole is None or any(one is not None and one.vendor == vendor for one in known):
        return
    count = max(1, sum(claim.count.least for claim in devices.claimed))
    classes = sorted(name for name, one in snapshot.cluster.device_classes.items() if one.extended == whole)
    served = phrase("by class", device_class=classes[0]) if classes else phrase("by plugin")
    yield Remark(code=NOT_FROM_ZERO, found=phrase("text", resource=whole, count=count, served=served), rule=NAME)


def _is_checked(subject: ReviewedPod, places: KnownPlaces) -> bool:
    """Return whether kube-scheduler alone decides on the pod's place, by what nodes offer. Slices that no node has now are not judged:
    some operators cut a device when a pod asks for one."""
    pod, devices = subject.pod, subject.devices
    if subject.actor.affinity != "write" or subject.actor.mirror or devices.claimed or pod.claims or devices.fraction != NONE:
        return False
    if any(label in pod.labels for label in KUEUE_LABELS) or pod.raw["spec"].get("schedulingGates"):
        return False  # who lifts a gate may add tolerations
    kinds = {one.resource.name: one.resource.kind for one in devices.asked}
    return all(kind in _COUNTED and (kind not in _CUT or name in places.resources) for name, kind in kinds.items()) and bool(kinds)


def _asked(subject: ReviewedPod, places: PreparedPlaces) -> Wants | None:
    """Return what the pod wants, as far as it is judged; None if nothing of it is."""
    pod = wants(subject.pod.raw)
    names = {one.resource.name for one in subject.devices.asked}
    if pod.scheduler != DEFAULT_SCHEDULER or pod.node or pod.unreadable & names or any(term.names for term in pod.terms or ()):
        return None
    selector = tuple(one for one in pod.selector if one.key in places.keys)
    requests = {name: need for name, need in pod.requests.items() if name in names and need > 0}
    return replace(pod, requests=requests, selector=selector, terms=_known(pod.terms, places.keys)) if requests else None


def _known(terms: tuple[AffinityTerm, ...] | None, keys: frozenset[str]) -> tuple[AffinityTerm, ...] | None:
    """Return the terms with the expressions that are judged; None if of one of them nothing is."""
    if terms is None:
        return None
    left = tuple(term._replace(labels=tuple(one for one in term.labels if one.key in keys)) for term in terms)
    return None if any(new.empty and not old.empty for new, old in zip(left, terms, strict=True)) else left


def nearest_place(subject: ReviewedPod, snapshot: Snapshot) -> tuple[Blocker, ...] | None:
    """Return what is in the pod's way on the place that comes nearest to having it, of what is judged here; () if nothing is, so that what
    is there may be taken. What may end by itself is nearer than what may not. None where it can't be told: places may be unknown."""
    if snapshot.known_places is None:
        return None
    places = prepare_places(snapshot, snapshot.known_places)
    pod = _asked(subject, places)
    if pod is None or not (places.nodes or places.pools):
        return None
    found = [of_node(pod, node) for node in places.nodes] + [of_pool(pod, pool) for pool in places.pools]
    least = min(found, key=_distance)
    if any(blocker.kind == "resource" for blocker in least) and snapshot.cluster.device_classes:
        return None  # a class may offer it
    return tuple(sorted(least, key=lambda blocker: (blocker.passing, not blocker.certain)))


def _distance(found: tuple[Blocker, ...]) -> tuple[int, bool, int]:
    return OUTLOOKS.index(outlook(found)), any(blocker.kind in ("resource", "machines") for blocker in found), len(found)


# --- the sentence -----------------------------------------------------------------------------------------------------


def _sentence(
    pod: Wants, on_nodes: list[tuple[Node, tuple[Blocker, ...]]], on_pools: list[tuple[Pool, tuple[Blocker, ...]]], places: PreparedPlaces
) -> Phrase:
    """Return the fact about the place that comes nearest, and what to change."""
    made = phrase("no pool either") if places.pools else phrase("nothing more")
    enough = [(len(found), found) for _, found in on_nodes if not any(blocker.kind == "resource" for blocker in found)]
    if enough:
        _, least = min(enough, key=lambda one: one[0])
        return _apart(pod, least, phrase("such nodes", devices=_devices(pod)), made)
    buyable = [(pool, found) for pool, found in on_pools if all(blocker.kind in ("taint", "label") for blocker in found)]
    if buyable:
        pool, found = min(buyable, key=lambda one: len(one[1]))
        return _apart(pod, found, phrase("made", devices=_devices(pod), pool=pool.name), phrase("nothing more"))
    nowhere = phrase("node or pool") if places.pools else phrase("node")
    for name, need in pod.requests.items():
        most = max((node.allocatable.get(name, 0) for node in places.nodes), default=0)
        most = max(most, *(blocker.have for _, found in on_pools for blocker in found if _is_count(blocker, name)), 0)
        if most < need:
            if most > 0:
                return phrase("too many", resource=name, need=need, most=most, places=nowhere)
            offered = tuple(sorted({key for node in places.nodes for key in node.allocatable} - {PODS}))[:_SHOWN]
            kind = "none offered" if offered else "nothing offered"
            return phrase(kind, resource=name, places=nowhere, **({"offered": offered} if offered else {}))
    return phrase("not together", devices=_devices(pod), places=nowhere)


def _is_count(blocker: Blocker, name: str) -> bool:
    return blocker.kind in ("machines", "limits") and blocker.key == name


def _devices(pod: Wants) -> str:
    return " and ".join(f"{need} {name}" for name, need in list(pod.requests.items())[:_SHOWN])


def _apart(pod: Wants, found: Iterable[Blocker], where: Phrase, made: Phrase) -> Phrase:
    """Return the sentence on places that have enough devices, and from which something else keeps the pod."""
    hard = [blocker for blocker in found if not blocker.passing]
    taints = [_taint(b) for b in hard if b.kind == "taint"]
    if taints:
        return phrase("tainted", where=where, taints=tuple(taints[:_SHOWN]), pools=made, path=At(TOLERATIONS))
    first = hard[0]
    values = tuple(first.values[:_SHOWN])
    asked = phrase("there", key=first.key)
    if values:
        named = first.path[-1:] == (first.key,)
        asked = phrase("value", values=values) if named else phrase("compared", key=first.key, operator=first.operator, values=values)
    shown = phrase("has", value=first.found) if first.found else phrase("has not")
    return phrase("labelled", where=where, asked=asked, found=shown, pools=made, path=At(first.path))


def _taint(blocker: Blocker) -> str:
    """Return a taint as kubectl writes it."""
    return f"{blocker.key}{f'={blocker.found}' if blocker.found else ''}:{blocker.operator}"
