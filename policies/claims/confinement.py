"""What policies require of a device, as demands on what its driver publishes: one for each attribute, of all policies together, so
that their order never matters.

A family is said by the architecture where the driver publishes it, else by the names of the family's models; memory, which is nominal,
by the names of the models that have it. A model unknown to the catalog is outside of a list of what is wanted, and inside of one of
what is not, as it is among offers. What a driver does not publish can't be said, and what can't be said is returned too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from catalog import Catalog, Gpu
from catalog.published_devices import PublishedDevices
from policies.claims.cel import LONGEST, Demand, OneOf
from policies.claims.claim_request import part_of
from policies.facts.device_requests import RequestChoice
from policies.offers.constraints import Compiled, Constraint
from policies.offers.machine_fields import in_machine
from policies.offers.table import Host
from policies.policy import MachineFields, Policy
from policies.state.snapshot import Snapshot
from policies.verdict import Remark

FIELDS = ("families", "models", "gpuMemory")
"""The machine fields that a claim can be held to: it says nothing of instances."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One demand, and whose it is."""

    demand: Demand
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class Lacking:
    """Constraints that the driver's attributes can't say."""

    constraints: tuple[Constraint, ...]
    models: tuple[str, ...] = ()
    """The models whose published names are not known, if only these can't be told."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What is wanted of one part of a claim."""

    wanted: tuple[Wanted, ...] = ()
    lacking: tuple[Lacking, ...] = ()
    remarks: tuple[Remark, ...] = ()


def device_fields(machine: MachineFields) -> MachineFields:
    """Return the device fields of a machine. A claim specifies nothing of instance families."""
    return replace(machine, instance_families=None)


def hosts(vendor: str, catalog: Catalog) -> tuple[Host, ...]:
    """Return a host for each model of the vendor, and one for a model that the catalog lacks."""
    models = [*(gpu for gpu in catalog.gpus if gpu.vendor == vendor), None]
    return tuple(_host(vendor, gpu) for gpu in models)


def _host(vendor: str, gpu: Gpu | None) -> Host:
    return Host(vendor=vendor, gpu=gpu, family=None, count=None, resource="", attributes={}, name="")


def has_such(vendor: str, machines: Sequence[MachineFields], catalog: Catalog) -> bool:
    """Return whether a model of the vendor, known or not, is inside all of these machine fields."""
    return any(all(in_machine(host, machine, catalog) for machine in machines) for host in hosts(vendor, catalog))


def required(devices: PublishedDevices, catalog: Catalog, policies: Sequence[Compiled]) -> Confinement:
    """Return what these policies together require of the driver's devices."""
    machines = [device_fields(c.policy.require.machine) for c in policies]
    said = of_machines(devices, catalog, machines, [c for compiled in policies for c in compiled.require])
    sharing = _sharing(devices, policies)
    return Confinement((*said.wanted, *sharing.wanted), (*said.lacking, *sharing.lacking))


def of_machines(
    devices: PublishedDevices, catalog: Catalog, machines: Iterable[MachineFields], constraints: Sequence[Constraint]
) -> Confinement:
    """Return what these machine fields together demand; ``constraints`` are theirs, among others."""
    given, own = [m for m in machines if m != MachineFields()], _of(constraints, *FIELDS)
    wanted: list[Wanted] = []
    gpus = [gpu for gpu in catalog.gpus if gpu.vendor == devices.vendor]
    left = given
    if (families := _families(devices, gpus, given)) is not None:
        left = [replace(m, families=None) for m in given]
        wanted += [Wanted(one, tuple(_of(own, "families"))) for one in families]
        own = _of(own, "models", "gpuMemory")
    lacking: list[Lacking] = []
    if any(m != MachineFields() for m in left) and own:
        demand, unnamed = _models(devices, gpus, left, catalog)
        if demand is not None:
            wanted.append(Wanted(demand, tuple(own)))
        if unnamed or (demand is None and _limits(gpus, left, catalog)):
            lacking.append(Lacking(tuple(own), unnamed if demand is not None else ()))
    return _short(Confinement(tuple(wanted), tuple(lacking)))


def can_be_told(devices: PublishedDevices, machines: Iterable[MachineFields], catalog: Catalog) -> bool:
    """Return whether the driver's names tell any model that is inside of these machine fields, where they list what is wanted: a device
    that can't be told from others is inside of no list."""
    given = [m for m in machines if m != MachineFields()]
    gpus = [gpu for gpu in catalog.gpus if gpu.vendor == devices.vendor]
    left = given if _families(devices, gpus, given) is None else [replace(m, families=None) for m in given]
    return devices.model is None or not any(_narrows(m) for m in left) or _models(devices, gpus, left, catalog)[0] is not None


def _of(constraints: Iterable[Constraint], *names: str) -> list[Constraint]:
    return [c for c in constraints if c.axis == "machine" and c.field.rpartition(".")[2] in names]


