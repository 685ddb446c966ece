"""One moment's policies, catalog and cluster facts, compiled: what a review reads, immutable, swapped by reference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from policies import tables
from policies.catalog import Catalog
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

_MOST_REMEMBERED = 32 * 2**20
"""bytes: some 2,000 sets of five policies. Which ones match differs by namespace, workload and labels, which authors write"""

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


def _vocabulary(catalog: Catalog, templates: Iterable[NodeTemplate]) -> Vocabulary:
    platforms = catalog.platforms.values()
    capacity = frozenset(key for p in platforms for key in p.capacity_keys)
    return Vocabulary(
        machine=frozenset(key for p in platforms for key in (*p.labels, *p.after_boot)) - capacity,
        capacity=capacity,
        sharing=frozenset(key for scheme in catalog.schemes.values() for v in scheme.variants for key in v.labels),
        template=frozenset(key for t in templates for key, _ in t.labels),
    )


@dataclass(frozen=True, slots=True)
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
    templates: Mapping[str, CompiledTemplate]
    cluster: ClusterFacts
    vocabulary: Vocabulary
    reads: Reads = field(init=False)
    decided: Kept[Any] = field(default_factory=lambda: Kept(_MOST_DECIDED), init=False)
    """what the server has decided under it (``webhook.decisions``)"""
    remembered: Kept[Any] = field(default_factory=lambda: Kept(_MOST_REMEMBERED), init=False)
    """of ``demands`` alone: sets of policies, merged"""
    _of_cluster: tuple[Compiled, ...] = field(init=False)
    _own: Mapping[str, tuple[Compiled, ...]] = field(init=False)
    """by namespace: its own policies; the rest is the cluster's"""
    _facts: dict[str, Facts] = field(default_factory=dict, init=False)
    _scopes: dict[tuple[int, ...], int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reads", reads((c.policy for c in self.policies), self.catalog))
        object.__setattr__(self, "_of_cluster", tuple(c for c in self.policies if c.policy.namespace is None))
        object.__setattr__(self, "_own", _by_namespace(self.policies))

    @property
    def enforces(self) -> bool:
        """Whether any policy may refuse."""
        return any(compiled.mode == "Enforce" for compiled in self.policies)

    def facts_for(self, namespace: str) -> Facts:
        """The facts for one namespace: only the policies whose scope it is in."""
        facts = self._facts.get(namespace)
        if facts is None and len(namespace) > LONGEST_NAMESPACE:
            return self._make_facts(namespace)
        if facts is None:
            if len(self._facts) >= _MOST_NAMESPACES:
                self._facts.clear()
            facts = self._facts[namespace] = self._make_facts(namespace)
        return facts

    def forget(self) -> None:
        """For one that is no longer in force. What it remembers of namespaces holds the snapshot itself: with that gone,
        nothing is left for the garbage collector to find."""
        self._facts.clear()
        self.decided.clear()
        self.remembered.clear()

    def _make_facts(self, namespace: str) -> Facts:
        labels = {**self.cluster.namespaces.get(namespace, {}), NAMESPACE_LABEL: namespace}
        policies = (*(c for c in self._of_cluster if _selects(c.policy, labels)), *self._own.get(namespace, ()))
        scope = self._scopes.setdefault(tuple(map(id, policies)), len(self._scopes))
        return Facts(namespace, labels, policies, scope, self)


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


def _selects(policy: Policy, labels: Mapping[str, str]) -> bool:
    selector = policy.match.namespace_selector
    return selector is None or selector.matches(labels)


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
    names = [name for name in catalog.platforms if not platforms or name in platforms]
    families = frozenset(_named_families(policy_set)) - catalog.machine_families()
    built = {
        name: tables.build(catalog.platforms[name], catalog, mig_strategy=mig_strategy, families=families, templates=policy_set.templates)
        for name in names
    }
    tables.share_known(built.values())
    compiler = Compiler(catalog, built)
    policies = tuple(sorted((compiler.policy(p, max_mode) for p in policy_set.policies), key=lambda c: c.policy.id))
    return Snapshot(
        catalog=catalog,
        tables=built,
        placed=bool(platforms),
        mig_strategy=mig_strategy,
        queues=tuple(queues),
        max_mode=max_mode,
        policies=policies,
        templates={t.name: compiler.template(t) for t in sorted(policy_set.templates, key=lambda t: t.name)},
        cluster=cluster or ClusterFacts(),
        vocabulary=_vocabulary(catalog, policy_set.templates),
    )


def _by_namespace(policies: Iterable[Compiled]) -> dict[str, tuple[Compiled, ...]]:
    found: dict[str, list[Compiled]] = {}
    for compiled in policies:
        if compiled.policy.namespace is not None:
            found.setdefault(compiled.policy.namespace, []).append(compiled)
    return {namespace: tuple(own) for namespace, own in found.items()}


def _named_families(policy_set: PolicySet) -> Iterator[str]:
    machines = [m for p in policy_set.policies for m in (p.require.machine, p.default.machine)]
    for machine in (*machines, *(t.machine for t in policy_set.templates)):
        if machine.instance_families is not None:
            yield from machine.instance_families.in_
            yield from machine.instance_families.not_in
