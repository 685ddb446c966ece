"""The MIG slice of a pod: the profile that replaces its whole GPU, by resource name or by label.

``slice: 10gb`` is a profile of exactly that nominal size, without attribute, of the fewest compute slices. A
slice is chosen only if nodes with it are inside R, and only for containers that ask for one whole GPU. A default
chooses only a slice that is known to exist (``policies.offers.known_slices``).
"""

from __future__ import annotations

from collections.abc import Iterator

from catalog import MigProfile
from kube.pod import Container
from kube.quantity import whole as whole_number
from kube.tree import Path
from policies.fixes import leave_out
from policies.messages import At, Phrase, phrase
from policies.offers.constraints import fields
from policies.offers.selectors import slice_by_label
from policies.offers.table import Table
from policies.planning import feasibility
from policies.planning.devices import RequestedDevice
from policies.planning.feasibility import Space
from policies.planning.plan import ChosenSlice, Plan, neither_acts, speaks_of_sharing, spoken
from policies.planning.prepared_places import known_rows
from policies.pods.annotations import SLICE
from policies.policy import MigDefault
from policies.verdict import Violation

ANNOTATION: Path = ("metadata", "annotations", SLICE)
"""The annotation by which an author asks for what a default may ask for too: remarks about a slice are
about this annotation."""


def choose_slice(plan: Plan) -> Plan:
    """Return the plan with the requested slice, if one is requested."""
    wanted = _wanted_slice(plan)
    if wanted is None:
        return plan
    (mig, names), whole = wanted
    if mig is None:
        return neither_acts(plan, "mig", names)
    size = phrase("of size", gigabytes=mig.slice_gb) if mig.slice_gb is not None else phrase("of usable size", mebibytes=mig.usable_mib)
    several, name = _several(plan, whole), whole.resource.name
    if plan.actor.resources != "yes":
        return plan.saying("BERTH-210", phrase("actor", size=size, actor=plan.actor.names), "mig_resources", names, path=ANNOTATION)
    if several is not None and whole_number(several.amount(name)) == 1:
        return plan  # BERTH-101 denies the pod: its limit is not its request
    if several is not None:
        return plan.saying("BERTH-210", phrase("several", size=size, container=several.name), "mig_resources", names, path=ANNOTATION)
    return _with_slice(plan, mig, size, name, names)


def _wanted_slice(plan: Plan) -> tuple[tuple[MigDefault | None, tuple[str, ...]], RequestedDevice] | None:
    """Return the requested slice (None: policies differ) with the policies that request it, and the whole
    GPU that it would replace. None: no slice is requested, or the pod itself specifies its sharing."""
    whole = [a for a in plan.asked if a.resource.kind == "gpu" and a.resource.vendor == "nvidia"]
    if len(whole) != 1 or not plan.placeable or any(a.resource.kind in ("mig", "shared") for a in plan.asked):
        return None
    if plan.author.slice_gb is not None:
        mig, by = MigDefault(slice_gb=plan.author.slice_gb), tuple(c.id for c in plan.policies)
        return None if speaks_of_sharing(plan) else ((mig, by), whole[0])
    if plan.unread is not None or plan.author.no_slice:
        return None
    default = spoken(plan, "mig", lambda c: c.policy.default.mig)
    return None if default is None or speaks_of_sharing(plan) else ((default.value, default.policies), whole[0])


def _several(plan: Plan, whole: RequestedDevice) -> Container | None:
    """Return a container that asks for more, or other, than one whole GPU."""
    name = whole.resource.name
    return next((c for c in whole.containers if whole_number(c.amount(name)) != 1 or not (plan.settings.repair or _alike(c, name))), None)


def _alike(container: Container, name: str) -> bool:
    """Return whether the container's limit equals its request, or has no request beside it: a rename is no
    repair."""
    return name in container.limits and whole_number(container.requests.get(name, container.limits[name])) == 1


def slice_is_left(plan: Plan) -> bool:
    """Return whether the requested slice is left where no whole GPU is: the nodes of a template may have
    slices only."""
    wanted = _wanted_slice(plan)
    if wanted is None or wanted[0][0] is None or plan.actor.resources != "yes" or _several(plan, wanted[1]) is not None:
        return False
    return any(True for _ in _options(plan, wanted[0][0], wanted[1].resource.name, plan.inside & _known_to_exist(plan)))


