"""One moment's policies, catalog and cluster facts, compiled: what a review reads, immutable, swapped by reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from policies import offers
from policies.catalog import Catalog
from policies.cluster_facts import ClusterFacts
from policies.offers import Axis, Host, Table
from policies.policy import Bounds, Capacity, InNotIn, LongRuns, Machine, NodeTemplate, Policy, PolicySet, Sharing
from policies.verdict import MODES, Mode

_HostTest = Callable[[Host], bool]
NAMESPACE_LABEL = "kubernetes.io/metadata.name"
"""the one label that every namespace has (KEP-2161)"""


_MOST_NAMESPACES = 10_000
"""remembered per snapshot: as many as the largest cluster that SIG Scalability tests with; bounds what a caller can fill"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """One field of one policy as sets of rows, with the words to name it."""

    axis: Axis
    by: tuple[str, ...]
    """who asks: the policy; for a default that several give alike, all of them; for a template, who chose it"""
    field: str
    """``spec.require.families``"""
    text: str
    """``families in [hopper, ampere]``"""
    rows: Mapping[str, int]
    """platform -> rows inside"""
    inexpressible: tuple[str, ...] = ()
    """platforms whose nodes do not have the attribute at all: all rows are inside there"""
    narrows: bool = False
    """True for a list of what is wanted (``in``, capacity): losing part of it is said"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A policy with its constraints as sets."""

    policy: Policy
    mode: Mode
    """already capped by --max-mode"""
    require: tuple[Constraint, ...]
    require_long: Constraint | None
    machine: tuple[Constraint, ...]
    """``default``'s machine fields; empty: none"""
    capacity: Constraint | None
    capacity_long: Constraint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledTemplate:
    template: NodeTemplate
    constraints: tuple[Constraint, ...]
    rows: Mapping[str, int]
    """platform -> rows inside all of them"""


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
    _facts: dict[str, Facts] = field(default_factory=dict)

    def facts_for(self, namespace: str) -> Facts:
        """The facts for one namespace: only the policies whose scope it is in."""
        facts = self._facts.get(namespace)
        if facts is None:
            if len(self._facts) >= _MOST_NAMESPACES:
                self._facts.clear()
            facts = self._facts[namespace] = self._make_facts(namespace)
        return facts

    def _make_facts(self, namespace: str) -> Facts:
        labels = {**self.cluster.namespaces.get(namespace, {}), NAMESPACE_LABEL: namespace}
        return Facts(namespace, labels, tuple(c for c in self.policies if _in_scope(c.policy, namespace, labels)), self)


@dataclass(frozen=True, slots=True)
class Facts:
    """A snapshot as one namespace sees it."""

    namespace: str
    labels: Mapping[str, str]
    policies: tuple[Compiled, ...]
    snapshot: Snapshot


def who(constraints: Iterable[Constraint]) -> tuple[str, ...]:
    """Everyone who asks for one of these, sorted."""
    return tuple(sorted({name for constraint in constraints for name in constraint.by}))


def _in_scope(policy: Policy, namespace: str, labels: Mapping[str, str]) -> bool:
    if policy.namespace is not None:
        return policy.namespace == namespace
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
    tables = {
        name: offers.build(catalog.platforms[name], catalog, mig_strategy=mig_strategy, families=families, templates=policy_set.templates)
        for name in names
    }
    offers.share_known(tables.values())
    compiler = _Compiler(catalog, tables)
    return Snapshot(
        catalog=catalog,
        tables=tables,
        placed=bool(platforms),
        mig_strategy=mig_strategy,
        queues=tuple(queues),
        max_mode=max_mode,
        policies=tuple(sorted((compiler.policy(p, max_mode) for p in policy_set.policies), key=lambda c: c.policy.id)),
        templates={t.name: compiler.template(t) for t in sorted(policy_set.templates, key=lambda t: t.name)},
        cluster=cluster or ClusterFacts(),
        vocabulary=_vocabulary(catalog, policy_set.templates),
    )


def _named_families(policy_set: PolicySet) -> Iterator[str]:
    machines = [m for p in policy_set.policies for m in (p.require.machine, p.default.machine)]
    for machine in (*machines, *(t.machine for t in policy_set.templates)):
        if machine.instance_families is not None:
            yield from machine.instance_families.in_
            yield from machine.instance_families.not_in


