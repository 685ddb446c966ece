"""Device counts: how many devices a pod requests, of which kind, and under which resource name.

Reads   the resource names and amounts of every container, readable resource claims
Writes  nothing
Checks  ``gpusPerPod``, by the largest number that the pod may get; fractions and devices of no known class
        against requirements on machines and sharing; a whole GPU and a MIG slice in one container; a resource
        name that is a listed misspelling (the API server stores nvdia.com/gpu, and the pod stays pending for ever); a slice that no
        model has; entries of resourceClaims. Devices of a DeviceClass by its vendor alone: their model is not known here. A claim's
        selectors are checked with the claim (``policies.claims``), the nodes of a class's name with placement (``policies.offers.build``)
Never   counts an unreadable amount as zero
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from catalog import Resource
from catalog.nearest import nearest_slice
from catalog.platforms import Sharing
from kube.pod import NONE, Container, CountInterval, Pod, is_requested, of_amounts
from kube.tree import Path
from policies.claims.confinement import FIELDS, device_fields, has_such, settles
from policies.fixes import Fix, amount_paths, choose_label, leave_out, rename, request_whole, round_amounts
from policies.messages import At, Phrase, phrase
from policies.offers.constraints import Compiled, Constraint, fields
from policies.offers.merging import TightestLimit, least
from policies.planning.devices import Claimed, RequestedDevice, fix_counts, of_claim
from policies.planning.plan import Plan
from policies.planning.requirement_words import describe_expression, detail_constraints, list_constraints, place_of_label
from policies.planning.requirements import Demands
from policies.pods import unlisted_accelerators
from policies.pods.fractions import FRACTION_DEVICES, annotated_fraction, fraction_keys, fraction_paths, is_fraction
from policies.request import Request
from policies.verdict import Field, Violation, at_field

NAME = "device_counts"
UNCOUNTED, UNKNOWN = "BERTH-118", "BERTH-126"
_ANNOTATIONS: Path = ("metadata", "annotations")
_CLAIMS: Path = ("spec", "resourceClaims")
_MOST_HINTS = 5
"""The most slices of one pod for which the nearest is named: finding it takes a millisecond each."""


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield a violation for each count or resource name that is wrong or not allowed."""
    yield from _per_pod(plan)
    yield from _shared(plan)
    yield from _devices_of_classes(plan)
    yield from _mixed(plan)
    yield from _misspelt(plan)
    yield from _no_such_slice(plan)
    yield from _misnamed_claims(plan)


def _misnamed_claims(plan: Plan) -> Iterator[Violation]:
    for number, has_both in plan.pod.misnamed_claims:
        path: Path = (*_CLAIMS, number)
        fact, policies = phrase("claim names both" if has_both else "claim names none", path=At(path)), tuple(c.id for c in plan.policies)
        yield Violation(code=UNCOUNTED, found=fact, advice=phrase("name claim"), rule=NAME, policies=policies, path=path)