def with_conflict(plan: Plan) -> Plan:
    """Return the plan with the remark that policies differ on the slice, if they do: it explains why nodes
    that have slices only are not taken."""
    wanted = _wanted_slice(plan)
    return neither_acts(plan, "mig", wanted[0][1]) if wanted is not None and wanted[0][0] is None else plan


def _with_slice(plan: Plan, mig: MigDefault, size: Phrase, old: str, names: tuple[str, ...]) -> Plan:
    options = sorted(
        _options(plan, mig, old, plan.inside & _known_to_exist(plan)),
        key=lambda o: (o[0].usable_mib or 0 if mig.usable_mib else 0, o[0].compute, not _on_offer(plan, old, o[1]), o[0].name, o[1]),
    )
    if options:
        profile, resource = options[0]
        tables = plan.snapshot.tables.values()
        return plan._replace(
            slice=ChosenSlice(profile=profile.name, old=old, resource=resource, policies=names),
            inside=plan.inside & sum(_sayable(plan, table, profile.name, old, resource) for table in tables),
            space=_asking(plan, old, resource),
        )
    if plan.author.slice_gb is not None and any(True for _ in _options(plan, mig, old, feasibility.everything(plan.snapshot))):
        found = phrase("fact", path=At(ANNOTATION), size=size)
        return plan.denying(
            Violation(
                code="BERTH-153",
                found=found,
                advice=phrase("fix"),
                rule="mig_resources",
                path=ANNOTATION,
                fields=fields(plan.constraints),
                fixes=leave_out(ANNOTATION),
            )
        )
    may_exist = any(True for _ in _options(plan, mig, old, plan.inside))
    where = phrase("not known", size=size) if may_exist else _where_it_is_not(plan, size)
    return plan.saying("BERTH-210", where, "mig_resources", names, path=ANNOTATION)


def _known_to_exist(plan: Plan) -> int:
    """Return the rows among which a slice is chosen: those that are known to exist, unless the author asks for the slice."""
    return plan.snapshot.known_slices if plan.author.slice_gb is None else feasibility.everything(plan.snapshot)


def _where_it_is_not(plan: Plan, size: Phrase) -> Phrase:
    if not plan.snapshot.placed:
        return phrase("any platform", size=size)
    if plan.snapshot.known_places is not None and plan.space.left(plan.inside & known_rows(plan.snapshot)):
        return phrase("not offered", size=size)
    return phrase("nowhere", size=size, platforms=tuple(plan.snapshot.tables))


def _on_offer(plan: Plan, old: str, resource: str) -> bool:
    """Return whether a known node has this slice under a name of its own."""
    places = plan.snapshot.known_places
    return places is not None and resource != old and resource in places.resources


def _asking(plan: Plan, old: str, resource: str) -> Space:
    """Return the space of the pod once it asks for a slice in place of a whole GPU."""
    return plan.space if resource == old else plan.space.asking({(resource if n == old else n): c for n, c in plan.space.wanted.items()})


def _sayable(plan: Plan, table: Table, profile: str, old: str, resource: str) -> int:
    """Return the slice's rows; none if it would be chosen by a label that the platform does not have."""
    rows = table.slices[profile, resource][1] if (profile, resource) in table.slices else 0
    return 0 if resource == old and slice_by_label(plan.snapshot.catalog, table, profile, rows) is None else rows


def _options(plan: Plan, mig: MigDefault, old: str, inside: int) -> Iterator[tuple[MigProfile, str]]:
    """Yield (profile, resource name) of every slice that fits the request and leaves something. A slice
    chosen by label keeps the resource name."""
    for table in plan.snapshot.tables.values():
        for (name, resource), (profile, rows) in table.slices.items():
            if fits(profile, mig) and _is_left(plan, table, name, old, resource, rows & inside):
                yield profile, resource


def fits(profile: MigProfile, mig: MigDefault) -> bool:
    """Return whether a profile has the requested size. Profiles with an attribute (+me) are chosen by name
    only."""
    if profile.attribute is not None:
        return False
    if mig.usable_mib is not None:
        return profile.usable_mib is not None and profile.usable_mib >= mig.usable_mib
    return profile.memory_gb == mig.slice_gb


def _is_left(plan: Plan, table: Table, profile: str, old: str, resource: str, rows: int) -> bool:
    if resource == old and slice_by_label(plan.snapshot.catalog, table, profile, rows) is None:
        return False
    return _asking(plan, old, resource).left(rows & known_rows(plan.snapshot))
