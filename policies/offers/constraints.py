"""Policies and templates as sets of offers: each placement field of ``require`` and ``default`` constrains
one axis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from catalog import Catalog
from catalog.platforms import Capacity, Sharing
from kube.labels import Expression
from policies.lru import LruCache
from policies.objects.wording import describe_field
from policies.offers.machine_fields import in_machine
from policies.offers.table import MOST_MEMO, Axis, Host, Table
from policies.policy import Bounds, InNotIn, LongRuns, MachineFields, NodeTemplate, Policy
from policies.verdict import MODES, Field, Mode

_HostTest = Callable[[Host], bool]
_OVERHEAD = 512
"""bytes of a memo's entry without its rows and names"""
_NAME = 64
"""bytes of a name besides its characters, which are in the text too"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """One field of one policy as sets of rows, with the text that messages use for it."""

    axis: Axis
    by: tuple[str, ...]
    """the policy; for a default that several policies give alike, all of them; for a template, whoever chose
    it"""
    field: str
    """``spec.require.families``"""
    text: str
    """``families in [hopper, ampere]``"""
    rows: int
    """the rows inside, of every platform"""
    sure: int
    """``rows`` without unknown models that may be meant; a default applies only because of these"""
    inexpressible: tuple[str, ...] = ()
    """platforms whose nodes do not have the attribute at all: all their rows are inside"""
    narrows: bool = False
    """True for a list of what is wanted (``in``, capacity): a remark tells when part of it is lost"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compiled:
    """A policy with its constraints as sets. It equals only itself, so that cached decisions can be keyed by
    it."""

    policy: Policy
    id: str = field(init=False)
    """``policy.id``"""
    mode: Mode
    """the policy's mode, already capped by --max-mode"""
    require: tuple[Constraint, ...]
    require_long: Constraint | None
    machine: tuple[Constraint, ...]
    """the machine fields of ``default``; empty if there are none"""
    capacity: Constraint | None
    capacity_long: Constraint | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", self.policy.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledTemplate:
    template: NodeTemplate
    constraints: tuple[Constraint, ...]
    rows: int
    """the rows inside all constraints"""
    labels: tuple[Expression, ...]
    """the template's labels as expressions that select them"""


def who(constraints: Iterable[Constraint]) -> tuple[str, ...]:
    """Return the names behind these constraints, sorted."""
    return tuple(sorted({name for constraint in constraints for name in constraint.by}))


def fields(constraints: Iterable[Constraint]) -> tuple[Field, ...]:
    """Return the policy fields that these constraints come from."""
    return tuple((name, constraint.field) for constraint in constraints for name in constraint.by)


def meet(rows: int, constraints: Iterable[Constraint]) -> int:
    """Return those of ``rows`` that satisfy all constraints."""
    for constraint in constraints:
        rows &= constraint.rows
    return rows