def check_update(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield a violation if a pod that runs on a part of a GPU stops saying so: it keeps the part, and no later update would be judged."""
    old = Pod(request.old_pod or {})
    keys = fraction_keys(old.annotations)
    if keys and plan.policies and old.node_name and not annotated_fraction(Pod(request.pod)):
        path: Path = ("metadata", "annotations", keys[0])
        fact, on = phrase("gone", path=At(path)), at_field("spec.require", (compiled.id for compiled in plan.policies))
        yield Violation(code=UNCOUNTED, found=fact, advice=phrase("leave it"), rule=NAME, path=path, fields=on)


_MAX, _ONE_OF, _SHARING = "spec.require.gpusPerPod.max", "spec.require.gpusPerPod.oneOf", "spec.require.sharing"


class CountLimits(NamedTuple):
    """What ``require.gpusPerPod`` of all policies allows together."""

    most: TightestLimit | None
    one_of: tuple[int, ...] | None
    """None: any number."""
    one_of_by: tuple[str, ...]


def merge_limits(demands: Demands) -> CountLimits:
    """Return the smallest maximum, and the numbers that every policy with ``oneOf`` lists."""
    limits = [(limit, c.id) for c in demands.policies if (limit := c.policy.require.gpus_per_pod)]
    one_of = [(set(limit.one_of), policy) for limit, policy in limits if limit.one_of]
    return CountLimits(
        most=least((limit.max, policy) for limit, policy in limits),
        one_of=tuple(sorted(set.intersection(*(numbers for numbers, _ in one_of)))) if one_of else None,
        one_of_by=tuple(policy for _, policy in one_of),
    )


def _per_pod(plan: Plan) -> Iterator[Violation]:
    limits = plan.demands.merged(merge_limits)
    if limits.most is None and limits.one_of is None:
        return
    count = plan.devices.whole(plan.snapshot.catalog)
    if limits.most is not None and count.least > limits.most.value:
        yield _above(plan, count, limits.most)
    elif count.most is None:
        yield _uncounted(plan, limits)
    elif limits.most is not None and count.most > limits.most.value:
        yield _above(plan, count, limits.most)
    elif limits.one_of is not None and not _all_allowed(count, count.most, limits.one_of):
        yield _none_of(plan, count, limits)


def _all_allowed(count: CountInterval, most: int, allowed: Collection[int]) -> bool:
    """Return whether every possible count but zero is allowed; the counts in between may come from
    ``firstAvailable``."""
    least = max(count.least, 1)
    return most - least < len(allowed) and all(number in allowed for number in range(least, most + 1))


def _above(plan: Plan, count: CountInterval, limit: TightestLimit) -> Violation:
    fact = phrase("fact", count=str(count), noun=_noun(plan, str(count)), most=limit.value)
    return _of_count(plan, "BERTH-111", fact, phrase("ask for fewer", most=limit.value), [limit.value], at_field(_MAX, limit.policies))


def _none_of(plan: Plan, count: CountInterval, limits: CountLimits) -> Violation:
    allowed = [n for n in limits.one_of or () if limits.most is None or n <= limits.most.value]
    more = next((n for n in allowed if n > count.least), max(allowed, default=0))
    values = {"count": str(count), "noun": _noun(plan, str(count))}
    fact = phrase("fact", **values, allowed=tuple(allowed)) if allowed else phrase("nothing", **values)
    advice = phrase("ask", number=more) if more else phrase("fix policies")
    return _of_count(plan, "BERTH-112", fact, advice, allowed, at_field(_ONE_OF, limits.one_of_by))


def _noun(plan: Plan, count: str = "") -> str:
    """Return what people call the pod's devices, so many of them; a part of one by annotation is of a GPU."""
    return plan.snapshot.catalog.name_devices(plan.vendors or ("nvidia",), count)


def _of_count(plan: Plan, code: str, found: Phrase, advice: Phrase, allowed: Sequence[int], on: tuple[Field, ...]) -> Violation:
    fixes = tuple(fix_counts(plan.devices, allowed, plan.snapshot.catalog))
    return Violation(code=code, found=found, advice=advice, rule=NAME, path=_only_request(plan), fields=on, fixes=fixes)


def _uncounted(plan: Plan, limits: CountLimits) -> Violation:
    """Return the violation for a count that can't be bounded while there is a limit: the worst case is
    assumed."""
    cause = _what_is_open(plan)
    fields = (*at_field(_MAX, limits.most.policies if limits.most else ()), *at_field(_ONE_OF, limits.one_of_by))
    cause = cause._replace(found=phrase("fact", open=cause.found, noun=_noun(plan)))
    return Violation(code=UNCOUNTED, **cause._asdict(), rule=NAME, fields=fields)


def _shared(plan: Plan) -> Iterator[Violation]:
    """Yield a violation per way of sharing that some policy with ``require.sharing`` does not admit."""
    ways: dict[tuple[Sharing, Phrase], tuple[Path, tuple[Fix, ...]]] = {}
    for way, words, path, fixes in _ways(plan):
        ways.setdefault((way, words), (path, fixes))
    for (way, words), (path, fixes) in ways.items():
        policies = tuple(c.id for c in plan.policies if c.policy.require.sharing and way not in c.policy.require.sharing)
        if policies:
            yield Violation(
                code="BERTH-117",
                found=phrase("fact", shared=words, way=way, admitted=tuple(_admitted(plan))),
                advice=phrase("fix"),
                rule=NAME,
                path=path,
                fields=at_field(_SHARING, policies),
                fixes=fixes,
            )


def _admitted(plan: Plan) -> list[str]:
    """Return the ways that every policy with ``require.sharing`` admits; if there are none, those of the
    first policy."""
    required = [c.policy.require.sharing for c in plan.policies if c.policy.require.sharing]
    return [way for way in required[0] if all(way in other for other in required)] or list(required[0])


def _ways(plan: Plan) -> Iterator[tuple[Sharing, Phrase, Path, tuple[Fix, ...]]]:
    """Yield the ways in which the pod shares devices, where no table of offers decides it, each with its path and fixes.

    These are fractions, names that no table lists, and the names of a pod that is bound to a node already or
    fits none according to the tables: a node whose slices were cut by hand runs it all the same.
    """
    if plan.devices.fraction != NONE or is_fraction(plan.pod):
        yield "TimeSliced", phrase("fraction"), _ANNOTATIONS, leave_out(*fraction_paths(plan.pod))
    cuts = [cell.cut if cell.renamed else None for cell in plan.space.cells]
    if cuts and cuts[0] is not None and None not in cuts:
        yield "MIG", phrase("cut", label=describe_expression(cuts[0])), place_of_label(cuts[0]), choose_label(cuts[0].written)
    for asked in plan.asked:
        for way, words in _of_resource(plan, asked.resource):
            path, whole = _amount_path(asked.containers[0], asked.resource.name), request_whole(asked.resource, plan.snapshot.catalog)
            yield way, phrase(words, name=asked.resource.name), path, whole


def _of_resource(plan: Plan, resource: Resource) -> Iterator[tuple[Sharing, str]]:
    served = plan.snapshot.served.get(resource.name)
    if served is not None and (served.mixed or (served.sharing == "MIG" and not plan.snapshot.lists(resource.name))):
        yield "MIG", "mixed"
    if plan.snapshot.lists(resource.name) and plan.actor.affinity != "no" and plan.space.possible_anywhere():
        return
    if resource.kind in ("shared", "part"):
        yield "TimeSliced", "part" if resource.kind == "part" else "resource"
    elif not resource.vendor:
        yield "TimeSliced", "unknown"
    elif resource.kind == "mig" or (resource.parts is not None and min(resource.parts) > 1):
        yield "MIG", "resource"


def _mixed(plan: Plan) -> Iterator[Violation]:
    if len({one.resource.kind for one in plan.asked}) < 2:
        return
    policies = tuple(c.id for c in plan.policies)
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
                fixes=tuple(fix for kind in ("gpu", "mig") for fix in leave_out(*amount_paths(container, kinds[kind]))),
            )


