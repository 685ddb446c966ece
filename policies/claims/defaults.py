"""What policies' defaults demand of a device where the claim says nothing of it.

The first scope that has a default decides, the namespace's own policies before the cluster's; those of one scope must agree. A claim
speaks as soon as it has a selector that Berth can't read, or a class that selects more than a driver and a type; a class that is not
known is not known to be silent. So only what is certain gets a default, and only one that leaves something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from catalog import Catalog, Gpu, MigProfile
from catalog.published_devices import PublishedDevices
from policies.claims import cel
from policies.claims.cel import AtLeast, Demand, OneOf
from policies.claims.claim_request import ClaimPart
from policies.claims.confinement import Confinement, Lacking, Wanted, device_fields, hosts, of_machines, types_of
from policies.messages import Phrase, phrase
from policies.objects.wording import describe_field
from policies.offers.constraints import Compiled, Constraint, fields, who
from policies.offers.machine_fields import in_machine
from policies.offers.merging import NamedValue, by_scope, first_given
from policies.policy import MachineFields, Policy
from policies.verdict import Remark

RULE = "device_selectors"


def is_certain(policy: Policy, least: int) -> bool:
    """Return whether every pod with a claim for so many devices matches the policy, whatever else it asks for."""
    match = policy.match
    if match.pod_selector is not None or match.workloads:
        return False
    return match.gpus is None or (match.gpus.max is None and (match.gpus.min or 0) <= least)


def silent(part: ClaimPart) -> bool:
    """Return whether the part has no word of its author's about devices that can't be read."""
    return part.plain and all(cel.parse_demand(text) is not None for text in part.texts)


def choose_defaults(
    devices: PublishedDevices, type_: str, catalog: Catalog, policies: Sequence[Compiled], defaulting: Sequence[Compiled]
) -> tuple[Confinement, ...]:
    """Return the defaults of the policies ``defaulting`` for devices of this type, one for each axis, inside of what ``policies``
    require."""
    return (_machine(devices, catalog, policies, defaulting), _mig(devices, type_, catalog, policies, defaulting))


def chosen(part: ClaimPart, offers: Sequence[Confinement], required: Confinement) -> Confinement:
    """Return those of the defaults of which a part says nothing."""
    ours = [one.demand for one in (*required.wanted, *(wanted for offer in offers for wanted in offer.wanted))]
    found = [_told(part, one) for one in offers if not _speaks(part, one.wanted, ours)]
    return Confinement(
        tuple(wanted for one in found for wanted in one.wanted),
        tuple(lacking for one in found for lacking in one.lacking),
        tuple(remark for one in found for remark in one.remarks),
    )


def _speaks(part: ClaimPart, wanted: Iterable[Wanted], ours: Sequence[Demand]) -> bool:
    """Return whether a selector is about the same as the default, or about the model where the default is, and not one that
    policies write."""
    subjects = {one.demand.subject[0:3] for one in wanted}
    given = [demand for text in part.texts if (demand := cel.parse_demand(text)) is not None and demand not in ours]
    return any(demand.subject[0:3] in subjects and not _of_type(demand, part) for demand in given)


def _of_type(demand: Demand, part: ClaimPart) -> bool:
    devices = part.devices
    return devices is not None and devices.type is not None and isinstance(demand, OneOf) and demand.attribute == devices.type


# --- machine -----------------------------------------------------------------------------------------------------------


def _machine(devices: PublishedDevices, catalog: Catalog, policies: Sequence[Compiled], defaulting: Sequence[Compiled]) -> Confinement:
    given = first_given(by_scope(defaulting), lambda default: _alike(default.machine))
    if not given:
        return Confinement()
    if len({value for _, value in given}) > 1:
        return Confinement(remarks=(_differ(given, "machine"),))
    machines = [device_fields(given[0][0].policy.default.machine)]
    constraints = [c for compiled, _ in given for c in compiled.machine]
    asked = [*machines, *(device_fields(c.policy.require.machine) for c in policies)]
    if not any(all(in_machine(host, m, catalog) for m in asked) for host in hosts(devices.vendor, catalog) if host.gpu is not None):
        text = phrase("nothing left", constraints=tuple(dict.fromkeys(c.text for c in constraints)))
        return Confinement(remarks=(_remark("BERTH-204", text, constraints),))
    return of_machines(devices, catalog, machines, constraints)


def _alike(machine: MachineFields) -> object | None:
    own = device_fields(machine)
    if own == MachineFields():
        return None
    lists = [(frozenset(one.in_), frozenset(one.not_in)) if one else None for one in (own.families, own.models)]
    return (*lists, own.gpu_memory)


# --- a MIG slice -------------------------------------------------------------------------------------------------------


def _mig(
    devices: PublishedDevices, type_: str, catalog: Catalog, policies: Sequence[Compiled], defaulting: Sequence[Compiled]
) -> Confinement:
    """Return the size of a slice, for a class of slices: a claim for whole GPUs is never made one for slices."""
    given = first_given(by_scope(defaulting), lambda default: default.mig)
    if not given or type_ not in types_of(devices, ("MIG",)):
        return Confinement()
    if len({value for _, value in given}) > 1:
        return Confinement(remarks=(_differ(given, "mig"),))
    mig, names = given[0][1], tuple(compiled.id for compiled, _ in given)
    text = describe_field("spec.default.mig", mig)
    own = tuple(_of_mig(name, text) for name in names)
    if mig.slice_gb is None:
        if devices.memory is None:
            return Confinement(lacking=(Lacking(own),))
        domain, capacity = devices.qualified(devices.memory)
        least = AtLeast(driver=devices.driver, domain=domain, capacity=capacity, mebibytes=mig.usable_mib or 0)
        return Confinement((Wanted(least, own),))
    machines = [device_fields(c.policy.require.machine) for c in policies]
    inside = [host.gpu for host in hosts(devices.vendor, catalog) if host.gpu and all(in_machine(host, m, catalog) for m in machines)]
    profiles = {profile.name for gpu in inside for profile in _slices(gpu, mig.slice_gb)}
    if devices.profile is None or not profiles:
        return Confinement(remarks=(_remark("BERTH-204", phrase("nothing left", constraints=(text,)), own),))
    domain, attribute = devices.qualified(devices.profile)
    demand = OneOf(driver=devices.driver, domain=domain, attribute=attribute, values=tuple(sorted(profiles)))
    return Confinement((Wanted(demand, own),))


def _slices(gpu: Gpu, gigabytes: int) -> Iterator[MigProfile]:
    """Yield the slices of this nominal size without attribute that take the fewest compute slices of the GPU."""
    found = [p for p in gpu.mig if p.memory_gb == gigabytes and p.attribute is None]
    fewest = min((p.compute for p in found), default=0)
    return (p for p in found if p.compute == fewest)


def _of_mig(policy: str, text: str) -> Constraint:
    return Constraint(axis="sharing", by=(policy,), field="spec.default.mig", text=text, rows=0, sure=0)


# --- together ----------------------------------------------------------------------------------------------------------


def _told(part: ClaimPart, found: Confinement) -> Confinement:
    """Return a default with a remark for the author, whose claim gets a narrower device by it."""
    given = [cel.parse_demand(text) for text in part.texts]
    new = [one for one in found.wanted if not cel.implied(one.demand, [demand for demand in given if demand is not None])]
    constraints = list(dict.fromkeys(c for one in new for c in one.constraints))
    texts = tuple(dict.fromkeys(c.text for c in constraints))
    told = phrase("chosen", request=part.where, constraints=texts, policies=who(constraints))
    remarks = (_remark("BERTH-241", told, constraints),) if new else ()
    return Confinement(found.wanted, found.lacking, (*found.remarks, *remarks))


def _differ(given: Sequence[tuple[Compiled, object]], axis: str) -> Remark:
    differing: NamedValue[object] = NamedValue(None, tuple(compiled.id for compiled, _ in given))
    return differing.differs(axis, RULE)


def _remark(code: str, found: Phrase, constraints: Sequence[Constraint]) -> Remark:
    return Remark(code=code, found=found, rule=RULE, fields=fields(constraints))
