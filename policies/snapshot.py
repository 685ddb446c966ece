"""One moment's policies, catalog and cluster facts, compiled: what a review reads, immutable, swapped by reference."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from policies import detect, lookalikes, tables
from policies.catalog import LONGEST_NAME, Catalog, Resource
from policies.cluster_facts import ClusterFacts
from policies.compiled import Compiled, CompiledTemplate, Compiler
from policies.extract import Reads, reads
from policies.kept import Kept
from policies.offers import Table
from policies.policy import NodeTemplate, Policy, PolicySet
from policies.verdict import Mode

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
"""the one label that every namespace has (KEP-2161)"""


_MOST_NAMESPACES = 10_000
"""remembered per snapshot: as many as the largest cluster that SIG Scalability tests with; bounds what a caller can fill"""

LONGEST_NAMESPACE = 63
"""characters (RFC 1123 label): of a longer one nothing is remembered, since there is none"""

_MOST_NAMES = 4096
"""resource names that stand in no list and were looked at; a cluster has tens, authors choose them"""

_MOST_REMEMBERED = 32 * 2**20
"""bytes: some 2,000 sets of five policies. Which ones match differs by namespace, workload and labels, which authors write"""

MOST_OWN = 40
"""GPUPolicies of one namespace that act there, the first by name: each is matched with every pod of the namespace, and those that match are
merged. The others only ever narrow less: what the cluster requires holds without them."""
MOST_OWN_TOLERATIONS = 40
"""Tolerations that the GPUPolicies of one namespace forbid or add, together: each is compared with each of a pod (``work``: up to 180), and
each that is added is written again in what every audited policy would do. A policy with which there would be more does not act."""

_MOST_FAMILIES = 64
"""instance families that the catalog lacks and that get rows: clouds bring out a few between two catalogs; a thousand take a minute"""

_MOST_DECIDED = 16 * 2**20
"""bytes: some 1,600 decisions of 10 KiB, which is a namespace's or two of each of a thousand"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Label keys by the axis that they speak of, of every platform, listed or not: who uses one is not silent there."""

    machine: frozenset[str]
    capacity: frozenset[str]
    sharing: frozenset[str]
    template: frozenset[str]
    """labels of the node templates"""


def vocabulary(catalog: Catalog, templates: Iterable[NodeTemplate]) -> Vocabulary:
    """Of everything that the catalog and these templates name."""
    platforms = catalog.platforms.values()
    capacity = frozenset(key for p in platforms for key in p.capacity_keys)
    return Vocabulary(
        machine=frozenset(key for p in platforms for key in (*p.labels, *p.after_boot)) - capacity,
        capacity=capacity,
        sharing=frozenset(key for scheme in catalog.schemes.values() for v in scheme.variants for key in v.labels),
        template=frozenset(catalog.label_aliases.get(key, key) for t in templates for key, _ in t.labels),
    )


class Memory:
    """What was worked out under one catalog, its tables, templates and cluster facts. Everything in it is found by the policies that it
    rests on, as they are compiled: a snapshot that differs in others alone takes it over (``policies.living``)."""

    __slots__ = ("_lookalikes", "_next", "_scopes", "decided", "remembered")

    def __init__(self) -> None:
        self.decided: Kept[Any] = Kept(_MOST_DECIDED)
        """what the server has decided (``webhook.decisions``)"""
        self.remembered: Kept[Any] = Kept(_MOST_REMEMBERED)
        """of ``demands`` alone: sets of policies, merged"""
        self._scopes: dict[tuple[Compiled, ...], int] = {}
        self._next = itertools.count()
        self._lookalikes: dict[str, Resource | None] = {}

    def scope(self, policies: tuple[Compiled, ...]) -> int:
        """A number for this very set of policies, never given to another."""
        found = self._scopes.get(policies)
        if found is None:
            if len(self._scopes) >= _MOST_NAMESPACES:
                self._scopes.clear()
            found = self._scopes[policies] = next(self._next)
        return found

    def lookalike(self, name: str, catalog: Catalog) -> Resource | None:
        """An accelerator of nobody knows whose, where the name of a resource says so; None where it says nothing."""
        if "/" not in name or len(name) > LONGEST_NAME:
            return None
        if name not in self._lookalikes:
            if len(self._lookalikes) >= _MOST_NAMES:
                self._lookalikes.clear()
            like = name not in catalog.misspellings and lookalikes.is_extended(name) and lookalikes.looks_like_one(name, catalog)
            self._lookalikes[name] = _of_nobody(name, catalog) if like else None
        return self._lookalikes[name]

    def clear(self) -> None:
        """Forget everything."""
        self.decided.clear()
        self.remembered.clear()
        self._scopes.clear()


