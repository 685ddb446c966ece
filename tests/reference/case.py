"""One request, what is known beside it, and what policies and authors say: the part that every decision needs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from policies.catalog import Catalog
from policies.cluster_facts import ClusterFacts
from policies.policy import LongRuns, Policy
from policies.request import Request
from tests.reference import pods
from tests.reference.nodes import Atlas, Node, terms_of

Raw = dict[str, Any]
AXES = ("machine", "capacity", "sharing")
PLACEMENT = "placement"
"""one code for BERTH-121, 122 and 125: who is to blame is in the message"""
ROW_CODES = {
    "left": {PLACEMENT}, "mismatch": {"BERTH-101", "BERTH-102"}, "node": {"BERTH-124"}, "counts": {"BERTH-111", "BERTH-112"},
}  # fmt: skip
FOREVER = 10**12


@dataclass(kw_only=True)
class Expected:
    """What the reference says of one request."""

    judged: bool = True
    matched: tuple[str, ...] = ()
    codes: set[str] = field(default_factory=set)
    """why it is refused; empty: admitted"""
    tolerations: set[tuple[str, str, str | None, str | None]] = field(default_factory=set)
    """added: (key, operator, value, effect)"""
    grace: int | None = None
    probes: int = 0
    """how many probes get the former grace"""
    marks: dict[str, str] = field(default_factory=dict)
    """annotations and labels added"""
    resources: dict[tuple[str, int, str], Raw] = field(default_factory=dict)
    """(containers or initContainers, index, limits or requests) -> what stands there in the end"""
    inside: dict[str, set[Node]] = field(default_factory=dict)
    """resource name (after renaming) -> every node that the pod may land on in the end"""
    at_most: dict[str, set[Node]] = field(default_factory=dict)
    """the same where some axis can only be said by a part of it: never outside these"""
    counts: dict[str, int | None] = field(default_factory=dict)
    """how many devices of each of these names"""
    undecided: bool = False
    """whether every term that is left names a value that nobody knows: then BERTH-125 may be the answer"""
    slice: str | None = None
    template: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """What does not change from pod to pod."""

    catalog: Catalog
    cluster: ClusterFacts
    queues: tuple[str, ...]
    placed: bool
    """whether platforms are listed"""
    policies: list[Policy]
    atlas: Atlas
    by_resource: dict[str, list[Node]]


class Case:
    """One request under one world."""

    def __init__(self, world: World, request: Request) -> None:
        self.world, self.request, self.pod = world, request, request.pod
        self.catalog, self.cluster, self.atlas = world.catalog, world.cluster, world.atlas
        self.asked = pods.accelerators(self.pod, self.catalog)
        self.row = pods.row(self.pod, self.catalog, world.queues, bool(self.asked))
        self.annotations = pods.metadata(self.pod, "annotations")
        self.out = Expected()
        self.policies: list[Policy] = []
        self.terms = terms_of(self.pod)
        self.now: dict[str, int | None] = {}
        self.chosen: list[Callable[[Node], bool]] = []
        self.axes: list[tuple[str, Callable[[Node], bool]]] = []
        self.named_capacity: list[Policy] = []
        self.template_by: list[Policy] = []
        self.slice_resource = ""
        self.universes: dict[tuple[str, str], list[Node]] = {}
        self.all_required: dict[Node, bool] = {}
        self.remembered: dict[tuple[Node, str], bool] = {}

    def matches(self, policy: Policy) -> bool:
        namespace = self.request.namespace
        if policy.namespace not in (None, namespace):
            return False
        labels = {**self.cluster.namespaces.get(namespace, {}), "kubernetes.io/metadata.name": namespace}
        selector = policy.match.namespace_selector
        if selector is not None and not selector.matches(labels):
            return False
        if self.request.user in policy.exclude_users:
            return False
        return pods.matches(policy.match, self.pod, self.catalog, self.count(pods.GPU_KINDS))

    def count(self, kinds: Iterable[str]) -> int | None:
        total = 0
        for name, resource in self.asked.items():
            if resource.kind in kinds:
                count = pods.devices(self.pod, name)
                if count is None:
                    return None
                total += count
        claimed = pods.claims(self.pod, self.request.namespace, self.cluster)
        if claimed is None:
            return None
        return total + sum(n for c, n in claimed if pods.vendor_of_class(c, self.catalog, self.cluster))

    def least(self, take: Callable[[Policy], int | None]) -> int | None:
        return min((v for p in self.policies if (v := take(p)) is not None), default=None)

    def words(self) -> list[float]:
        """Seconds: the annotation where it is one above zero, then the deadline."""
        said = pods.duration(self.annotations.get("berth.dev/expected-duration"))
        deadline = self.pod["spec"].get("activeDeadlineSeconds")
        return [w for w in (said, deadline) if w is not None and (w > 0 or w is deadline)]

    def is_long(self, runs: LongRuns | None, *, longest: bool = True) -> bool:
        """By the longer word; by the first one, for a default."""
        words = self.words() if longest else self.words()[:1]
        return runs is not None and (any(w > runs.over for w in words) if words else runs.unknown_is_long)

    def keys(self, axis: str) -> set[str]:
        """Label keys that speak of an axis, on any platform."""
        if axis == "template":
            return {k for t in self.atlas.templates.values() for k, _ in t.labels}
        if axis == "sharing":
            return {k for s in self.catalog.schemes.values() for v in s.variants for k in v.labels}
        platforms = self.catalog.platforms.values()
        if axis == "capacity":
            return {k for p in platforms for k in p.capacity_keys}
        return {k for p in platforms for k in (*p.labels, *p.after_boot)} - self.keys("capacity")

    def silent(self, axis: str) -> bool:
        return not any(e["key"] in self.keys(axis) for term in self.terms for e in term)

    def speaker(self, take: Callable[[Policy], Any], same: Callable[[Any, Any], bool] = operator.eq) -> Any:
        """What the narrowest scope that speaks says, None where it is silent or does not agree with itself."""
        for scope in ([p for p in self.policies if p.namespace is not None], [p for p in self.policies if p.namespace is None]):
            said = [w for p in scope if (w := take(p)) is not None]
            if said:
                return said[0] if all(same(w, said[0]) for w in said) else None
        return None

    def acting(self, calm: str) -> list[Policy]:
        if calm == "named":
            return [p for p in self.policies if p.match.workloads]
        return self.policies if calm == "yes" else []
