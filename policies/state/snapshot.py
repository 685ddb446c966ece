"""The policies, catalog and cluster facts of one moment, compiled. A review reads it; it is immutable,
swapped by reference."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from catalog import LONGEST_NAME, Catalog, Resource
from policies.facts import platform_detection
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_modes import NOT_KNOWN, Advertised
from policies.facts.device_requests import DeviceClass
from policies.facts.places import KnownPlaces
from policies.facts.served_resources import Served, served
from policies.lru import LruCache
from policies.offers.build import with_served
from policies.offers.constraints import Compiled, CompiledTemplate
from policies.offers.device_costs import DeviceCosts
from policies.offers.table import Table
from policies.pods import unlisted_accelerators
from policies.pods.projection import Reads, reads
from policies.policy import NodeTemplate
from policies.state.compilation import by_namespace
from policies.verdict import Mode

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
"""the one label that every namespace has (KEP-2161)"""

_MOST_NAMESPACES = 10_000
"""cached per snapshot: as many as in the largest cluster that SIG Scalability tests with; bounds what a caller can fill"""

LONGEST_NAMESPACE = 63
"""characters (RFC 1123 label): nothing is cached for a longer one, since no such namespace exists"""

_MOST_MERGED = 32 * 2**20
"""bytes: some 2,000 sets of five policies. The set that matches depends on namespace, workload and labels: authors write those"""


def no_merged() -> LruCache[Any]:
    """Return an empty cache for ``Snapshot.merged``."""
    return LruCache(_MOST_MERGED)


class NamespaceScope:
    """The policies of a namespace as a part of keys: hashed once, equal if they are the very same compiled policies."""

    __slots__ = ("_hash", "_policies")

    def __init__(self, policies: tuple[Compiled, ...]) -> None:
        self._policies = policies
        self._hash = hash(policies)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamespaceScope) and self._policies == other._policies


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Snapshot:
    """Everything on which a decision may depend. ``facts_for`` is one dict look-up once a namespace is
    cached."""

    catalog: Catalog
    tables: Mapping[str, Table]
    """The tables by platform, in the catalog's order: those in force, or all of them."""
    served: Mapping[str, Served] = field(default_factory=dict)
    """the names of DeviceClasses that tables have, too"""
    placed: bool
    """False if no platform is in force, because --platforms is absent or ``auto`` has detected none:
    placement is then checked for contradictions on all tables, and not written."""
    mig_strategy: str
    queues: tuple[str, ...]
    max_mode: Mode
    policies: tuple[Compiled, ...]
    """sorted by id: the cluster's come first"""
    of_cluster: tuple[Compiled, ...]
    own: Mapping[str, tuple[Compiled, ...]]
    """each namespace's own policies, as many as are in force; the others are the cluster's"""
    templates: Mapping[str, CompiledTemplate]
    cluster: ClusterFacts
    advertised: Advertised = NOT_KNOWN
    """how nodes offer their devices: no decision depends on it"""
    pools_without_gpus: frozenset[str]
    """the NodePools on which no GPU pod lands"""
    vocabulary: Vocabulary
    reads: Reads
    """what the cluster's policies read; a namespace's own may read more there (``NamespaceFacts.reads``)"""
    console_url: str = ""
    """the address of the console, without a slash at its end; "" if answers name none"""
    every_namespace: bool = False
    """True if ``cluster`` has all namespaces: one that it lacks was created a moment ago"""
    by_labels: bool = False
    """True if a policy of the cluster selects namespaces by labels besides their name"""
    lookalikes: Lookalikes
    costs: DeviceCosts
    known_places: KnownPlaces | None = None
    """what nodes and NodePools offer; None if there may be others than are known"""
    known_slices: int = 0
    """the rows of MIG slices that nodes have, or that templates or the catalog's overlay declare (``policies.offers.known_slices``)"""
    merged: LruCache[Any] = field(default_factory=no_merged)
    """merged policies (``policies.planning.requirements``), keyed by the policies themselves: the next
    snapshot takes it over if tables, templates and the facts on which any decision may rest are the same"""
    selected: dict[str, tuple[Compiled, ...]] = field(default_factory=dict)
    """namespace -> the cluster's policies that select it, for namespaces looked up so far"""
    _facts: dict[str, NamespaceFacts] = field(default_factory=dict, init=False)

    def resource(self, name: str) -> Resource | None:
        """Return the accelerator resource of this name, or None if it is none.

        It may also be one by which a DeviceClass offers its devices (KEP-5004), or a name that no list has but that looks like one.
        """
        found = self.catalog.resource(name)
        device_class = self._class_behind(name, found)
        if device_class is None:
            return found or self.lookalikes.resource(name)
        if not self.counts(device_class):
            return None
        return Resource(name=name, vendor=self.class_vendor(device_class), kind="dra")

    def whole(self, name: str) -> str | None:
        """Return the resource name of a whole GPU for that of a MIG slice; None for any other name."""
        found = self.resource(name)
        return self.catalog.whole.get(found.vendor) if found is not None and found.kind == "mig" else None

    def _class_behind(self, name: str, found: Resource | None) -> str | None:
        if found is not None:
            return name.partition("/")[2] if found.kind == "dra" else None
        classes = self.cluster.device_classes.items() if "/" in name else ()
        return next((device_class for device_class, facts in classes if facts.extended == name), None)

    def places(self, resource: Resource) -> bool:
        """Return whether some table in force has or may have offers of it. For a name of a DeviceClass only what is listed counts; the
        nodes of GPUs for virtual machines have no labels that tell their model."""
        known = resource.kind not in ("dra", "passthrough") or resource.name in self.served
        return known and any(table.of_resource(resource.name) for table in self.tables.values())

    def lists(self, name: str) -> bool:
        """Return whether some table in force has offers of this very resource name."""
        return any(name in table.listed for table in self.tables.values())

    def uses(self, platforms: Collection[str]) -> bool:
        """Return whether something of these platforms alone (none: of all) matters here: one of them is in
        force, or nobody knows which are."""
        return not (platforms and self.placed) or not self.tables.keys().isdisjoint(platforms)

    def counts(self, device_class: str) -> bool:
        """Return whether the devices of a DeviceClass are accelerators.

        All are except those whose class names a driver that is not an accelerator's. The class's own name
        counts only where the class can't be read: whoever creates a class may choose it, which no tenant can.
        """
        known = self.cluster.device_classes.get(device_class)
        return self.catalog.is_accelerator_driver(device_class if known is None else known.driver)

    def class_vendor(self, device_class: str) -> str:
        """Return the vendor of the devices of a DeviceClass, or "" if it is not known."""
        return self.catalog.dra_drivers.get(self.catalog.driver(self.cluster.driver(device_class)), "")

    def with_policies(self, policies: Iterable[Compiled]) -> Snapshot:
        """Return this snapshot with these policies instead, without anything cached."""
        ordered = tuple(sorted(policies, key=lambda c: c.id))
        of_cluster = tuple(c for c in ordered if c.policy.namespace is None)
        return replace(
            self,
            policies=ordered,
            of_cluster=of_cluster,
            own=by_namespace(ordered),
            reads=reads((c.policy for c in ordered), self.catalog),
            by_labels=by_labels(of_cluster),
            merged=no_merged(),
            selected={},
        )

    def with_facts(self, cluster: ClusterFacts) -> Snapshot:
        """Return this snapshot with these facts instead, without anything cached."""
        pools = platform_detection.pools_without_gpus(self.catalog, cluster)
        return replace(self, cluster=cluster, pools_without_gpus=pools, merged=no_merged(), selected={})

    @property
    def enforces(self) -> bool:
        """True if any policy may deny a pod."""
        return any(compiled.mode == "Enforce" for compiled in self.policies)

    def policy(self, policy_id: str) -> Compiled | None:
        """Return the policy with this id (``GPUPolicy/ml-team/own``), or None if it is not in force."""
        at = bisect_left(self.policies, policy_id, key=lambda c: c.id)
        found = self.policies[at] if at < len(self.policies) else None
        return found if found is not None and found.id == policy_id else None

    def knows(self, namespace: str) -> bool:
        """Return False if a namespace is so new that its labels have not arrived, and some policy depends on
        them."""
        return not (self.by_labels and self.every_namespace) or namespace in self.cluster.namespaces

    def facts_for(self, namespace: str) -> NamespaceFacts:
        """Return the facts for one namespace, with only the policies that select it."""
        facts = self._facts.get(namespace)
        if facts is None and len(namespace) > LONGEST_NAMESPACE:
            return self._make_facts(namespace)
        if facts is None:
            if len(self._facts) >= _MOST_NAMESPACES:
                self._facts.clear()
                self.selected.clear()
            facts = self._facts[namespace] = self._make_facts(namespace)
        return facts

    def forget(self) -> None:
        """Drop the cached facts of a snapshot that is no longer in force: they refer to it, a cycle for the garbage collector."""
        self._facts.clear()

    def _make_facts(self, namespace: str) -> NamespaceFacts:
        labels = {**self.cluster.namespaces.get(namespace, {}), NAMESPACE_LABEL: namespace}
        selected = self.selected.get(namespace)
        if selected is None:
            selectors = ((c, c.policy.match.namespace_selector) for c in self.of_cluster)
            selected = tuple(c for c, selector in selectors if selector is None or selector.matches(labels))
            if len(namespace) <= LONGEST_NAMESPACE:
                self.selected[namespace] = selected
        own = self.own.get(namespace, ())
        policies = (*selected, *own)
        reads = self.reads.wider([c.policy for c in own]) if own else self.reads
        return NamespaceFacts(namespace, labels, policies, NamespaceScope(policies), self, reads)