def _of_nobody(name: str, catalog: Catalog) -> Resource:
    measure = catalog.measure(name)
    if measure is None:
        return Resource(name=name, vendor="", kind="other")
    return Resource(name=name, vendor="", kind="part", unit=measure.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything a decision may know. ``facts_for`` is one dict look-up once a namespace has been seen."""

    catalog: Catalog
    tables: Mapping[str, Table]
    """by platform, in the catalog's order: the listed ones, or all of them"""
    placed: bool
    """False without --platforms: placement is judged for contradictions on all tables, and not written"""
    mig_strategy: str
    queues: tuple[str, ...]
    max_mode: Mode
    policies: tuple[Compiled, ...]
    """sorted by id: the cluster's come first"""
    of_cluster: tuple[Compiled, ...]
    own: Mapping[str, tuple[Compiled, ...]]
    """by namespace: its own policies, as many as act; the rest is the cluster's"""
    templates: Mapping[str, CompiledTemplate]
    cluster: ClusterFacts
    pools_without_gpus: frozenset[str]
    """NodePools that no GPU pod lands on"""
    vocabulary: Vocabulary
    reads: Reads
    """what the cluster's policies read; a namespace's own may read more there (``Facts.reads``), and cost no other namespace anything"""
    every_namespace: bool = False
    """whether ``cluster`` has all namespaces that there are: what it lacks has come into being a moment ago"""
    by_labels: bool = False
    """whether a policy of the cluster chooses namespaces by labels besides their name"""
    memory: Memory = field(default_factory=Memory)
    selected: dict[str, tuple[Compiled, ...]] = field(default_factory=dict)
    """namespace -> the cluster's policies for it, of those that were asked for"""
    _facts: dict[str, Facts] = field(default_factory=dict, init=False)

    def resource(self, name: str) -> Resource | None:
        """What this resource name is, also where a DeviceClass offers its devices by it (KEP-5004), and where it stands in no list and
        looks like an accelerator; None if it is none."""
        found = self.catalog.resource(name)
        device_class = self._class_behind(name, found)
        if device_class is None:
            return found or self.memory.lookalike(name, self.catalog)
        if not self.counts(device_class):
            return None
        return Resource(name=name, vendor=self.class_vendor(device_class), kind="dra")

    def _class_behind(self, name: str, found: Resource | None) -> str | None:
        if found is not None:
            return name.partition("/")[2] if found.kind == "dra" else None
        classes = self.cluster.device_classes.items() if "/" in name else ()
        return next((device_class for device_class, said in classes if said.extended == name), None)

    def places(self, resource: Resource) -> bool:
        """Whether some table in force has offers of it, or may have: where devices of a claim are is the claim's business."""
        return resource.kind != "dra" and any(table.of_resource(resource.name) for table in self.tables.values())

    def lists(self, name: str) -> bool:
        """Whether some table in force has offers of this very resource name."""
        return any(name in table.by_resource for table in self.tables.values())

    def counts(self, device_class: str) -> bool:
        """Whether the devices of a DeviceClass are accelerators: all are, but those whose class says itself that its driver is another's.
        A name says nothing: whoever makes a class may choose it."""
        known = self.cluster.device_classes.get(device_class)
        return known is None or self.catalog.is_accelerator_driver(known.driver)

    def class_vendor(self, device_class: str) -> str:
        """Whose devices those of a DeviceClass are; "" where nobody knows."""
        return self.catalog.dra_drivers.get(self.cluster.driver(device_class), "")

    def with_policies(self, policies: Iterable[Compiled]) -> Snapshot:
        """The same moment under these policies. Nothing that was worked out before is taken over."""
        ordered = tuple(sorted(policies, key=lambda c: c.policy.id))
        of_cluster = tuple(c for c in ordered if c.policy.namespace is None)
        return replace(
            self,
            policies=ordered,
            of_cluster=of_cluster,
            own=_by_namespace(ordered),
            reads=reads((c.policy for c in ordered), self.catalog),
            by_labels=by_labels(of_cluster),
            memory=Memory(),
            selected={},
        )

    def with_facts(self, cluster: ClusterFacts) -> Snapshot:
        """The same policies under these facts. Nothing that was worked out before is taken over."""
        pools = detect.pools_without_gpus(self.catalog, cluster)
        return replace(self, cluster=cluster, pools_without_gpus=pools, memory=Memory(), selected={})

    @property
    def enforces(self) -> bool:
        """Whether any policy may refuse."""
        return any(compiled.mode == "Enforce" for compiled in self.policies)

    def policy(self, policy_id: str) -> Compiled | None:
        """By its id, ``GPUPolicy/ml-team/own``; None where it is not in force."""
        at = bisect_left(self.policies, policy_id, key=lambda c: c.policy.id)
        found = self.policies[at] if at < len(self.policies) else None
        return found if found is not None and found.policy.id == policy_id else None

    def knows(self, namespace: str) -> bool:
        """False where a namespace is so new that its labels have not come yet, and some policy depends on them."""
        return not (self.by_labels and self.every_namespace) or namespace in self.cluster.namespaces

    def facts_for(self, namespace: str) -> Facts:
        """The facts for one namespace: only the policies whose scope it is in."""
        facts = self._facts.get(namespace)
        if facts is None and len(namespace) > LONGEST_NAMESPACE:
            return self._make_facts(namespace)
        if facts is None:
            if len(self._facts) >= _MOST_NAMESPACES:
                self._facts.clear()
                self.selected.clear()
            facts = self._facts[namespace] = self._make_facts(namespace)
        return facts

    def forget(self, successor: Snapshot | None = None) -> None:
        """For one that is no longer in force. What it remembers of namespaces holds the snapshot itself: with that gone,
        nothing is left for the garbage collector to find. What the ``successor`` took over stays."""
        self._facts.clear()
        if successor is None or successor.memory is not self.memory:
            self.memory.clear()

    def _make_facts(self, namespace: str) -> Facts:
        labels = {**self.cluster.namespaces.get(namespace, {}), NAMESPACE_LABEL: namespace}
        selected = self.selected.get(namespace)
        if selected is None:
            selected = tuple(c for c in self.of_cluster if _selects(c.policy, labels))
            if len(namespace) <= LONGEST_NAMESPACE:
                self.selected[namespace] = selected
        own = self.own.get(namespace, ())
        policies = (*selected, *own)
        reads = self.reads.wider([c.policy for c in own]) if own else self.reads
        return Facts(namespace, labels, policies, self.memory.scope(policies), self, reads)


@dataclass(frozen=True, slots=True)
class Facts:
    """A snapshot as one namespace sees it."""

    namespace: str
    labels: Mapping[str, str]
    policies: tuple[Compiled, ...]
    """the cluster's, then the namespace's own, each sorted by id"""
    scope: int
    """the same number for namespaces with the same policies: their pods are decided alike"""
    snapshot: Snapshot
    reads: Reads
    """what is read of a pod here"""

    @property
    def enforces(self) -> bool:
        """Whether any policy may refuse here."""
        return any(compiled.mode == "Enforce" for compiled in self.policies)


def _selects(policy: Policy, labels: Mapping[str, str]) -> bool:
    selector = policy.match.namespace_selector
    return selector is None or selector.matches(labels)


def by_labels(policies: Iterable[Compiled]) -> bool:
    """Whether one of these chooses namespaces by more than their name, which every namespace is born with."""
    selectors = (c.policy.match.namespace_selector for c in policies)
    return any(key != NAMESPACE_LABEL for selector in selectors if selector is not None for key in selector.keys)


def build(
    policy_set: PolicySet,
    catalog: Catalog,
    *,
    platforms: Sequence[str] = (),
    mig_strategy: str = "mixed",
    queues: Sequence[str] = (),
    max_mode: Mode = "Enforce",
    cluster: ClusterFacts | None = None,
) -> Snapshot:
    """Compile a snapshot. ``platforms``: names in the catalog; the caller has checked them."""
    named_by: list[Policy | NodeTemplate] = [*policy_set.policies, *policy_set.templates]
    families = unknown_families((family for one in named_by for family in instance_families(one)), catalog.machine_families())
    built = tables_of(catalog, platforms, mig_strategy, families, policy_set.templates)
    compiler = Compiler(catalog, built)
    policies = tuple(sorted((compiler.policy(p, max_mode) for p in policy_set.policies), key=lambda c: c.policy.id))
    of_cluster = tuple(c for c in policies if c.policy.namespace is None)
    return Snapshot(
        catalog=catalog,
        tables=built,
        placed=bool(platforms),
        mig_strategy=mig_strategy,
        queues=tuple(queues),
        max_mode=max_mode,
        policies=policies,
        of_cluster=of_cluster,
        own=_by_namespace(policies),
        templates={t.name: compiler.template(t) for t in sorted(policy_set.templates, key=lambda t: t.name)},
        cluster=cluster or ClusterFacts(),
        pools_without_gpus=detect.pools_without_gpus(catalog, cluster or ClusterFacts()),
        vocabulary=vocabulary(catalog, policy_set.templates),
        reads=reads(policy_set.policies, catalog),
        by_labels=by_labels(of_cluster),
    )


def tables_of(
    catalog: Catalog, platforms: Sequence[str], mig_strategy: str, families: frozenset[str], templates: Sequence[NodeTemplate]
) -> dict[str, Table]:
    """The tables of these platforms, or of all, in the catalog's order."""
    names = [name for name in catalog.platforms if not platforms or name in platforms]
    built = {
        name: tables.build(catalog.platforms[name], catalog, mig_strategy=mig_strategy, families=families, templates=templates)
        for name in names
    }
    tables.share_known(built.values())
    return built


def unknown_families(named: Iterable[str], known: AbstractSet[str]) -> frozenset[str]:
    """Of these instance families those that the catalog lacks, as many as get rows of their own."""
    return frozenset(sorted(frozenset(named) - known)[:_MOST_FAMILIES])


def _by_namespace(policies: Iterable[Compiled]) -> dict[str, tuple[Compiled, ...]]:
    found: dict[str, list[Compiled]] = {}
    for compiled in policies:
        if compiled.policy.namespace is not None:
            found.setdefault(compiled.policy.namespace, []).append(compiled)
    return {namespace: own_acting(own) for namespace, own in found.items()}


def own_acting(own: Iterable[Compiled]) -> tuple[Compiled, ...]:
    """Of the policies of one namespace, sorted by id, those that act."""
    acting: list[Compiled] = []
    left = MOST_OWN_TOLERATIONS
    for compiled in own:
        listed = len(compiled.policy.require.forbid_tolerations) + len(compiled.policy.default.tolerate)
        if listed <= left:
            acting.append(compiled)
            left -= listed
        if len(acting) == MOST_OWN:
            break
    return tuple(acting)


def instance_families(named_by: Policy | NodeTemplate) -> Iterator[str]:
    """Every instance family, known or not, for which what it says makes a row. A namespace's own policy makes none: rows are everybody's,
    and each costs all of them, so what it names and nobody else knows is no machine."""
    if isinstance(named_by, Policy) and named_by.namespace is not None:
        return
    machines = [named_by.machine] if isinstance(named_by, NodeTemplate) else [named_by.require.machine, named_by.default.machine]
    for machine in machines:
        if machine.instance_families is not None:
            yield from machine.instance_families.in_
            yield from machine.instance_families.not_in
