"""All findings on a cluster, in order, with what it has, and what could not be seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from analysis.admission_preview import Admission
from analysis.conditions.server_options import UsedPlatforms
from analysis.scan import quotas
from analysis.scan.finding import Finding, Hit, group_findings
from analysis.scan.of_nodes import device_labels, gpu_nodes, node_classes, node_pools, pool_values
from analysis.scan.of_pods import notebooks, pending, resource_names, runs
from analysis.scan.seen import GpuNode, GpuPod, ScannedCluster
from analysis.scan.wording import ORDER
from policies.facts.offered_devices import STACKS


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGroup:
    """The nodes of one group that have devices of one model."""

    what: str
    name: str
    model: str
    """"" if the labels do not tell."""
    nodes: int
    gpus: int | None
    """The physical GPUs; None if only that there are some is known."""
    devices: int
    """What pods may hold: slices and replicas counted as one, and without what nodes should offer and do not."""
    held: Fraction
    """The physical GPUs that pods hold: a slice or a replica is its part."""
    usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryResult:
    """What the shipped library would have made of the pods of which something is found."""

    pods: int
    """Those of which something is found that a policy could fix."""
    fixed: int
    """Those of which nothing of it would be found."""
    gpus: int
    """What the fixed ones hold or ask for."""
    usd: float | None
    denied: int
    """Those that it would have denied, with the fix: among all pods of which something is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """The answer of one scan."""

    findings: Sequence[Finding]
    """In the order of the kinds, those with most GPUs first."""
    groups: Sequence[DeviceGroup]
    pods: int
    """GPU pods that are there."""
    pools: int
    """NodePools that are there."""
    waiting: int
    usd: float | None
    """What all GPU nodes cost an hour, as far as prices are known."""
    library: LibraryResult
    unread: Mapping[str, str]
    """Kind -> why it could not be read."""
    hits: Sequence[Hit]
    """What is found of single pods."""
    platforms: UsedPlatforms | None = None
    """By which the shipped policies were evaluated; None where the caller does not say."""

    def rests_on(self, kind: str) -> tuple[str, ...]:
        """Return the kinds of finding that could be more, or others, were this kind of object read."""
        return tuple(one for one in ORDER if kind in NEEDS.get(one, ()))

    def subjects_on(self, kind: str) -> tuple[str, ...]:
        """Return what findings are about that could be more, or others, were this kind of object read: of pods and NodePools only where
        there are some."""
        there = {"pods": self.pods > 0, "nodes": True, "quotas": True, "NodePools": self.pools > 0 or "NodePool" in self.unread}
        return tuple(dict.fromkeys(subject for name in self.rests_on(kind) if there[subject := _subject(name)]))


def _subject(kind: str) -> str:
    if kind.startswith("quota-"):
        return "quotas"
    return "NodePools" if kind.startswith(("pool-", "node-class-")) else "pods" if kind in OF_PODS else "nodes"


OF_PODS = ("pending", "never-fits", "rollout-waits", "misspelt-name", "run-on-spot", "run-unprotected", "notebook-on-large-gpu")
"""Kinds of finding on pods; the others are on nodes, NodePools and quotas."""
NEEDS: Mapping[str, tuple[str, ...]] = {
    "pending": ("Node", "NodePool"),
    "never-fits": ("Node", "NodePool"),
    "rollout-waits": ("Node", "Deployment"),
    "run-on-spot": ("Node", "Job"),
    "run-unprotected": ("Node", "Job"),
    "notebook-on-large-gpu": ("Node",),
    "nodes-untainted": ("Node",),
    "pool-consolidates": ("NodePool", "Node"),
    "pool-expires": ("NodePool", "Node"),
    "pool-no-grace": ("NodePool", "Node"),
    "pool-short-grace": ("NodePool", "Node"),
    "pool-no-gpu-limit": ("NodePool",),
    "pool-untainted": ("NodePool",),
    "pool-family-without-gpu": ("NodePool",),
    "pool-unknown-machine": ("NodePool",),
    "node-class-latest-image": ("EC2NodeClass", "NodePool"),
    "advertised-twice": ("Node", "ResourceSlice"),
    "gpus-missing": ("Node", "ResourceSlice", "DaemonSet"),
    "gpus-unhealthy": ("Node",),
    "slices-missing": ("Node", "ResourceSlice"),
    "labels-unmaintained": ("Node", *STACKS),
    "labels-without-devices": ("Node", "ResourceSlice"),
    "labels-disagree": ("Node",),
    "mig-not-configured": ("Node",),
    "unlisted-name": ("Node", "DeviceClass"),
    "quota-counts-nothing": ("ResourceQuota",),
}
"""Kind of finding -> the kinds of object that it is made of, besides pods."""