@dataclass(frozen=True, slots=True)
class NamespaceFacts:
    """The part of a snapshot that applies to one namespace."""

    namespace: str
    labels: Mapping[str, str]
    policies: tuple[Compiled, ...]
    """the cluster's, then the namespace's own, each sorted by id"""
    scope: NamespaceScope
    """equal for namespaces with the same policies, for whose pods the decisions are the same"""
    snapshot: Snapshot
    reads: Reads
    """what is read of a pod in this namespace"""

    @property
    def enforces(self) -> bool:
        """True if any policy may deny a pod in this namespace."""
        return any(compiled.mode == "Enforce" for compiled in self.policies)


def by_labels(policies: Iterable[Compiled]) -> bool:
    """Return whether one of these policies selects namespaces by more than the name label, which every
    namespace has."""
    selectors = (c.policy.match.namespace_selector for c in policies)
    return any(key != NAMESPACE_LABEL for selector in selectors if selector is not None for key in selector.keys)


_MOST_NAMES = 4096
"""names whose answer is cached: a cluster has tens, but authors can choose any"""


class Lookalikes:
    """Classifies unlisted resource names under one catalog. The answers are cached, up to a bound."""

    __slots__ = ("_catalog", "_found")

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._found: dict[str, Resource | None] = {}

    def resource(self, name: str) -> Resource | None:
        """Return an accelerator of an unknown vendor if the resource name looks like one, else None."""
        if "/" not in name or len(name) > LONGEST_NAME:
            return None
        if name not in self._found:
            if len(self._found) >= _MOST_NAMES:
                self._found.clear()
            self._found[name] = self._read(name)
        return self._found[name]

    def _read(self, name: str) -> Resource | None:
        catalog = self._catalog
        if name in catalog.misspellings or not unlisted_accelerators.is_extended(name):
            return None
        if not unlisted_accelerators.looks_like_one(name, catalog):
            return None
        measure = catalog.measure(name)
        if measure is None:
            return Resource(name=name, vendor="", kind="other")
        return Resource(name=name, vendor="", kind="part", unit=measure.unit)