@dataclass(frozen=True, slots=True)
class _Compiler:
    catalog: Catalog
    tables: Mapping[str, Table]

    def policy(self, policy: Policy, max_mode: Mode) -> Compiled:
        require, default, name = policy.require, policy.default, policy.id
        constraints = list(self.machine(name, "spec.require", require.machine))
        if require.capacity:
            constraints.append(self.capacity(name, "spec.require.capacity", require.capacity))
        if require.sharing:
            constraints.append(self.sharing(name, "spec.require.sharing", require.sharing))
        return Compiled(
            policy=policy,
            mode=MODES[min(MODES.index(policy.mode), MODES.index(max_mode))],
            require=tuple(constraints),
            require_long=self.long(name, "spec.require.longRuns", require.long_runs),
            machine=tuple(self.machine(name, "spec.default", default.machine)),
            capacity=self.capacity(name, "spec.default.capacity", default.capacity) if default.capacity else None,
            capacity_long=self.long(name, "spec.default.longRuns", default.long_runs),
        )

    def template(self, template: NodeTemplate) -> CompiledTemplate:
        name = f"GPUNodeTemplate/{template.name}"
        constraints = list(self.machine(name, "spec.gpus", template.machine))
        if template.vendors:
            constraints.append(self.hosts(name, "spec.gpus.vendors", f"vendors {_list(template.vendors)}", lambda h: h.vendor in template.vendors))
        if template.capacity:
            constraints.append(self.capacity(name, "spec.capacity", template.capacity))
        if template.sharing:
            constraints.append(self.sharing(name, "spec.gpus.sharing", template.sharing))
        rows = {platform: table.all for platform, table in self.tables.items()}
        for constraint in constraints:
            rows = {platform: mask & constraint.rows[platform] for platform, mask in rows.items()}
        return CompiledTemplate(template=template, constraints=tuple(constraints), rows=rows)

    def machine(self, policy: str, where: str, machine: Machine) -> Iterator[Constraint]:
        """One constraint per machine field that is given."""
        lists = (
            ("families", machine.families, Machine(families=machine.families)),
            ("models", machine.models, Machine(models=machine.models)),
            ("instanceFamilies", machine.instance_families, Machine(instance_families=machine.instance_families)),
        )
        for name, wanted, alone in lists:
            if wanted is not None:
                yield self._machine(policy, f"{where}.{name}", f"{name} {_in_not_in(wanted)}", alone, bool(wanted.in_))
        if machine.gpu_memory is not None:
            field_name = "memory" if where == "spec.gpus" else "gpuMemory"
            one = Machine(gpu_memory=machine.gpu_memory)
            yield self._machine(policy, f"{where}.{field_name}", f"{field_name} {_bounds(machine.gpu_memory)}", one, True)

    def _machine(self, policy: str, where: str, text: str, machine: Machine, narrows: bool) -> Constraint:
        by_family = machine.instance_families is not None
        lacking = tuple(name for name, table in self.tables.items() if by_family and table.platform.cloud is None)
        return self.hosts(policy, where, text, lambda host: offers.in_machine(host, machine, self.catalog), lacking, narrows)

    def hosts(
        self, policy: str, where: str, text: str, inside: _HostTest, lacking: tuple[str, ...] = (), narrows: bool = True
    ) -> Constraint:
        rows = {name: table.all if name in lacking else _host_rows(table, inside) for name, table in self.tables.items()}
        return Constraint(axis="machine", by=(policy,), field=where, text=text, rows=rows, inexpressible=lacking, narrows=narrows)

    def capacity(self, policy: str, where: str, wanted: Sequence[Capacity]) -> Constraint:
        """``on-demand`` includes reserved: Karpenter marks paid reservations so."""
        names = {*wanted, *(("reserved",) if "on-demand" in wanted else ())}
        rows = {name: sum(table.by_capacity.get(c, 0) for c in names) for name, table in self.tables.items()}
        return Constraint(axis="capacity", by=(policy,), field=where, text=f"capacity {_list(wanted)}", rows=rows, narrows=True)

    def long(self, policy: str, where: str, long_runs: LongRuns | None) -> Constraint | None:
        return None if long_runs is None else self.capacity(policy, f"{where}.capacity", long_runs.capacity)

    def sharing(self, policy: str, where: str, wanted: Sequence[Sharing]) -> Constraint:
        rows = {name: sum(table.by_sharing.get(s, 0) for s in set(wanted)) for name, table in self.tables.items()}
        return Constraint(axis="sharing", by=(policy,), field=where, text=f"sharing {_list(wanted)}", rows=rows, narrows=True)


def _host_rows(table: Table, inside: _HostTest) -> int:
    return table.where(_remembered(table, inside))


def _remembered(table: Table, inside: _HostTest) -> Iterator[bool]:
    seen: dict[int, bool] = {}
    for offer in table.offers:
        key = id(offer.host)
        if key not in seen:
            seen[key] = inside(offer.host)
        yield seen[key]


def _list(values: Sequence[str]) -> str:
    return f"[{', '.join(values)}]"


def _in_not_in(wanted: InNotIn) -> str:
    parts = [f"in {_list(wanted.in_)}"] if wanted.in_ else []
    return " ".join([*parts, f"notIn {_list(wanted.not_in)}"] if wanted.not_in else parts)


def _bounds(bounds: Bounds) -> str:
    least = "" if bounds.min is None else f"at least {bounds.min} GB"
    most = "" if bounds.max is None else f"at most {bounds.max} GB"
    return " and ".join(filter(None, (least, most)))