def scan(seen: ScannedCluster, admission: Admission) -> ScanReport:
    """Return all findings."""
    found = tuple(hits(seen, admission))
    every = [*group_findings(found), *_others(seen)]
    groups = _groups(seen)
    prices = [group.usd for group in groups if group.usd is not None]
    return ScanReport(
        findings=sorted(every, key=_rank),
        groups=groups,
        pods=len(seen.pods),
        pools=len(seen.cluster.nodepools),
        waiting=sum(not pod.stored.node for pod in seen.pods),
        usd=sum(prices) if prices else None,
        library=_fixed(found, admission),
        unread=seen.cluster.unread,
        hits=found,
    )


def hits(seen: ScannedCluster, admission: Admission) -> Iterator[Hit]:
    """Yield what is found of single pods, and whether the policies of ``admission`` would have fixed it."""
    yield from pending.find(seen, admission)
    yield from resource_names.misspelt(seen)
    yield from runs.find(seen, admission)
    yield from notebooks.find(seen, admission)


def _others(seen: ScannedCluster) -> Iterator[Finding]:
    yield from gpu_nodes.find(seen)
    yield from node_pools.find(seen)
    yield from pool_values.find(seen)
    yield from node_classes.find(seen)
    yield from device_labels.find(seen)
    yield from resource_names.find(seen)
    yield from quotas.find(seen)


def _rank(finding: Finding) -> tuple[object, ...]:
    return ORDER.index(finding.kind), -finding.gpus, -finding.pods, finding.where, sorted(map(str, finding.values.items()))


def _groups(seen: ScannedCluster) -> list[DeviceGroup]:
    held: dict[str, Fraction] = {}
    for pod in seen.pods:
        if pod.node is not None:
            held[pod.node.name] = held.get(pod.node.name, Fraction(0)) + pod.held
    groups: dict[tuple[str, str, str], list[GpuNode]] = {}
    for node in seen.nodes.values():
        if node.has_gpus:
            model = node.gpu.model if node.gpu is not None else ""
            groups.setdefault((*node.group, model), []).append(node)
    out = []
    for (what, name, model), nodes in sorted(groups.items()):
        prices = [usd for node in nodes if (usd := node.usd_whole) is not None]
        known = [node.gpus for node in nodes if node.gpus is not None]
        out.append(
            DeviceGroup(
                what=what,
                name=name,
                model=model,
                nodes=len(nodes),
                gpus=sum(known) if len(known) == len(nodes) else None,
                devices=sum(node.devices for node in nodes),
                held=sum((held.get(node.name, Fraction(0)) for node in nodes), Fraction(0)),
                usd=sum(prices) if prices else None,
            )
        )
    return out


def _fixed(hits: Sequence[Hit], admission: Admission) -> LibraryResult:
    """Count pods once, whatever is found of them."""
    of_pod: dict[tuple[str, str], list[Hit]] = {}
    for hit in hits:
        if hit.fixed is not None:
            of_pod.setdefault((hit.pod.stored.namespace, hit.pod.stored.name), []).append(hit)
    fixed: list[GpuPod] = [found[0].pod for found in of_pod.values() if all(hit.fixed for hit in found)]
    prices = [pod.usd for pod in fixed if pod.usd is not None]
    return LibraryResult(
        pods=len(of_pod),
        fixed=len(fixed),
        gpus=sum(pod.gpus for pod in fixed),
        usd=sum(prices) if prices else None,
        denied=len({(hit.pod.stored.namespace, hit.pod.stored.name) for hit in hits if admission.of(hit.pod.stored).violations}),
    )
