"""The policy for training and other runs to an end: time for a last checkpoint, a mark that keeps the node, capacity that stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from analysis.scan.finding import Hit, Kind
from analysis.scan.of_nodes.node_pools import pools
from analysis.scan.seen import RUNS, GpuPod, ScannedCluster
from analysis.scan.suggestions.suggestion import Suggestion
from kube import duration
from kube.tree import map_at

CHECKPOINT = 30 * 60
"""Seconds for a last checkpoint, as in the shipped training policy."""
OVER = "2h"


def suggest(seen: ScannedCluster, hits: Sequence[Hit]) -> Iterator[Suggestion]:
    """Yield it where something is found of runs."""
    kinds: tuple[Kind, ...] = ("run-unprotected", "run-on-spot")
    found = {kind: [hit for hit in hits if hit.kind == kind] for kind in kinds}
    runs = [pod for pod in seen.pods if pod.role == "run"]
    if not any(found.values()):
        return
    grace = _grace(seen)
    default: dict[str, Any] = {}
    if found["run-on-spot"]:
        default |= {"capacity": ["spot"], "longRuns": {"over": OVER, "capacity": ["on-demand"], "unknownIsLong": True}}
    families = _families(seen, runs)
    if families:
        default["families"] = {"in": list(families)}
    default["gracePeriod"] = duration.format_duration(grace)
    if any(pod.node is not None and pod.node.platform and seen.catalog.platforms[pod.node.platform].creates_nodes for pod in runs):
        default["protectFor"] = "Always"
    workloads = sorted({name for pod in runs for name in pod.signed if name in RUNS})
    yield Suggestion(
        code="runs",
        name="gpu-runs",
        spec={"match": {"workloads": workloads}, "default": default},
        values={
            "unprotected": len(found["run-unprotected"]),
            "spot": len(found["run-on-spot"]),
            "workloads": tuple(workloads),
            "families": families,
            "cut": int(grace < CHECKPOINT),
            "grace": duration.format_duration(grace),
        },
        fixes=tuple(kind for kind in kinds if found[kind]),
    )


def _grace(seen: ScannedCluster) -> int:
    """Return the time for a checkpoint, or what the NodePools with runs on their nodes leave of it."""
    terms = [
        duration.parse_duration(map_at(pool.raw, "spec", "template", "spec").get("terminationGracePeriod"))
        for pool in pools(seen)
        if pool.runs
    ]
    return min([CHECKPOINT, *(int(one) for one in terms if one is not None and one > 30)])


def _families(seen: ScannedCluster, runs: Sequence[GpuPod]) -> tuple[str, ...]:
    """Return the architectures that all runs are on, if the cluster has others too; () if one of them is not known."""
    used = {pod.node.gpu.family if pod.node.gpu is not None else "" for pod in runs if pod.node is not None}
    every = {node.gpu.family for node in seen.nodes.values() if node.devices and node.gpu is not None}
    return tuple(sorted(used)) if used and "" not in used and used < every else ()
