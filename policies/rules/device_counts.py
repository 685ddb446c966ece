"""Device counts: how many devices a pod requests, of which kind, and under which resource name.

Reads   the resource names and amounts of every container, readable resource claims
Writes  nothing
Judges  ``gpusPerPod``, by the largest number that the pod may get; fractions and devices of no known class
        against requirements on machines and sharing; a whole GPU and a MIG slice in one container; a resource
        name that is a listed misspelling (the API server stores nvdia.com/gpu, and the pod stays pending for
        ever); a slice that no model has
Never   counts an unreadable amount as zero
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from catalog.platforms import Sharing
from kube.pod import NONE, CountInterval, Pod, is_requested
from kube.tree import Path
from policies.messages import At, Phrase, phrase
from policies.planning import requirement_words
from policies.planning.merged_settings import MergedSettings
from policies.planning.plan import Plan
from policies.pods.permissions import annotated_fraction, fraction_keys, is_fraction
from policies.reasons import open_counts
from policies.request import Request
from policies.rules import device_classes
from policies.rules.node_affinity.slices import MOST_SAID, nearest_slice
from policies.settings.limits import TightestLimit
from policies.verdict import Violation, at_field

NAME = "device_counts"


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield a violation for each count or resource name that is wrong or not allowed."""
    yield from _per_pod(plan)
    yield from _shared(plan)
    yield from device_classes.check(plan)
    yield from _mixed(plan)
    yield from _misspelt(plan)
    yield from _no_such_slice(plan)


UNCOUNTED = "BERTH-118"