class ServedTables:
    """What was made of the last tables and classes."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._plain: Mapping[str, Table] = {}
        self._tables: Mapping[str, Table] = {}
        self._served: Mapping[str, Served] | None = None
        self._classes: Mapping[str, DeviceClass] = {}

    def update(self, plain: Mapping[str, Table], facts: ClusterFacts) -> tuple[Mapping[str, Table], Mapping[str, Served]]:
        """Return the tables with what DeviceClasses serve, and what that is; the same objects while neither changes."""
        found = self._served
        if found is None or facts.device_classes is not self._classes:
            found = served(facts, self._catalog)
        if plain is not self._plain or found != self._served:
            self._plain, self._served, self._tables = plain, found, with_served(plain, found)
        self._classes = facts.device_classes
        return self._tables, found


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Label keys of every platform, listed or not, by axis: an author who uses one has made a choice on that
    axis."""

    machine: frozenset[str]
    capacity: frozenset[str]
    sharing: frozenset[str]
    template: frozenset[str]
    """labels of the node templates"""


def vocabulary(catalog: Catalog, templates: Iterable[NodeTemplate]) -> Vocabulary:
    """Return the label keys that the catalog and these templates name."""
    platforms = catalog.platforms.values()
    capacity = frozenset(key for p in platforms for key in p.capacity_keys)
    return Vocabulary(
        machine=frozenset(key for p in platforms for key in (*p.labels, *p.after_boot)) - capacity,
        capacity=capacity,
        sharing=frozenset(key for scheme in catalog.schemes.values() for v in scheme.variants for key in v.labels),
        template=frozenset(catalog.label_aliases.get(key, key) for t in templates for key, _ in t.labels),
    )