def _families(devices: PublishedDevices, gpus: Sequence[Gpu], machines: Sequence[MachineFields]) -> list[Demand] | None:
    """Return the demand on the architecture, if there is one; None if models must say it."""
    lists = [m.families for m in machines if m.families is not None]
    mentioned = {family for one in lists for family in (*one.in_, *one.not_in)}
    own = mentioned.intersection(gpu.family for gpu in gpus)
    if devices.family is None or not own.issubset(devices.families):
        return None
    outside = {family for one in lists for family in one.not_in}
    inside = [set(one.in_) for one in lists if one.in_]
    meant = set.intersection(*inside) - outside if inside else outside
    values = {value for family in meant & own for value in devices.families[family]}
    if not inside and not values:
        return []
    return [_one_of(devices, devices.family, values, outside=not inside)]


def _models(
    devices: PublishedDevices, gpus: Sequence[Gpu], machines: Sequence[MachineFields], catalog: Catalog
) -> tuple[Demand | None, tuple[str, ...]]:
    """Return the demand on the product's name (None: none can be said), and the models that it should
    exclude but whose names are not known."""
    if devices.model is None:
        return None, ()
    inside, outside = _divided(gpus, machines, catalog)
    wrong = {name for gpu in outside for name in devices.names(gpu)}
    if any(_narrows(m) for m in machines):
        right = {name for gpu in inside for name in devices.names(gpu)} - wrong
        return (_one_of(devices, devices.model, right, spaces=devices.spaces) if right else None), ()
    unnamed = tuple(sorted(gpu.model for gpu in outside if not devices.names(gpu)))
    return (_one_of(devices, devices.model, wrong, outside=True, spaces=devices.spaces) if wrong else None), unnamed


def _divided(gpus: Sequence[Gpu], machines: Sequence[MachineFields], catalog: Catalog) -> tuple[list[Gpu], list[Gpu]]:
    inside: list[Gpu] = []
    outside: list[Gpu] = []
    for gpu in gpus:
        host = _host(gpu.vendor, gpu)
        (inside if all(in_machine(host, m, catalog) for m in machines) else outside).append(gpu)
    return inside, outside


def _limits(gpus: Sequence[Gpu], machines: Sequence[MachineFields], catalog: Catalog) -> bool:
    """Return whether the fields exclude anything of the vendor, be it a model that the catalog lacks."""
    return any(_narrows(m) for m in machines) or bool(_divided(gpus, machines, catalog)[1])


def _narrows(machine: MachineFields) -> bool:
    """Return whether a model that the catalog lacks is outside."""
    lists = (machine.families, machine.models)
    return machine.gpu_memory is not None or any(one is not None and bool(one.in_) for one in lists)


def _sharing(devices: PublishedDevices, policies: Sequence[Compiled]) -> Confinement:
    given = [c.policy.require.sharing for c in policies if c.policy.require.sharing]
    constraints = tuple(c for compiled in policies for c in compiled.require if c.axis == "sharing")
    if not given:
        return Confinement()
    if devices.type is None:
        return Confinement(lacking=(Lacking(constraints),))
    types = types_of(devices, set(given[0]).intersection(*given[1:]))
    return Confinement((Wanted(_one_of(devices, devices.type, types), constraints),) if types else ())


def types_of(devices: PublishedDevices, sharing: Iterable[str]) -> set[str]:
    """Return the types of devices that are shared in one of these ways."""
    return {value for way in sharing for value in devices.sharing.get(way, ())}


def _one_of(devices: PublishedDevices, attribute: str, values: Iterable[str], *, outside: bool = False, spaces: bool = False) -> OneOf:
    domain, name = devices.qualified(attribute)
    return OneOf(driver=devices.driver, domain=domain, attribute=name, values=tuple(sorted(set(values))), outside=outside, spaces=spaces)


def _short(found: Confinement) -> Confinement:
    """Return the same, with what is too long for a selector among what can't be said: a list of what is not wanted in several parts."""
    wanted = [part for one in found.wanted for part in _parts(one)]
    long = [one for one in wanted if len(one.demand.text.encode()) > LONGEST]
    return Confinement(tuple(one for one in wanted if one not in long), (*found.lacking, *(Lacking(one.constraints) for one in long)))


def _parts(one: Wanted) -> Iterator[Wanted]:
    demand = one.demand
    if not isinstance(demand, OneOf) or not demand.outside or len(demand.text.encode()) <= LONGEST or len(demand.values) < 2:
        yield one
        return
    half = len(demand.values) // 2
    for values in (demand.values[:half], demand.values[half:]):
        yield from _parts(replace(one, demand=replace(demand, values=values)))


def settles(choice: RequestChoice, policy: Policy, snapshot: Snapshot) -> bool:
    """Return whether such a way to satisfy a claim is inside of what the policy requires of claims, whatever selectors the claim has: the
    policy is about none, or about what is read of claims, or of how the devices of a class are shared."""
    require, machine = policy.require, policy.require.machine
    if policy.match.pod_selector is not None or policy.match.workloads or not snapshot.counts(choice.device_class):
        return True
    if machine.families or machine.models or machine.gpu_memory or (require.forbid_tolerations and choice.tolerations):
        return False
    if choice.admin and (require.sharing or require.gpus_per_pod):
        return False
    part = part_of((), choice, (), snapshot)
    return not require.sharing or (part.devices is not None and part.type in types_of(part.devices, require.sharing))
