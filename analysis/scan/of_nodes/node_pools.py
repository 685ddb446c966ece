"""Karpenter's NodePools for GPUs, as far as their settings cut runs short, cost without a bound, or make no GPU node at all
(sigs.k8s.io/karpenter pkg/apis/v1/nodepool.go, 1.14; v1beta1 where its fields differ)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from analysis.scan.finding import Finding, FindingSubject, Value
from analysis.scan.seen import GpuPod, ScannedCluster
from catalog import Catalog, Platform
from kube import duration
from kube.labels import NODE_POOL
from kube.pod import GRACE
from kube.tree import Raw, map_at, maps_in, text_of
from policies.facts.cluster_facts import NodePool
from policies.facts.platform_detection import Detector

NEVER = "Never"
ENDED = ("eks-auto",)
"""Platforms that end a drain by themselves: EKS Auto Mode after 24 hours (EKS user guide, Auto Mode)."""
CONSOLIDATES = ("WhenEmptyOrUnderutilized", "WhenUnderutilized", "")
"""Policies under which a node is replaced by a cheaper one while pods run on it; the second is v1beta1's name, and the default is this."""


class GpuPool(NamedTuple):
    """A NodePool that makes GPU nodes."""

    name: str
    raw: Raw
    facts: NodePool
    platform: Platform
    runs: tuple[GpuPod, ...]
    """The runs on its nodes."""


def pools(seen: ScannedCluster) -> Iterator[GpuPool]:
    """Yield the NodePools that are made for GPUs: whose requirements leave GPU machines alone, or that have made a node with devices."""
    detector = Detector(seen.catalog)
    with_devices = {node.labels.get(NODE_POOL) for node in seen.nodes.values() if node.devices}
    for raw in seen.cluster.nodepools:
        name = raw["metadata"]["name"]
        facts = seen.cluster.facts.nodepools.get(name)
        found = None if facts is None else detector.of_pool(facts)
        if facts is None or found is None or not found.platform:
            continue
        platform = seen.catalog.platforms[found.platform]
        if name in with_devices or (found.gpus and _only_gpus(facts, platform, seen.catalog)):
            runs = tuple(p for p in seen.pods if p.role == "run" and p.node is not None and p.node.labels.get(NODE_POOL) == name)
            yield GpuPool(name, raw, facts, platform, runs)


def _only_gpus(pool: NodePool, platform: Platform, catalog: Catalog) -> bool:
    families = {machine.family for machine in catalog.machines if machine.cloud == platform.cloud}
    types = {machine.type for machine in catalog.machines if machine.cloud == platform.cloud}
    for key, operator, values in pool.requirements:
        attribute = platform.labels.get(key, "").rpartition(":")[2]
        named = bool(values) and operator == "In"
        if named and attribute in ("family", "type") and letters(values) <= categories(platform):
            return True
        if key in platform.gpu_pools and named and set(values) <= set(platform.gpu_pools[key]):
            return True
        if attribute in ("gpuName", "manufacturer", "count", "memoryMiB", "skuGpuName") and operator in ("In", "Exists", "Gt"):
            return True
        if named and ((attribute == "family" and set(values) <= families) or (attribute == "type" and set(values) <= types)):
            return True
    return False


def categories(platform: Platform) -> frozenset[str]:
    """Return the categories of machines that have GPUs, as a cloud's own label names them: ``g``, ``gr`` and ``p`` of EC2."""
    return frozenset(one for key, values in platform.gpu_pools.items() if platform.labels.get(key) == "category" for one in values)


def letters(names: Iterable[str]) -> set[str]:
    """Return the categories in names of families or types of EC2: ``gr`` of ``gr6.4xlarge``."""
    return {name[: next((at for at, one in enumerate(name) if not one.isalpha()), len(name))] for name in names}


def find(seen: ScannedCluster) -> Iterator[Finding]:
    """Yield the traps of each NodePool for GPUs."""
    for pool in pools(seen):
        for kind, values in (*_disruption(pool, seen), *_shape(pool, seen.catalog)):
            gpus, usd = _at_stake(pool)
            yield Finding(
                kind=kind,  # type: ignore[arg-type]
                where=FindingSubject("NodePool", "", pool.name),
                values=values,
                pods=len(pool.runs),
                gpus=gpus,
                usd=usd,
                rests_on=("Pod",),
            )


