"""EC2NodeClasses of GPU NodePools whose image is always the newest: each release of it makes their nodes drift, and Karpenter replaces
them under what runs there, often by another driver (karpenter-provider-aws pkg/apis/v1/ec2nodeclass.go: ``alias: al2023@latest``)."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.scan.finding import Finding, FindingSubject
from analysis.scan.of_nodes.node_pools import GpuPool, blocked, pools
from analysis.scan.seen import ScannedCluster
from kube.tree import map_at, maps_in, text_of

NEWEST = "@latest"


def find(seen: ScannedCluster) -> Iterator[Finding]:
    """Yield each class with such an alias that a NodePool for GPUs uses and lets drift."""
    users: dict[str, list[GpuPool]] = {}
    for pool in pools(seen):
        if not blocked(map_at(pool.raw, "spec", "disruption"), "Drifted"):
            name = text_of(map_at(pool.raw, "spec", "template", "spec", "nodeClassRef").get("name"))
            users.setdefault(name, []).append(pool)
    for raw in seen.cluster.node_classes:
        name = raw["metadata"]["name"]
        aliases = [text_of(term.get("alias")) for term in maps_in(map_at(raw, "spec").get("amiSelectorTerms"))]
        newest = [alias for alias in aliases if alias.endswith(NEWEST)]
        if newest and name in users:
            runs = [pod for pool in users[name] for pod in pool.runs]
            prices = [pod.usd for pod in runs if pod.usd is not None]
            yield Finding(
                kind="node-class-latest-image",
                where=FindingSubject("EC2NodeClass", "", name),
                values={"alias": newest[0], "pools": tuple(sorted(pool.name for pool in users[name])), "runs": len(runs)},
                pods=len(runs),
                gpus=sum(pod.gpus for pod in runs),
                usd=sum(prices) if prices else None,
                rests_on=("NodePool",),
            )
