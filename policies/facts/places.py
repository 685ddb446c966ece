"""What a cluster offers to pods that ask for accelerators, in a bounded form: the kinds of node with devices, each
once however many nodes are of it, and the NodePools.

A node that comes or goes changes nothing while others of its kind are there. Nothing is claimed of a cluster that may
have places which cannot be seen from here: ``places`` is None then.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kube.labels import CAST_AI, NODE_POOL, SCALED_BY_CLOUD
from kube.node import Node
from kube.taints import Taint, passes
from kube.tree import map_at, maps_in, text_of

NO_AUTOSCALER = ("k3s://", "rke2://", "kind://", "kwok://")
"""Beginnings of ``spec.providerID`` on machines that no autoscaler adds. Cluster Autoscaler knows its nodes by their provider ID,
so nodes without one are none of its."""
HasGpus = Callable[[Mapping[str, str]], bool]
"""Whether labels tell that a node has GPUs."""
IsAccelerator = Callable[[str], bool]
MOST_KINDS = 256
"""Kinds of node that are judged: a cluster has some for each type of machine and each set of taints."""


class NodePlace(NamedTuple):
    """One kind of node."""

    labels: tuple[tuple[str, str], ...] = ()
    """Those of ``platform_detection.node_keys``, sorted."""
    taints: tuple[Taint, ...] = ()
    devices: tuple[tuple[str, int], ...] = ()
    """(extended resource, capacity), sorted: a device that is not healthy now may be again."""
    pool: str = ""
    """Its NodePool."""
    scaled: bool = False
    """True if the cloud's own autoscaler may make more of them."""
    provided: bool = False
    """True if some autoscaler may: it has an ID by which one knows it."""


@functools.lru_cache(maxsize=4096)
def _shared(place: NodePlace) -> NodePlace:
    """Return the same object for equal kinds: 10,000 nodes have a few of them."""
    return place


def node_place(node: Node, labels: Mapping[str, str]) -> NodePlace:
    """Return the kind of a node. ``labels``: those of its labels that are read."""
    devices = ((name, amount) for name in node.extended if (amount := node.offered(name)) > 0)
    return _shared(
        NodePlace(
            labels=tuple(sorted(labels.items())),
            taints=tuple(sorted(node.taints)),
            devices=tuple(sorted(devices)),
            pool=node.labels.get(NODE_POOL, ""),
            scaled=any(key in node.labels for key in (*SCALED_BY_CLOUD, CAST_AI)),
            provided=bool(node.provider) and not node.provider.startswith(NO_AUTOSCALER),
        )
    )


def pool_spec(thing: Any) -> str:
    """Return what a NodePool makes, and how many at most, as JSON: alike for NodePools that are alike."""
    spec = map_at(thing, "spec")
    template, inner = map_at(spec, "template"), map_at(spec, "template", "spec")
    read = {name: inner[name] for name in ("nodeClassRef", "requirements", "taints", "startupTaints") if name in inner}
    labels = map_at(template, "metadata").get("labels")
    kept = {"template": {"metadata": {"labels": labels}, "spec": read}, **{k: spec[k] for k in ("limits", "replicas") if k in spec}}
    try:
        return json.dumps(kept, sort_keys=True, default=str)
    except (TypeError, RecursionError, ValueError):
        return ""


class KnownPlaces:
    """The places of a cluster of which all are known. Hashed once, equal if they offer the same."""

    __slots__ = ("_hash", "kinds", "pools", "prepared", "resources")

    def __init__(self, kinds: frozenset[NodePlace], pools: tuple[tuple[str, str], ...]) -> None:
        self.kinds = kinds
        self.pools = pools
        """(name, ``pool_spec``) of each NodePool, sorted."""
        self.resources = frozenset(name for kind in kinds for name, _ in kind.devices)
        """The resource names that nodes have."""
        self.prepared: Any = None
        """What ``policies.rules.no_place`` makes of them under the tables of their snapshot."""
        self._hash = hash((kinds, pools))

    def values(self, key: str) -> frozenset[str]:
        """Return the values of a label that nodes with devices have."""
        return frozenset(value for kind in self.kinds for name, value in kind.labels if name == key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, KnownPlaces) and (self.kinds, self.pools) == (other.kinds, other.pools))


def known(places: Iterable[NodePlace], specs: Mapping[str, str], has_gpus: HasGpus, is_accelerator: IsAccelerator) -> KnownPlaces | None:
    """Return what nodes of these kinds and these NodePools offer; None if there may be places besides, or if what some
    node has is not known yet. ``specs``: those of all NodePools."""
    distinct = set(places)
    if "" in specs.values() or any(_leaves_open(place, specs) for place in distinct):
        return None
    startup = _startup_keys(specs.values())
    kinds = set()
    for place in distinct:
        devices = tuple((name, number) for name, number in place.devices if is_accelerator(name))
        if not devices and has_gpus(dict(place.labels)):
            return None  # its device plugin, or a driver of claims, may still come
        if devices and place.provided and not place.pool:
            return None
        if devices:
            lasting = tuple(taint for taint in place.taints if not passes(taint.key, startup))
            kinds.add(NodePlace(labels=place.labels, taints=lasting, devices=devices, pool=place.pool))
    return KnownPlaces(frozenset(kinds), tuple(sorted(specs.items()))) if (kinds or specs) and len(kinds) <= MOST_KINDS else None


def _leaves_open(place: NodePlace, specs: Mapping[str, str]) -> bool:
    """Return whether a node shows that more may be made than NodePools tell."""
    return place.scaled or (place.provided and not specs) or bool(place.pool and place.pool not in specs)


def _startup_keys(specs: Iterable[str]) -> frozenset[str]:
    """Return the keys of taints that nodes of these NodePools have only while they start."""
    templates = (map_at(json.loads(spec), "template", "spec") for spec in specs)
    return frozenset(text_of(taint.get("key")) for one in templates for taint in maps_in(one.get("startupTaints")))