def _at_stake(pool: GpuPool) -> tuple[int, float | None]:
    prices = [pod.usd for pod in pool.runs if pod.usd is not None]
    return sum(pod.gpus for pod in pool.runs), sum(prices) if prices else None


_Found = Iterator[tuple[str, Mapping[str, Value]]]


def _disruption(pool: GpuPool, seen: ScannedCluster) -> _Found:
    """Yield the settings by which Karpenter takes a node away under what runs on it."""
    spec = map_at(pool.raw, "spec")
    disruption, template = map_at(spec, "disruption"), map_at(spec, "template", "spec")
    policy, after = text_of(disruption.get("consolidationPolicy")), text_of(disruption.get("consolidateAfter"))
    if policy in CONSOLIDATES and after != NEVER and not blocked(disruption, "Underutilized"):
        yield "pool-consolidates", {"policy": policy or CONSOLIDATES[0], "after": after or "0s", "runs": len(pool.runs)}
    beta = text_of(pool.raw.get("apiVersion")).endswith("/v1beta1")
    expiry = text_of((disruption if beta else template).get("expireAfter"))
    if expiry and expiry != NEVER:
        yield "pool-expires", {"after": expiry, "runs": len(pool.runs)}
    grace = duration.parse_duration(template.get("terminationGracePeriod"))
    if grace is None and pool.platform.name in ENDED:
        return
    if grace is None:
        yield "pool-no-grace", {"runs": len(pool.runs)}
        return
    longer = [written for pod in pool.runs if (written := _grace(pod)) > grace]
    if longer:
        yield "pool-short-grace", {"grace": text_of(template.get("terminationGracePeriod")), "longest": max(longer), "longer": len(longer)}


def blocked(disruption: Mapping[Any, Any], reason: str) -> bool:
    """Return whether a budget lets no node be disrupted for this reason at any time."""
    for budget in maps_in(disruption.get("budgets")):
        reasons = budget.get("reasons")
        concerned = not isinstance(reasons, list) or not reasons or reason in reasons
        if concerned and text_of(budget.get("nodes")) in ("0", "0%") and not budget.get("schedule"):
            return True
    return False


def _grace(pod: GpuPod) -> int:
    written = map_at(pod.raw, "spec").get(GRACE)
    return written if isinstance(written, int) and not isinstance(written, bool) else 0


def _shape(pool: GpuPool, catalog: Catalog) -> _Found:
    """Yield what is missing in the pool itself: a bound, a taint, machines that have GPUs for Karpenter."""
    spec = map_at(pool.raw, "spec")
    limits = map_at(spec, "limits")
    if not any(isinstance(name, str) and catalog.resource(name) is not None for name in limits):
        yield "pool-no-gpu-limit", {"limits": tuple(sorted(f"{text_of(key)}={text_of(value)}" for key, value in limits.items()))}
    taints = maps_in(map_at(spec, "template", "spec").get("taints"))
    if not any(taint.get("effect") in ("NoSchedule", "NoExecute") for taint in taints):
        yield "pool-untainted", {}
    named, without = machines_named(pool.facts, pool.platform, catalog)
    if without:
        yield "pool-family-without-gpu", {"families": tuple(sorted(without)), "all": int(named == without)}


def machines_named(pool: NodePool, platform: Platform, catalog: Catalog) -> tuple[set[str], set[str]]:
    """Return the families and types that the requirements name, and those of them whose GPUs this platform does not see."""
    unseen = {
        name
        for machine in catalog.machines
        if platform.name in (*machine.not_on, *machine.uncounted) and machine.cloud == platform.cloud
        for name in (machine.family, machine.type)
        if name is not None
    }
    named: set[str] = set()
    for key, operator, values in pool.requirements:
        attribute = platform.labels.get(key, "").rpartition(":")[2]
        if operator == "In" and attribute in ("family", "type"):
            named |= set(values)
    return named, named & unseen