def check_update(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield a violation if a pod that runs on a part of a GPU stops saying so: it keeps the part, and no later update would be judged."""
    old = Pod(request.old_pod or {})
    keys = fraction_keys(old.annotations)
    if keys and plan.policies and old.node_name and not annotated_fraction(Pod(request.pod)):
        path: Path = ("metadata", "annotations", keys[0])
        fact, by = phrase("gone", path=At(path)), tuple(compiled.policy.id for compiled in plan.policies)
        fields = at_field("spec.require", by)
        yield Violation(code=UNCOUNTED, found=fact, advice=phrase("leave it"), rule=NAME, policies=by, path=path, fields=fields)


_MAX, _ONE_OF, _SHARING = "spec.require.gpusPerPod.max", "spec.require.gpusPerPod.oneOf", "spec.require.sharing"


def _per_pod(plan: Plan) -> Iterator[Violation]:
    settings = plan.settings
    if settings.gpus_max is None and settings.one_of is None:
        return
    count = plan.devices.whole(plan.snapshot.catalog)
    if settings.gpus_max is not None and count.least > settings.gpus_max.value:
        yield _above(plan, count, settings.gpus_max)
    elif count.most is None:
        yield _uncounted(plan, settings)
    elif settings.gpus_max is not None and count.most > settings.gpus_max.value:
        yield _above(plan, count, settings.gpus_max)
    elif settings.one_of is not None and not _all_allowed(count, count.most, settings.one_of):
        yield _none_of(plan, count, settings)


def _all_allowed(count: CountInterval, most: int, allowed: Collection[int]) -> bool:
    """Return whether every possible count but zero is allowed; the counts in between may come from
    ``firstAvailable``."""
    least = max(count.least, 1)
    return most - least < len(allowed) and all(number in allowed for number in range(least, most + 1))


def _above(plan: Plan, count: CountInterval, limit: TightestLimit) -> Violation:
    found, advice = phrase("fact", count=str(count), most=limit.value), phrase("ask for fewer", most=limit.value)
    by, path, fields = limit.policies, open_counts.only_request(plan), at_field(_MAX, limit.policies)
    return Violation(code="BERTH-111", found=found, advice=advice, rule=NAME, policies=by, path=path, fields=fields)


def _none_of(plan: Plan, count: CountInterval, settings: MergedSettings) -> Violation:
    allowed = [n for n in settings.one_of or () if settings.gpus_max is None or n <= settings.gpus_max.value]
    more = next((n for n in allowed if n > count.least), max(allowed, default=0))
    found = phrase("fact", count=str(count), allowed=tuple(allowed)) if allowed else phrase("nothing", count=str(count))
    advice = phrase("ask", number=more) if more else phrase("fix policies")
    by, path, fields = settings.one_of_by, open_counts.only_request(plan), at_field(_ONE_OF, settings.one_of_by)
    return Violation(code="BERTH-112", found=found, advice=advice, rule=NAME, policies=by, path=path, fields=fields)


def _uncounted(plan: Plan, settings: MergedSettings) -> Violation:
    """Return the violation for a count that can't be bounded while there is a limit: the worst case is
    assumed."""
    found, advice, path = open_counts.what_is_open(plan)
    fields = (*at_field(_MAX, settings.gpus_max.policies if settings.gpus_max else ()), *at_field(_ONE_OF, settings.one_of_by))
    by = tuple(sorted({policy for policy, _ in fields}))
    return Violation(code=UNCOUNTED, found=phrase("fact", open=found), advice=advice, rule=NAME, policies=by, path=path, fields=fields)


def _shared(plan: Plan) -> Iterator[Violation]:
    """Yield a violation per way of sharing that some policy with ``require.sharing`` does not admit."""
    found: dict[tuple[Sharing, Phrase], Path] = {}
    for way, words, place in _ways(plan):
        found.setdefault((way, words), place)
    for (way, words), path in found.items():
        policies = tuple(c.policy.id for c in plan.policies if c.policy.require.sharing and way not in c.policy.require.sharing)
        if policies:
            yield Violation(
                code="BERTH-117",
                found=phrase("fact", shared=words, way=way, admitted=tuple(_admitted(plan))),
                advice=phrase("fix"),
                rule=NAME,
                policies=policies,
                path=path,
                fields=at_field(_SHARING, policies),
            )


def _admitted(plan: Plan) -> list[str]:
    """Return the ways that every policy with ``require.sharing`` admits; if there are none, those of the
    first policy."""
    required = [c.policy.require.sharing for c in plan.policies if c.policy.require.sharing]
    return [way for way in required[0] if all(way in other for other in required)] or list(required[0])


def _ways(plan: Plan) -> Iterator[tuple[Sharing, Phrase, Path]]:
    """Yield the ways in which the pod shares devices, where no table of offers decides it.

    These are fractions, names that no table lists, and the names of a pod that is bound to a node already or
    fits none according to the tables: a node whose slices were cut by hand runs it all the same.
    """
    if plan.devices.fraction != NONE or is_fraction(plan.pod):
        yield "TimeSliced", phrase("fraction"), open_counts.ANNOTATIONS
    cuts = [cell.cut if cell.renamed else None for cell in plan.space.cells]
    if cuts and cuts[0] is not None and None not in cuts:
        yield "MIG", phrase("cut", label=requirement_words.label(cuts[0])), requirement_words.place_of_label(cuts[0])
    for asked in plan.asked:
        resource, place = asked.resource, open_counts.amount_path(asked.containers[0], asked.resource.name)
        served = plan.snapshot.served.get(resource.name)
        if served is not None and (served.mixed or (served.sharing == "MIG" and not plan.snapshot.lists(resource.name))):
            yield "MIG", phrase("mixed", name=resource.name), place
        if plan.snapshot.lists(resource.name) and plan.actor.affinity != "no" and plan.space.possible_anywhere():
            continue
        if resource.kind in ("shared", "part"):
            yield "TimeSliced", phrase("part" if resource.kind == "part" else "resource", name=resource.name), place
        elif not resource.vendor:
            yield "TimeSliced", phrase("unknown", name=resource.name), place
        elif resource.kind == "mig" or (resource.parts is not None and min(resource.parts) > 1):
            yield "MIG", phrase("resource", name=resource.name), place


def _mixed(plan: Plan) -> Iterator[Violation]:
    if len({one.resource.kind for one in plan.asked}) < 2:
        return
    policies = tuple(c.policy.id for c in plan.policies)
    asked: dict[Path, dict[str, str]] = {}
    for one in plan.asked:
        for container in one.containers:
            asked.setdefault(container.path, {})[one.resource.kind] = one.resource.name
    for container in plan.pod.containers:
        kinds = asked.get(container.path, {})
        if "gpu" in kinds and "mig" in kinds:
            yield Violation(
                code="BERTH-113",
                found=phrase("fact", container=container.name, whole=kinds["gpu"], slice=kinds["mig"]),
                advice=phrase("fix", path=At((*container.path, "resources"))),
                rule=NAME,
                policies=policies,
                path=(*container.path, "resources"),
            )


def _misspelt(plan: Plan) -> Iterator[Violation]:
    policies, misspellings = tuple(c.policy.id for c in plan.policies), plan.snapshot.catalog.misspellings
    for container in plan.pod.containers:
        for name in container.resource_names:
            right = misspellings.get(name)
            if right is not None and is_requested(container, name):
                yield Violation(
                    code="BERTH-114",
                    found=phrase("fact", container=container.name, name=name),
                    advice=phrase("fix", right=right),
                    rule=NAME,
                    policies=policies,
                    path=open_counts.amount_path(container, name),
                )


def _no_such_slice(plan: Plan) -> Iterator[Violation]:
    slices = [a for a in plan.asked if a.resource.profile is not None and a.resource.name.startswith("nvidia.com/mig-")]
    if not slices:
        return
    policies = tuple(c.policy.id for c in plan.policies)
    profiles = {p.resource for gpu in plan.snapshot.catalog.gpus for p in gpu.mig}
    hints = 0
    for asked in slices:
        name = asked.resource.name
        plain = name.removesuffix(".shared")
        if plain in profiles:
            continue
        hints += 1
        near = nearest_slice(plain, profiles) if hints <= MOST_SAID else None
        advice = phrase("write", right=f"{near}{name.removeprefix(plain)}") if near else phrase("look")
        found = phrase("fact", container=asked.containers[0].name, name=name)
        path = open_counts.amount_path(asked.containers[0], name)
        yield Violation(code="BERTH-115", found=found, advice=advice, rule=NAME, policies=policies, path=path)
