"""The MIG slice of a pod: which profile stands for its whole GPU, by resource name or by label.

``slice: 10gb`` is a profile of exactly that nominal size, without attribute, of the fewest compute slices; a slice is
taken only where nodes with it are inside R, and only for containers that ask for one whole GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from policies import placement
from policies.author import SLICE
from policies.catalog import MigProfile
from policies.compiled import who
from policies.devices import Asked
from policies.placement import meet
from policies.plan import Plan, Slice
from policies.pod import Container
from policies.policy import MigDefault
from policies.quantity import whole as whole_number
from policies.render import slice_by_label
from policies.silence import speaks_of_sharing, spoken
from policies.verdict import Violation


def choose_slice(plan: Plan) -> None:
    wished = _slice_wish(plan)
    if wished is None:
        return
    wish, names, whole = wished
    size = f"{wish.slice_gb}gb" if wish.slice_gb is not None else f"of at least {wish.usable_mib} MiB usable"
    several = _several(plan, whole)
    if plan.actor.resources != "yes":
        text = f"MIG slice {size} skipped: it is {' and '.join(plan.actor.names)}, whose resources are not renamed"
        plan.remark("BERTH-210", text, "mig_resources", names)
    elif several is not None:
        text = f'MIG slice {size} skipped: container "{several.name}" asks for more than one whole GPU'
        plan.remark("BERTH-210", text, "mig_resources", names)
    else:
        _find_slice(plan, wish, size, whole.resource.name, names, plan.author.slice_gb is not None)


def _slice_wish(plan: Plan) -> tuple[MigDefault, tuple[str, ...], Asked] | None:
    """The slice wished for, by whom, and the whole GPU that it would stand for. None: no wish, or the pod speaks."""
    whole = [a for a in plan.asked if a.resource.kind == "gpu" and a.resource.vendor == "nvidia"]
    if len(whole) != 1 or not plan.placeable or speaks_of_sharing(plan) or any(a.resource.kind in ("mig", "shared") for a in plan.asked):
        return None
    if plan.author.slice_gb is not None:
        return MigDefault(slice_gb=plan.author.slice_gb), tuple(c.policy.id for c in plan.policies), whole[0]
    if plan.unread is not None or plan.author.no_slice:
        return None
    said = spoken(plan, "mig", lambda c: c.policy.default.mig, lambda c: c.policy.default.mig)
    return None if said is None else (*said, whole[0])


def _several(plan: Plan, whole: Asked) -> Container | None:
    """A container that asks for more, or other, than one."""
    name = whole.resource.name
    return next((c for c in whole.containers if whole_number(c.amount(name)) != 1 or not (plan.wishes.repair or _alike(c, name))), None)


def _alike(container: Container, name: str) -> bool:
    """Whether its limit is its request, or stands alone: a rename is no repair."""
    return name in container.limits and whole_number(container.requests.get(name, container.limits[name])) == 1


def slice_is_left(plan: Plan) -> bool:
    """Whether the slice that is wished for is there, where no whole GPU is: the nodes of a template may carry slices only."""
    wished = _slice_wish(plan)
    if wished is None or plan.actor.resources != "yes" or _several(plan, wished[2]) is not None:
        return False
    return any(True for _ in _options(plan, wished[0], wished[2].resource.name, plan.inside))


def _find_slice(plan: Plan, wish: MigDefault, size: str, old: str, names: tuple[str, ...], by_author: bool) -> None:
    options = sorted(
        _options(plan, wish, old, plan.inside),
        key=lambda o: (o[0].usable_mib or 0 if wish.usable_mib else 0, o[0].compute, o[0].name, o[1]),
    )
    if options:
        profile, resource = options[0]
        plan.slice = Slice(profile=profile.name, old=old, resource=resource, policies=names)
        rows = {name: _sayable(plan, name, profile.name, old, resource) for name in plan.inside}
        plan.inside = meet(plan.inside, rows)
        plan.space = replace(plan.space, wanted={(resource if n == old else n): c for n, c in plan.space.wanted.items()})
    elif by_author and list(_options(plan, wish, old, placement.everything(plan.snapshot))):
        fact = f'metadata.annotations["{SLICE}"] asks for a slice of {size}, which the policies here do not admit'
        fix = "remove the annotation, or ask for another size"
        plan.violations.append(Violation(code="BERTH-153", fact=fact, fix=fix, rule="mig_resources", policies=who(plan.constraints)))
    else:
        where = ", ".join(plan.snapshot.tables) if plan.snapshot.placed else "any platform"
        says = "a GPUNodeTemplate (gpus.migProfiles) or --catalog says where such nodes exist"
        plan.remark(
            "BERTH-210", f"MIG slice {size} skipped: no node on {where} inside what is required has one; {says}", "mig_resources", names
        )


def _slice_rows(plan: Plan, platform: str, profile: str, resource: str) -> int:
    table = plan.snapshot.tables[platform]
    return table.where(o.profile == profile and o.resource == resource and o.sharing == "MIG" for o in table.offers)


def _sayable(plan: Plan, platform: str, profile: str, old: str, resource: str) -> int:
    """The slice's rows; none where it would be chosen by a label that the platform does not have."""
    rows = _slice_rows(plan, platform, profile, resource)
    table = plan.snapshot.tables[platform]
    return 0 if resource == old and slice_by_label(plan.snapshot.catalog, table, profile, rows) is None else rows


def _options(plan: Plan, wish: MigDefault, old: str, inside: Mapping[str, int]) -> Iterator[tuple[MigProfile, str]]:
    """(profile, resource name) of every slice that fits the wish and leaves something. By label the name stays."""
    for platform, table in plan.snapshot.tables.items():
        seen: set[tuple[str, str]] = set()
        for offer in table.offers:
            gpu = offer.host.gpu
            if gpu is None or offer.sharing != "MIG" or offer.profile is None or (offer.profile, offer.resource) in seen:
                continue
            seen.add((offer.profile, offer.resource))
            profile = next(p for p in gpu.mig if p.name == offer.profile)
            if fits(profile, wish) and _is_left(plan, platform, profile.name, old, offer.resource, inside):
                yield profile, offer.resource


def fits(profile: MigProfile, wish: MigDefault) -> bool:
    """Whether a profile is of the size that is wished for; those with an attribute (+me) are chosen by name only."""
    if profile.attribute is not None:
        return False
    if wish.usable_mib is not None:
        return profile.usable_mib is not None and profile.usable_mib >= wish.usable_mib
    return profile.memory_gb == wish.slice_gb


def _is_left(plan: Plan, platform: str, profile: str, old: str, resource: str, inside: Mapping[str, int]) -> bool:
    table = plan.snapshot.tables[platform]
    rows = dict.fromkeys(inside, 0) | {platform: inside[platform] & _slice_rows(plan, platform, profile, resource)}
    if resource == old and slice_by_label(plan.snapshot.catalog, table, profile, rows[platform]) is None:
        return False
    space = replace(plan.space, wanted={(resource if n == old else n): c for n, c in plan.space.wanted.items()})
    return space.left(rows)
