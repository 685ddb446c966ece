"""Policies and templates as sets of offers: each field of ``require`` and ``default`` is one constraint on one axis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from policies.catalog import Catalog
from policies.machine_fields import in_machine
from policies.offers import Axis, Host, Table
from policies.policy import Bounds, Capacity, InNotIn, LongRuns, Machine, NodeTemplate, Policy, Sharing
from policies.verdict import MODES, Mode

_HostTest = Callable[[Host], bool]


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
    sure: Mapping[str, int] | None = None
    """where ``rows`` holds models too that may be meant and nobody knows: those without them. A default acts for these alone"""
    narrows: bool = False
    """True for a list of what is wanted (``in``, capacity): losing part of it is said"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compiled:
    """A policy with its constraints as sets. Equal to itself alone: what was decided under it is found by it."""

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


def who(constraints: Iterable[Constraint]) -> tuple[str, ...]:
    """Everyone who asks for one of these, sorted."""
    return tuple(sorted({name for constraint in constraints for name in constraint.by}))


@dataclass(frozen=True, slots=True)
class Compiler:
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
            constraints.append(
                self.hosts(name, "spec.gpus.vendors", f"vendors {_list(template.vendors)}", lambda h: h.vendor in template.vendors)
            )
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
                found = self._machine(policy, f"{where}.{name}", f"{name} {_in_not_in(wanted)}", alone, bool(wanted.in_))
                yield self._with_new_models(found, wanted) if name == "families" and where == "spec.default" else found
        if machine.gpu_memory is not None:
            field_name = "memory" if where == "spec.gpus" else "gpuMemory"
            one = Machine(gpu_memory=machine.gpu_memory)
            yield self._machine(policy, f"{where}.{field_name}", f"{field_name} {_bounds(machine.gpu_memory)}", one, True)

    def _machine(self, policy: str, where: str, text: str, machine: Machine, narrows: bool) -> Constraint:
        lacking = () if machine.instance_families is None else self._without_families(where, machine.instance_families)
        return self.hosts(policy, where, text, lambda host: in_machine(host, machine, self.catalog), lacking, narrows)

    def _with_new_models(self, families: Constraint, wanted: InNotIn) -> Constraint:
        """A default by family is for its new models too: those that the catalog lacks stay in where the platform has machines of the family
        and no label that tells it. What is required drops them (design law 10)."""
        vendors = {gpu.vendor for gpu in self.catalog.gpus if gpu.family in wanted.in_}
        rows = {platform: mask | self._new_models(self.tables[platform], mask, vendors) for platform, mask in families.rows.items()}
        return replace(families, rows=rows, sure=families.rows) if rows != families.rows else families

    def _new_models(self, table: Table, known: int, vendors: Iterable[str]) -> int:
        if not known or any(attribute.rpartition(":")[2] == "gpuFamily" for attribute in table.platform.labels.values()):
            return 0
        return table.unknown & sum(table.by_vendor.get(vendor, 0) for vendor in vendors)

    def _without_families(self, where: str, wanted: InNotIn) -> tuple[str, ...]:
        """Platforms whose machines have no families, so that all of them are inside. What is required to be one of a list is none of it
        there, as long as there are machines that may be: else the pod would go where nothing is judged."""
        clouds = any(table.platform.cloud is not None for table in self.tables.values())
        if clouds and wanted.in_ and where.startswith("spec.require"):
            return ()
        return tuple(name for name, table in self.tables.items() if table.platform.cloud is None)

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
