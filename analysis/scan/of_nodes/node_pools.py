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
from kube.taints import HARD, Taint, taints_in
from kube.tree import Raw, map_at, maps_in, text_of, texts_at
from policies.facts.cluster_facts import NodePool
from policies.facts.platform_detection import Detector
from policies.placement.expected_devices import gpu_label, whole_name

NEVER = "Never"
ENDED = ("eks-auto",)
"""Platforms that end a drain by themselves: EKS Auto Mode after 24 hours (EKS user guide, Auto Mode)."""
CONSOLIDATES = ("WhenEmptyOrUnderutilized", "WhenUnderutilized", "Balanced", "")
"""Policies under which a node is replaced by a cheaper one while pods run on it; the second is v1beta1's name, and the first is the
default."""
EXPIRES = "720h"
"""The default of ``expireAfter``, in v1 and v1beta1."""
EXPIRES_ON: Mapping[str, str] = {"eks-auto": "336h"}
"""Platforms whose default is another (EKS user guide, create a node pool)."""
MOST_ON: Mapping[str, str] = {"eks-auto": "504h"}
"""Platforms that end every node after this time, whatever is set (EKS user guide, Auto Mode: 21 days)."""
BOUNDS = frozenset({"cpu", "memory", "pods", "nodes", "ephemeral-storage"})
"""Resources that each machine has: a limit of any of them bounds the machines too (Karpenter's function ``ExceededBy``)."""


class GpuPool(NamedTuple):
    """A NodePool that makes GPU nodes."""

    name: str
    raw: Raw
    facts: NodePool
    platform: Platform | None
    """None for a node class that the catalog does not know."""
    runs: tuple[GpuPod, ...]
    """The runs on its nodes."""

    @property
    def is_static(self) -> bool:
        """True if it keeps a number of nodes, creates none for pods, and consolidates none (``spec.replicas``)."""
        return map_at(self.raw, "spec").get("replicas") is not None


def pools(seen: ScannedCluster) -> Iterator[GpuPool]:
    """Yield the NodePools that are made for accelerators: whose requirements leave such machines alone, whose taints, limits or labels
    name accelerators, or that have made a node with devices."""
    detector = Detector(seen.catalog)
    with_devices = {node.labels.get(NODE_POOL) for node in seen.nodes.values() if node.has_gpus}
    for raw in seen.cluster.nodepools:
        name = raw["metadata"]["name"]
        facts = seen.cluster.facts.nodepools.get(name)
        if facts is None:
            continue
        detected = detector.of_pool(facts)
        platform = seen.catalog.platforms.get(detected.platform)
        if platform is not None and _only_others(facts, platform):
            named = True
        elif platform is not None and (not detected.gpus or names_no_gpus(facts, platform)):
            named = False
        else:
            named = _names_accelerators(raw, seen.catalog) or (platform is not None and _only_gpus(facts, platform, seen.catalog))
        if named or name in with_devices:
            runs = tuple(p for p in seen.pods if p.role == "run" and p.node is not None and p.node.labels.get(NODE_POOL) == name)
            yield GpuPool(name, raw, facts, platform, runs)


def _only_others(pool: NodePool, platform: Platform) -> bool:
    """Return whether the requirements leave machines with accelerators alone, those that are no GPUs among them: Inferentia, Trainium."""
    for key, operator, values in pool.requirements:
        if operator != "In" or not values:
            continue
        if (known := platform.accelerator_pools.get(key)) and set(values) <= {*known, *platform.gpu_pools.get(key, ())}:
            return True
        if platform.labels.get(key) in ("family", "type") and letters(values) <= categories(platform) | _other_categories(platform):
            return True
    return False


def names_no_gpus(pool: NodePool, platform: Platform) -> bool:
    """Return whether a NodePool names families or types of machines of which none can have a GPU, by the letters that a family begins with:
    those of the platform's categories with GPUs are known (``Platform.gpu_pools``), and ``m6i`` begins with none of them."""
    for key, operator, values in pool.requirements:
        machines = operator == "In" and platform.labels.get(key) in ("family", "type")
        if machines and values and categories(platform) and categories(platform).isdisjoint(letters(values)):
            return True
    return False


