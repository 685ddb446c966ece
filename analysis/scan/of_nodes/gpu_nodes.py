"""GPU nodes that keep no other pods off, and the pods without devices that are on them."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from analysis.audit.stored_pod import Controller
from analysis.scan.finding import MOST_NAMED, Finding, FindingSubject
from analysis.scan.seen import GpuNode, ScannedCluster
from catalog import Catalog

OF_NODES = ("DaemonSet", "Node")
"""Owners whose pods belong on every node."""


def tainted(node: GpuNode, catalog: Catalog) -> bool:
    """Return whether a taint keeps pods off that do not tolerate it, for as long as the node lives: those that say that a
    node is not ready, or going away, pass."""
    return any(
        taint.effect != "PreferNoSchedule" and not any(fnmatchcase(taint.key, glob) for glob in catalog.never_tolerate)
        for taint in node.taints
    )


def find(seen: ScannedCluster) -> Iterator[Finding]:
    """Yield each group of GPU nodes without a taint, with the pods on them that have no device."""
    groups: dict[tuple[str, str], list[GpuNode]] = {}
    for node in seen.nodes.values():
        if node.devices and not tainted(node, seen.catalog):
            groups.setdefault(node.group, []).append(node)
    if not groups:
        return
    of_node: dict[str, list[tuple[str, Controller | None, int]]] = {}
    for plain, count in seen.cluster.plain.items():
        if plain.owner is None or plain.owner.kind not in OF_NODES:
            of_node.setdefault(plain.node, []).append((plain.namespace, plain.owner, count))
    for (what, name), nodes in sorted(groups.items()):
        plain_pods = [one for node in nodes for one in of_node.get(node.name, ())]
        prices = [usd for node in nodes if (usd := node.usd_whole) is not None]
        yield Finding(
            kind="nodes-untainted",
            where=FindingSubject(what, "", name),
            values={"plain": sum(count for _, _, count in plain_pods), "owners": _owners(plain_pods)},
            nodes=len(nodes),
            names=tuple(sorted(node.name for node in nodes)[:MOST_NAMED]),
            gpus=sum(node.gpus or 0 for node in nodes),
            usd=sum(prices) if prices else None,
            rests_on=("Pod",),
        )


def _owners(plain_pods: list[tuple[str, Controller | None, int]]) -> tuple[str, ...]:
    """Return the owners that have most pods there, as ``web/ReplicaSet/shop-5d4f``."""
    counts: dict[str, int] = {}
    for namespace, owner, count in plain_pods:
        name = f"{namespace}/Pod" if owner is None else f"{namespace}/{owner.kind}/{owner.name}"
        counts[name] = counts.get(name, 0) + count
    return tuple(sorted(counts, key=lambda name: (-counts[name], name))[:MOST_NAMED])
