"""The policy for every GPU pod: it tolerates the taints of accelerator nodes, and its requests equal its limits."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.scan.seen import ScannedCluster
from analysis.scan.suggestions.suggestion import Suggestion


def suggest(seen: ScannedCluster) -> Iterator[Suggestion]:
    """Yield it where there are GPU nodes or GPU pods."""
    keys = {taint.taint.key for taint in seen.catalog.taints}
    nodes = [node for node in seen.nodes.values() if node.devices]
    tainted = sorted({taint.key for node in nodes for taint in node.taints if taint.key in keys})
    if nodes or seen.pods:
        untainted = sum(not any(taint.key in keys for taint in node.taints) for node in nodes)
        yield Suggestion(
            code="accelerators",
            name="gpu-pods",
            spec={"require": {"requestsEqualLimits": ["accelerators"]}, "default": {"acceleratorTaints": "Tolerate"}},
            values={"keys": tuple(tainted), "untainted": untainted},
            fixes=("pending", "never-fits"),
        )