def _misspelt(plan: Plan) -> Iterator[Violation]:
    policies, misspellings = tuple(c.id for c in plan.policies), plan.snapshot.catalog.misspellings
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
                    path=_amount_path(container, name),
                    fixes=rename(name, [right]),
                )


def _no_such_slice(plan: Plan) -> Iterator[Violation]:
    slices = [a for a in plan.asked if a.resource.profile is not None and a.resource.name.startswith("nvidia.com/mig-")]
    if not slices:
        return
    policies = tuple(c.id for c in plan.policies)
    profiles = {p.resource for gpu in plan.snapshot.catalog.gpus for p in gpu.mig}
    hints = 0
    for asked in slices:
        name = asked.resource.name
        plain = name.removesuffix(".shared")
        if plain in profiles:
            continue
        hints += 1
        near = nearest_slice(plain, profiles) if hints <= _MOST_HINTS else None
        right = f"{near}{name.removeprefix(plain)}" if near else None
        advice = phrase("write", right=right) if right else phrase("look")
        found = phrase("fact", container=asked.containers[0].name, name=name)
        path = _amount_path(asked.containers[0], name)
        fixes = (*rename(name, [right] if right else []), *request_whole(asked.resource, plan.snapshot.catalog))
        yield Violation(code="BERTH-115", found=found, advice=advice, rule=NAME, policies=policies, path=path, fixes=fixes)


# --- what is open, and where it stands ----------------------------------------------------------------------------------


def _only_request(plan: Plan) -> Path:
    """Return the path of the one amount that is the pod's count; () if several are added up, or claims."""
    paths = [_amount_path(container, asked.resource.name) for asked in plan.asked for container in asked.containers]
    return paths[0] if len(paths) == 1 and not plan.devices.claimed else ()


def _amount_path(container: Container, name: str) -> Path:
    """Return the path of a container's amount of a device: of its limit, where it has one."""
    return (*container.path, "resources", "limits" if name in container.limits else "requests", name)


class _Cause(NamedTuple):
    """The request of a pod that a violation is about."""

    found: Phrase
    advice: Phrase
    path: Path = _CLAIMS
    fixes: tuple[Fix, ...] = ()


def _what_is_open(plan: Plan) -> _Cause:
    """Return the first request that can't be counted."""
    for asked in plan.asked:
        first, name = asked.containers[0], asked.resource.name
        if unlisted_accelerators.is_part(asked.resource):
            return _by_listed_name(plan, asked, phrase("part", container=first.name, name=name))
        if asked.count.most is None:
            container = next((c for c in asked.containers if of_amounts(c.limits.get(name), c.requests.get(name)).most is None), first)
            path = (*container.path, "resources", "limits", name)
            fact, advice = phrase("amount", container=container.name, name=name), phrase("set whole", path=At(path))
            return _Cause(fact, advice, path, tuple(round_amounts(container, name)))
    for claim in plan.devices.claimed:
        if (cause := _unread_claim(claim)) is not None:
            return cause
        if claim.count.most is None:
            return _Cause(phrase("all", kind=claim.kind, claim=claim.name), phrase("ask for count"))
    fact = phrase("fraction", annotations=At(_ANNOTATIONS), name=FRACTION_DEVICES)
    return _Cause(fact, phrase("write whole"), _ANNOTATIONS, leave_out(*fraction_paths(plan.pod)))


