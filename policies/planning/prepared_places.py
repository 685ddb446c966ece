"""The places of a cluster, of which all nodes and NodePools are known, in the forms in which decisions compare pods with them."""

from __future__ import annotations

import functools
import json
import operator
from dataclasses import dataclass

from kube.node import Node
from kube.requests import PODS
from policies.facts import platform_detection
from policies.facts.places import KnownPlaces, NodePlace
from policies.offers.known_slices import rows_of_node
from policies.placement.pools import Pool, PoolReader
from policies.planning.feasibility import everything
from policies.state.snapshot import Snapshot

_PODS = 2**20
"""Pods that a node may have: how many is not judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPlaces:
    """The places of a snapshot."""

    nodes: tuple[Node, ...]
    pools: tuple[Pool, ...]
    keys: frozenset[str]
    """Labels that are known of every node."""
    rows: int
    """The offers that some place may have. Feature discovery may still add the labels that a node lacks, and what only nodes of node
    templates have counts as there: the platform team declares it."""


def prepare_places(snapshot: Snapshot, places: KnownPlaces) -> PreparedPlaces:
    """Return the places in these forms, made once."""
    if places.prepared is None:
        reader = PoolReader(snapshot.catalog, snapshot.tables)
        read = (reader.read({"metadata": {"name": name}, "spec": json.loads(spec)}) for name, spec in places.pools)
        pools = tuple(pool for pool in read if pool is not None)
        places.prepared = PreparedPlaces(
            nodes=tuple(_node(place) for place in sorted(places.kinds, key=str)),
            pools=pools,
            keys=platform_detection.node_keys(snapshot.catalog),
            rows=_rows(snapshot, places, pools),
        )
    prepared: PreparedPlaces = places.prepared
    return prepared


def _node(place: NodePlace) -> Node:
    amounts = {**dict(place.devices), PODS: _PODS}
    return Node(name=place.pool, labels=dict(place.labels), taints=place.taints, allocatable=amounts, capacity=amounts, used=None)


def known_rows(snapshot: Snapshot) -> int:
    """Return the offers that some place of the cluster may have; all of them if there may be places that are not known."""
    places = snapshot.known_places
    return everything(snapshot) if places is None else prepare_places(snapshot, places).rows


def _rows(snapshot: Snapshot, places: KnownPlaces, pools: tuple[Pool, ...]) -> int:
    if any(pool.table is None for pool in pools):
        return everything(snapshot)
    of_nodes = (rows_of_node(table, kind) for table in snapshot.tables.values() for kind in places.kinds)
    of_templates = (rows for table in snapshot.tables.values() for rows in table.templated.values())
    return functools.reduce(operator.or_, (*of_nodes, *of_templates, *(pool.rows for pool in pools)), 0)