@dataclass(frozen=True, slots=True)
class Compiler:
    """Compiles policies and templates against tables. It lives as long as they do."""

    catalog: Catalog
    tables: Mapping[str, Table]
    memo: LruCache[Constraint] = field(default_factory=lambda: LruCache(MOST_MEMO))
    """(path of a machine field, its value) -> the constraint without the policy"""
    host_rows: dict[str, tuple[tuple[Host, int], ...]] = field(default_factory=dict)
    """platform -> its hosts, each with its rows; filled when they are first read"""

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
            constraints.append(
                self.hosts(
                    name, "spec.gpus.vendors", describe_field("spec.gpus.vendors", template.vendors), lambda h: h.vendor in template.vendors
                )
            )
        if template.capacity:
            constraints.append(self.capacity(name, "spec.capacity", template.capacity))
        if template.sharing:
            constraints.append(self.sharing(name, "spec.gpus.sharing", template.sharing))
        rows = meet(self._union(lambda table: table.all), constraints)
        labels = tuple(Expression(key=key, operator="In", values=(value,)) for key, value in template.labels)
        return CompiledTemplate(template=template, constraints=tuple(constraints), rows=rows, labels=labels)

    def machine(self, policy: str, where: str, machine: MachineFields) -> Iterator[Constraint]:
        """Yield one constraint per machine field that is set."""
        memory = "memory" if where == "spec.gpus" else "gpuMemory"
        names = {"families": "families", "models": "models", "instanceFamilies": "instance_families", memory: "gpu_memory"}
        for name, attribute in names.items():
            wanted = getattr(machine, attribute)
            if wanted is not None:
                yield replace(self._machine(f"{where}.{name}", attribute, wanted), by=(policy,))

    def _machine(self, path: str, attribute: str, wanted: InNotIn | Bounds) -> Constraint:
        """Return the constraint of one machine field without the policy. Equal fields of many policies share it."""
        constraint = self.memo.get((path, wanted))
        if constraint is None:
            constraint = self._compiled(path, attribute, wanted)
            names = (*wanted.in_, *wanted.not_in) if isinstance(wanted, InNotIn) else ()
            size = constraint.rows.bit_length() // 7 + sum(_NAME + 2 * len(name) for name in names) + _OVERHEAD
            self.memo.keep((path, wanted), constraint, size)
        return constraint

    def _compiled(self, path: str, attribute: str, wanted: InNotIn | Bounds) -> Constraint:
        given: dict[str, Any] = {attribute: wanted}
        machine = MachineFields(**given)
        lacking = self._without_families(path, wanted) if isinstance(wanted, InNotIn) and attribute == "instance_families" else ()
        narrows = isinstance(wanted, Bounds) or bool(wanted.in_)
        constraint = self.hosts(
            "", path, describe_field(path, wanted), lambda host: in_machine(host, machine, self.catalog), lacking, narrows=narrows
        )
        if path == "spec.default.families" and isinstance(wanted, InNotIn):
            return self._with_new_models(constraint, wanted)
        return constraint

    def _with_new_models(self, families: Constraint, wanted: InNotIn) -> Constraint:
        """Return the constraint of a default by family with the family's new models too.

        Models that the catalog lacks stay in where the platform has machines of the family and no label that
        tells the family. A requirement excludes them
        (``docs/laws.md``, law 10: "guardrails hold for every author").
        """
        vendors = {gpu.vendor for gpu in self.catalog.gpus if gpu.family in wanted.in_}
        return replace(families, rows=families.rows | self._union(lambda table: self._new_models(table, families.rows, vendors)))

    def _new_models(self, table: Table, known: int, vendors: Iterable[str]) -> int:
        if not known & table.all or any(attribute.rpartition(":")[2] == "gpuFamily" for attribute in table.platform.labels.values()):
            return 0
        return table.unknown & sum(table.by_vendor.get(vendor, 0) for vendor in vendors)

    def _without_families(self, where: str, wanted: InNotIn) -> tuple[str, ...]:
        """Return the platforms whose machines have no instance families, so that all of their rows are
        inside.

        For a required ``in`` there are none as long as some platform has instance families: else the pod
        would go where nothing is checked.
        """
        clouds = any(table.platform.cloud is not None for table in self.tables.values())
        if clouds and wanted.in_ and where.startswith("spec.require"):
            return ()
        return tuple(name for name, table in self.tables.items() if table.platform.cloud is None)

    def hosts(
        self, policy: str, where: str, text: str, inside: _HostTest, lacking: tuple[str, ...] = (), *, narrows: bool = True
    ) -> Constraint:
        rows = self._union(lambda table: table.all if table.platform.name in lacking else self._rows_of(table, inside))
        return Constraint(
            axis="machine", by=(policy,), field=where, text=text, rows=rows, sure=rows, inexpressible=lacking, narrows=narrows
        )

    def capacity(self, policy: str, where: str, wanted: Sequence[Capacity]) -> Constraint:
        """Return a constraint on capacity types. ``on-demand`` includes reserved, which Karpenter uses for
        paid reservations."""
        names = {*wanted, *(("reserved",) if "on-demand" in wanted else ())}
        rows = self._union(lambda table: sum(table.by_capacity.get(c, 0) for c in names))
        return Constraint(
            axis="capacity", by=(policy,), field=where, text=describe_field(where, wanted), rows=rows, sure=rows, narrows=True
        )

    def long(self, policy: str, where: str, long_runs: LongRuns | None) -> Constraint | None:
        return None if long_runs is None else self.capacity(policy, f"{where}.capacity", long_runs.capacity)

    def sharing(self, policy: str, where: str, wanted: Sequence[Sharing]) -> Constraint:
        rows = self._union(lambda table: sum(table.by_sharing.get(s, 0) for s in set(wanted)))
        return Constraint(axis="sharing", by=(policy,), field=where, text=describe_field(where, wanted), rows=rows, sure=rows, narrows=True)

    def _rows_of(self, table: Table, inside: _HostTest) -> int:
        hosts = self.host_rows.get(table.platform.name)
        if hosts is None:
            hosts = self.host_rows[table.platform.name] = tuple(_rows_by_host(table))
        return sum(rows for host, rows in hosts if inside(host))

    def _union(self, of_table: Callable[[Table], int]) -> int:
        """Return a set of rows over all platforms, composed of its part on each."""
        return sum(of_table(table) for table in self.tables.values())


def _rows_by_host(table: Table) -> Iterable[tuple[Host, int]]:
    """Return each host of the table's offers with its rows."""
    by_host: dict[int, tuple[Host, int]] = {}
    for number, offer in enumerate(table.offers, table.first):
        host, rows = by_host.get(id(offer.host), (offer.host, 0))
        by_host[id(offer.host)] = host, rows | 1 << number
    return by_host.values()