def _other_categories(platform: Platform) -> frozenset[str]:
    return frozenset(
        value for key, values in platform.accelerator_pools.items() if platform.labels.get(key) == "category" for value in values
    )


def _names_accelerators(raw: Raw, catalog: Catalog) -> bool:
    """Return whether a NodePool's taints, limits, labels or requirements name an accelerator."""
    spec = map_at(raw, "spec")
    template = map_at(spec, "template", "spec")
    if any(of_accelerators(taint, catalog) for taint in taints_in(template.get("taints"))):
        return True
    limits = map_at(spec, "limits")
    if any(isinstance(name, str) and catalog.resource(name) is not None and text_of(limit) != "0" for name, limit in limits.items()):
        return True
    shown = gpu_label(texts_at(spec, "template", "metadata", "labels"), catalog)
    required = (item for item in maps_in(template.get("requirements")) if item.get("operator") in ("In", "Exists", "Gt", "Gte"))
    return shown is not None or any(_requires_accelerator(item, catalog) for item in required)


def _requires_accelerator(requirement: Mapping[Any, Any], catalog: Catalog) -> bool:
    """Return whether a requirement leaves only machines with accelerators, by a label that says that they have some."""
    values = [text_of(value) for value in listed] if isinstance(listed := requirement.get("values"), list) else []
    above = requirement.get("operator") == "Gt"  # more than none
    labels = [{text_of(requirement.get("key")): value} for value in (values if values and not above else ["any"])]
    return all(gpu_label(label, catalog) is not None for label in labels)


def of_accelerators(taint: Taint, catalog: Catalog) -> bool:
    """Return whether a taint keeps pods without an accelerator off: one that the catalog lists, or the name of a resource."""
    known = (row.taint for row in catalog.taints)
    listed = any(taint.key == other.key and other.value in ("", taint.value) for other in known)
    return taint.effect in HARD and (listed or catalog.resource(taint.key) is not None)


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
    name = "" if pool.platform is None else pool.platform.name
    if policy in CONSOLIDATES and after != NEVER and not pool.is_static and not blocked(disruption, "Underutilized"):
        yield "pool-consolidates", {"policy": policy or CONSOLIDATES[0], "after": after or "0s", "runs": len(pool.runs)}
    beta = text_of(pool.raw.get("apiVersion")).endswith("/v1beta1")
    expiry = text_of((disruption if beta else template).get("expireAfter"))
    if expiry != NEVER:
        after = expiry or EXPIRES_ON.get(name, EXPIRES)
        most = MOST_ON.get(name, "")
        yield "pool-expires", {"after": after, "default": int(not expiry), "runs": len(pool.runs), "most": most}
    grace = duration.parse_duration(template.get("terminationGracePeriod"))
    if grace is None and name in ENDED:
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
    limits = [name for name in map_at(spec, "limits") if isinstance(name, str)]
    if not pool.is_static and not any(name in BOUNDS or catalog.resource(name) is not None for name in limits):
        yield "pool-no-gpu-limit", {"limits": tuple(sorted(limits)), "resource": _resource(pool, catalog)}
    taints = maps_in(map_at(spec, "template", "spec").get("taints"))
    if not any(taint.get("effect") in ("NoSchedule", "NoExecute") for taint in taints):
        yield "pool-untainted", {"resource": _resource(pool, catalog)}
    named, without = (set[str](), set[str]()) if pool.platform is None else machines_named(pool.facts, pool.platform, catalog)
    if without:
        yield "pool-family-without-gpu", {"families": tuple(sorted(without)), "all": int(named == without)}


def _resource(pool: GpuPool, catalog: Catalog) -> str:
    """Return the resource of the machines that a NodePool makes: NVIDIA's GPUs unless its requirements name others."""
    wanted = {value for _, operator, values in pool.facts.requirements if operator == "In" for value in values}
    vendors = {
        machine.resource for machine in catalog.machines if {machine.family, machine.type, machine.attributes.get("category")} & wanted
    }
    if pool.platform is not None and _only_others(pool.facts, pool.platform) and not vendors:
        return whole_name("habana" if any(value.startswith("dl") for value in wanted) else "aws", catalog)
    return vendors.pop() if len(vendors) == 1 else whole_name("nvidia", catalog)


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
