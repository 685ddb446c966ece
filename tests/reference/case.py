"""One request, what is known beside it, and what policies and authors say: the part that every decision needs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from catalog import Catalog, Resource
from policies.facts.cluster_facts import ClusterFacts
from policies.policy import LongRuns, Policy
from policies.request import Request
from tests.reference import pods
from tests.reference.actors import row
from tests.reference.asking import asking, class_behind, meaning, shared_in_class
from tests.reference.nodes import Atlas, Node, may_be, terms_of

Raw = dict[str, Any]
AXES = ("machine", "capacity", "sharing")
PLACEMENT = "placement"
"""one code for BERTH-121, 122 and 125: who is to blame is in the message"""
PLACED = {PLACEMENT, "BERTH-123", "BERTH-124"}
"""what a pod is denied for by where it may run; everything else holds whoever wrote it"""
JUDGED = {"none": set[str](), "left": {PLACEMENT}, "node": {"BERTH-124"}, "all": PLACED}
"""of these, by the row of the actor table"""
FOREVER = 10**12


@dataclass(kw_only=True)
class Expected:
    """What the reference says of one request."""

    judged: bool = True
    matched: tuple[str, ...] = ()
    codes: set[str] = field(default_factory=set)
    """why it is denied; empty: admitted"""
    tolerations: set[tuple[str, str, str | None, str | None]] = field(default_factory=set)
    """added: (key, operator, value, effect)"""
    grace: int | None = None
    deadline: int | None = None
    queue: dict[str, str] = field(default_factory=dict)
    """what a default queue writes: "scheduler", or a key of labels or annotations -> value"""
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
    counts: dict[str, int] = field(default_factory=dict)
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
    found: dict[str, list[Node]] = field(default_factory=dict)
    cut_by_hand: set[str] = field(default_factory=set)
    """names of classes of slices, where no listed platform is known to have any"""

    def nodes_of(self, name: str) -> list[Node]:
        """Those that offer a resource name; of one that no platform in force lists, those that may."""
        if name not in self.found:
            resource = meaning(name, self.catalog, self.cluster)
            dra = resource is not None and resource.kind == "dra"
            self.found[name] = (
                self._of_class(name, resource.vendor) if dra and resource else self.by_resource.get(name, self._may(resource))
            )
        return self.found[name]

    def _may(self, resource: Resource | None) -> list[Node]:
        if resource is not None and resource.kind == "passthrough":
            return []
        every = (n for table in self.atlas.tables.values() for n in table.nodes)
        may = [n for n in every if resource is not None and may_be(n, resource)]
        return may if resource is not None and resource.kind in ("mig", "shared") else [n for n in may if n.sharing == "Exclusive"]

    def _of_class(self, name: str, vendor: str) -> list[Node]:
        """Nodes with a device of a DeviceClass: a slice if the class selects slices, else a whole one, and never one that others share."""
        way = "MIG" if self.ways_of_class(name) == {"MIG"} else "Exclusive"
        of_vendor = [n for table in self.atlas.tables.values() for n in table.nodes if vendor and n.vendor == vendor]
        known = [n for n in of_vendor if n.sharing == way]
        if known or way != "MIG":
            return known
        self.cut_by_hand.add(name)
        return [n for n in of_vendor if n.gpu is None or n.gpu.mig]

    def ways_of_class(self, name: str) -> set[str]:
        """How devices may be shared that the class behind this name gives out."""
        return shared_in_class(class_behind(name, self.catalog, self.cluster)[0], self.catalog, self.cluster)

    def lists(self, name: str) -> bool:
        """Whether nodes are known that offer this very name."""
        resource = meaning(name, self.catalog, self.cluster)
        served = resource is not None and resource.kind == "dra" and bool(self.nodes_of(name))
        return name in self.by_resource or (served and name not in self.cut_by_hand)

    def offers(self, name: str, count: int) -> list[Node]:
        """Nodes with enough devices under a resource name. How many of an unlisted one there are on a node nobody knows."""
        return [n for n in self.nodes_of(name) if n.devices is None or not self.lists(name) or n.devices >= count]


class Case:
    """One request under one world."""

    def __init__(self, world: World, request: Request) -> None:
        self.world, self.request, self.pod = world, request, request.pod
        self.catalog, self.cluster, self.atlas = world.catalog, world.cluster, world.atlas
        self.asking = asking(self.pod, request.namespace, self.catalog, self.cluster, stored=request.phase == "validate")
        self.asked = self.asking.resources
        self.row = row(request, self.catalog, world.queues, self.asking)
        self.annotations = pods.metadata(self.pod, "annotations")
        self.out = Expected()
        self.policies: list[Policy] = []
        """in Enforce, that may match: what they require is judged"""
        self.certain: list[Policy] = []
        """those of them that match for certain: their defaults and grants act"""
        self.terms = terms_of(self.pod)
        self.now: dict[str, int] = {}
        """resource name that is placed -> devices, at least"""
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
        return pods.matches(policy.match, self.pod, self.catalog) and self.in_bounds(policy, every=False)

    def in_bounds(self, policy: Policy, *, every: bool) -> bool:
        """Whether the number of devices is within ``match.gpus``: some number that it may be, or ``every``."""
        bounds, (least, most) = policy.match.gpus, self.asking.units
        if bounds is None:
            return True
        low, high = bounds.min or 0, FOREVER if bounds.max is None else bounds.max
        end = FOREVER if most is None else most
        return (low <= least and end <= high) if every else (low <= end and least <= high)

    def least(self, take: Callable[[Policy], int | None]) -> int | None:
        return min((v for p in self.policies if (v := take(p)) is not None), default=None)

    def words(self) -> list[float]:
        """Seconds: the annotation where it is one above zero, then the deadline."""
        expected = pods.duration(self.annotations.get("berth.dev/expected-duration"))
        deadline = self.pod["spec"].get("activeDeadlineSeconds", self.end() if self.request.phase == "mutate" else None)
        return [w for w in (expected, deadline) if w is not None and (w > 0 or w is deadline)]

    def end(self) -> int | None:
        """The deadline that a pod without one is given: by default not before its author expects it to end, and never after the longest."""
        if "activeDeadlineSeconds" in self.pod["spec"]:
            return None
        longest = self.least(lambda p: p.require.max_runtime) if self.row.floor != "no" else None
        acting = [p for p in self.acting(self.row.grace) if p.default.max_runtime is not None]
        own = [p for p in acting if p.namespace is not None]
        default = max((p.default.max_runtime or 0 for p in own or acting), default=None)
        expected = pods.duration(self.annotations.get("berth.dev/expected-duration")) or 0
        if default is None or expected > default:
            return longest
        return default if longest is None else min(default, longest)

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
        for scope in ([p for p in self.certain if p.namespace is not None], [p for p in self.certain if p.namespace is None]):
            values = [w for p in scope if (w := take(p)) is not None]
            if values:
                return values[0] if all(same(w, values[0]) for w in values) else None
        return None

    def acting(self, calm: str) -> list[Policy]:
        if calm == "named":
            return [p for p in self.certain if p.match.workloads]
        return self.certain if calm == "yes" else []