def _by_listed_name(plan: Plan, device: RequestedDevice, fact: Phrase) -> _Cause:
    path = _amount_path(device.containers[0], device.resource.name)
    return _Cause(fact, phrase("ask by name"), path, request_whole(device.resource, plan.snapshot.catalog))


def _unread_claim(claim: Claimed) -> _Cause | None:
    """Return the cause of a claim that does not exist or is not kept; None for any other."""
    if not claim.found:
        return _Cause(phrase("claim missing", kind=claim.kind, claim=claim.name), phrase("create the claim"))
    if claim.unread:
        return _Cause(phrase("claim unread", kind=claim.kind, claim=claim.name), phrase("shorten the claim"))
    return None


def _of_no_known_class(plan: Plan) -> Iterator[_Cause]:
    """Yield each device of a class that nobody knows, or of a claim that is missing."""
    for asked in plan.asked:
        if asked.resource.vendor == "":
            yield _by_listed_name(plan, asked, phrase("resource", name=asked.resource.name))
    for claim in plan.devices.claimed:
        if (cause := _unread_claim(claim)) is not None:
            yield cause
        elif "" in claim.vendors:
            yield _Cause(phrase("driver", kind=claim.kind, claim=claim.name), phrase("name class"))


# --- devices of a DeviceClass -------------------------------------------------------------------------------------------


def _devices_of_classes(plan: Plan) -> Iterator[Violation]:
    """Yield a violation for the first device of an unknown class or missing claim, if machines are
    constrained, which satisfies no ``in`` and no ``notIn``; one for the first of a known class that is outside; and one for
    the first claim that was judged without a policy for pods with more devices, as this pod is."""
    yield from _apart(plan)
    demands = [c for c in plan.constraints if c.axis == "machine"]
    if not demands:
        return
    unknown = next(_of_no_known_class(plan), None)
    if unknown is not None:
        yield _violation(unknown._replace(found=phrase("open", open=unknown.found, demands=list_constraints(demands))), demands)
    yield from (_violation(*outside) for outside in islice(_outside(plan), 1))


def _apart(plan: Plan) -> Iterator[Violation]:
    known, namespace = plan.snapshot.cluster.claims, plan.facts.namespace
    claims = {(kind, name): claim for kind, name in plan.pod.claims if (claim := known.get((kind, namespace, name))) is not None}
    for policy in (compiled.policy for compiled in plan.policies if claims):
        least = policy.match.gpus.min if policy.match.gpus is not None else None
        for (kind, name), claim in claims.items():
            count = of_claim(claim, plan.snapshot)
            if count.possibly(least, None) or all(settles(choice, policy, plan.snapshot) for choices in claim for choice in choices):
                continue
            by = (policy.id,)
            yield Violation(
                code="BERTH-127",
                found=phrase("apart", kind=kind, claim=name, count=str(count), policies=by, least=least),
                advice=phrase("together", least=least),
                rule=NAME,
                path=_CLAIMS,
                fields=at_field("spec.match.gpus.min", by),
            )
            return


def _outside(plan: Plan) -> Iterator[tuple[_Cause, list[Constraint]]]:
    by_class = [asked for asked in plan.asked if asked.resource.kind == "dra" and asked.resource.vendor]
    if plan.actor.affinity != "no":  # what is listed is judged by the nodes where the pod may run (``policies.rules.node_affinity.rule``)
        by_class = [asked for asked in by_class if not plan.snapshot.lists(asked.resource.name)]
    claims = [claim for claim in plan.devices.claimed if claim.vendors - {""}]
    for compiled in plan.policies if by_class or claims else ():
        demands = [c for c in compiled.require if c.axis == "machine" and c.field.rpartition(".")[2] in FIELDS]
        said = list_constraints(demands)
        for asked in by_class:
            if not _has(plan, compiled, asked.resource.vendor):
                place = _amount_path(asked.containers[0], asked.resource.name)
                yield _Cause(phrase("device", name=asked.resource.name, demands=said), phrase("ask for device"), place), demands
        for claim in claims:
            if not all(_has(plan, compiled, vendor) for vendor in claim.vendors - {""}):
                yield _Cause(phrase("claim outside", kind=claim.kind, claim=claim.name, demands=said), phrase("ask for class")), demands


def _has(plan: Plan, compiled: Compiled, vendor: str) -> bool:
    """Return whether a model of the vendor, known or not, is inside of what the policy requires."""
    return has_such(vendor, [device_fields(compiled.policy.require.machine)], plan.snapshot.catalog)


def _violation(cause: _Cause, demands: list[Constraint]) -> Violation:
    return Violation(code=UNKNOWN, **cause._asdict(), more=(detail_constraints(demands),), rule=NAME, fields=fields(demands))
