"""Requests match limits: a device can't be overcommitted, and a Guaranteed pod must have equal requests and
limits.

Reads   resources.requests and resources.limits of every container and init container, and those at pod level
Writes  ``repair``: the request of an accelerator becomes its limit; where there is only a request, the limit
        becomes it
Checks  ``requestsEqualLimits``: accelerators (every accelerator name, DRA extended resources too, which the
        API server lets pass at 1/2 and at 500m), cpuAndMemory (QoS class Guaranteed, as Kubernetes computes
        it); for a resize, only what it makes worse
Never   touches cpu or memory, or an accelerator amount that it can't read
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from catalog import Catalog
from catalog.platforms import InjectedContainer
from kube.pod import POD_LEVEL, Container, Pod
from kube.quantity import QuantityError, parse
from kube.requests import Level, shortfalls
from kube.tree import Path
from policies.fixes import equalize, round_amounts
from policies.messages import At, Phrase, cut_text, phrase
from policies.planning.plan import Plan
from policies.planning.requirements import Demands
from policies.pods.unlisted_accelerators import is_extended
from policies.request import Request
from policies.state.snapshot import Snapshot
from policies.verdict import Edit, Violation, at_field

NAME = "requests_match_limits"
_FIELD = "spec.require.requestsEqualLimits"


def mutate(request: Request, plan: Plan) -> Iterator[Edit]:
    """Set the request to the limit, or a missing limit to the request, per container and accelerator."""
    if not plan.settings.repair or plan.actor.resources == "no":
        return
    for container, name in _devices(plan):
        if plan.slice is not None and name == plan.slice.old != plan.slice.resource:
            continue  # mig_resources writes both sides of what it renames
        limit, asked = container.limits.get(name), container.requests.get(name)
        if limit is None:
            yield _edit(plan, container, "limits", name, asked)
        elif (asked is None or not _equal(limit, asked)) and parse(limit):  # not to zero: the pod would ask for nothing, and nobody said so
            yield _edit(plan, container, "requests", name, limit)


def _edit(plan: Plan, container: Container, side: str, name: str, value: Any) -> Edit:
    return Edit(op="add", path=(*container.path, "resources", side, name), value=value, rule=NAME, policies=plan.settings.repair)


def _devices(plan: Plan) -> Iterator[tuple[Container, str]]:
    """Yield each container with each of its accelerator names whose amounts are readable and not all zero, in
    the pod's order."""
    for container in plan.pod.containers:
        for name in sorted(container.resource_names):
            if plan.snapshot.resource(name) is not None and _unreadable(container, name) is None and not _zero(container, name):
                yield container, name


def _equal(left: Any, right: Any) -> bool:
    return parse(left) == parse(right)


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield a violation for each mismatch, unless the mutate phase is about to repair it."""
    equal = plan.demands.merged(merge_equal)
    for container in plan.pod.containers:
        if "accelerators" in equal:
            yield from _accelerators(request, plan, container, equal["accelerators"])
    if "cpuAndMemory" in equal and plan.devices.any:
        yield from _cpu_and_memory(shortfalls(plan.pod), equal["cpuAndMemory"], plan.snapshot.catalog)


def merge_equal(demands: Demands) -> dict[str, tuple[str, ...]]:
    """Return the policies that require it for each kind of ``requestsEqualLimits``; no kind that none requires."""
    kinds = ((kind, c.id) for c in demands.policies for kind in c.policy.require.requests_equal_limits)
    equal: dict[str, tuple[str, ...]] = {}
    for kind, policy in kinds:
        equal[kind] = (*equal.get(kind, ()), policy)
    return equal


def _accelerators(request: Request, plan: Plan, container: Container, policies: tuple[str, ...]) -> Iterator[Violation]:
    repairs = request.phase == "mutate" and bool(plan.settings.repair) and plan.actor.resources != "no"
    for name in sorted(container.resource_names):
        if plan.snapshot.resource(name) is None:
            continue
        wrong = _unreadable(container, name)
        if wrong is not None:
            yield _no_count(container, name, wrong, policies)
        elif not (repairs and _repaired(container, name)) and not _zero(container, name):
            yield from _mismatch(container, name, policies)


def _unreadable(container: Container, name: str) -> tuple[str, Any] | None:
    """Return (side, value) of the first amount that is no whole number of devices, or None."""
    for side, amounts in (("limits", container.limits), ("requests", container.requests)):
        try:
            amount = parse(amounts.get(name, 0))
        except QuantityError:
            return side, amounts[name]
        if amount.numerator < 0 or amount.denominator != 1:
            return side, amounts[name]
    return None


def undecodable(pod: Pod, snapshot: Snapshot) -> Iterator[Violation]:
    """Yield a violation for each amount of an accelerator that is no quantity at all.

    The API server denies such a pod before it calls any webhook, whatever the policies are.
    """
    for container in pod.containers:
        for name in sorted(container.resource_names):
            wrong = _unreadable(container, name) if snapshot.resource(name) is not None else None
            if wrong is not None and not _is_quantity(wrong[1]):
                yield _no_count(container, name, wrong, ())


def denied_amounts(pod: Pod) -> Iterator[Violation]:
    """Yield a violation for each amount of an extended resource that the API server denies in a pod and in the template of a workload: no
    whole number, or a request that is not its limit (pkg/apis/core/validation ValidateContainerResourceRequirements)."""
    for container in pod.containers:
        for name in sorted(filter(is_extended, container.resource_names)):
            wrong = _unreadable(container, name)
            if wrong is not None:
                yield _no_count(container, name, wrong, ())
            elif not _zero(container, name):
                yield from _mismatch(container, name, ())


def _is_quantity(amount: Any) -> bool:
    try:
        parse(amount)
    except QuantityError:
        return False
    return True


def _repaired(container: Container, name: str) -> bool:
    """Return whether repair applies. A limit of zero beside a request is left as it is and denied."""
    limit = container.limits.get(name)
    return limit is None or bool(parse(limit))


def _zero(container: Container, name: str) -> bool:
    return not parse(container.limits.get(name, 0)) and not parse(container.requests.get(name, 0))


def _set(name: str, path: Path, **value: object) -> Phrase:
    """Return the phrase for what to write at a path, so that a long resource name is not repeated."""
    return phrase(name, path=At(path), around=At(path[:-1]), **value)


def _name(container: Container) -> str:
    return cut_text(str(container.name), 20)


def _no_count(container: Container, name: str, wrong: tuple[str, Any], policies: tuple[str, ...]) -> Violation:
    side, value = wrong
    return Violation(
        code="BERTH-102",
        found=phrase("fact", container=_name(container), amount=cut_text(str(value), 12), name=name),
        advice=_set("fix", (*container.path, "resources", side, name)),
        rule=NAME,
        path=(*container.path, "resources", side, name),
        fields=at_field(_FIELD, policies),
        fixes=tuple(round_amounts(container, name)),
    )


def _mismatch(container: Container, name: str, policies: tuple[str, ...]) -> Iterator[Violation]:
    limit, asked = container.limits.get(name), container.requests.get(name)
    resources = (*container.path, "resources")
    if limit is None:
        found = phrase("no limit", container=_name(container), asked=cut_text(str(asked), 12), name=name)
        advice = _set("set", (*resources, "limits", name), value=str(asked))
        path, fields = (*resources, "requests", name), at_field(_FIELD, policies)
        fixes = equalize(resources, name, limit=None, request=asked)
        yield Violation(code="BERTH-101", found=found, advice=advice, rule=NAME, path=path, fields=fields, fixes=fixes)
    elif asked is not None and not _equal(limit, asked):
        found = phrase("differs", container=_name(container), asked=cut_text(str(asked), 12), name=name, limit=cut_text(str(limit), 12))
        side, value = ("requests", limit) if parse(limit) else ("limits", asked)
        advice = _set("set", (*resources, side, name), value=str(value))
        yield Violation(
            code="BERTH-101",
            found=found,
            advice=advice,
            more=(phrase("why"),),
            rule=NAME,
            path=(*resources, side, name),
            fields=at_field(_FIELD, policies),
            fixes=equalize(resources, name, limit=limit if parse(limit) else None, request=asked if parse(asked) else None),
        )


def _cpu_and_memory(wrong: Iterable[tuple[Level, str]], policies: tuple[str, ...], catalog: Catalog) -> Iterator[Violation]:
    for at, name in wrong:
        limit, asked = at.limits.get(name), at.requests.get(name)
        who = phrase("container", name=cut_text(str(at.who), 20)) if at.path != POD_LEVEL else At(POD_LEVEL)
        side, value = ("requests", limit) if at.limit(name) else ("limits", asked if at.request(name) else None)
        injected = None if at.path == POD_LEVEL else _injected(str(at.who), catalog)
        amount = phrase("an amount") if value is None else cut_text(str(value), 12)
        fixes = equalize(at.path, name, limit=limit if at.limit(name) else None, request=asked if at.request(name) else None)
        yield Violation(
            code="BERTH-103",
            found=phrase("fact", who=who, name=name, request=_amount(asked), limit=_amount(limit)),
            advice=_set("set", (*at.path, side, name), value=amount) if injected is None else _advise_on(injected, side, name, amount),
            rule=NAME,
            path=(*at.path, side, name),
            fields=at_field(_FIELD, policies),
            fixes=fixes if injected is None else (),
        )


def _injected(container: str, catalog: Catalog) -> InjectedContainer | None:
    """Return the catalog's entry for a container that a webhook adds; None for one of the author's."""
    return next((known for known in catalog.injected_containers if fnmatchcase(container, known.name)), None)


def _advise_on(injected: InjectedContainer, side: str, name: str, amount: Phrase | str) -> Phrase:
    """Return what to set so that the injector gives its container the amount."""
    key = (injected.requests if side == "requests" else injected.limits).get(name)
    if key is None:
        return phrase("injected", injector=injected.injector, setting=injected.setting)
    return phrase("injected by annotation", injector=injected.injector, path=At(("metadata", "annotations", key)), value=amount)


def _amount(value: object) -> Phrase | str:
    return phrase("none") if value is None else cut_text(str(value), 12)


def check_update(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield violations for a resize (KEP-1287) that leaves the pod further from QoS class Guaranteed than it
    was.

    The API server itself denies one that changes the class (ValidatePodResize in
    pkg/apis/core/validation/validation.go). Two cases are left to check: a pod that is not Guaranteed,
    because it is older than the policy, and gains one more amount that keeps it from being so; and a pod
    whose status has another class than its spec implies, since that rule compares with the status.
    """
    policies = plan.demands.merged(merge_equal).get("cpuAndMemory", ())
    if request.subresource != "resize" or not policies or not plan.asked or request.old_pod is None:
        return
    before = {(at.path, name) for at, name in shortfalls(Pod(request.old_pod))}
    yield from _cpu_and_memory(
        ((at, name) for at, name in shortfalls(plan.pod) if (at.path, name) not in before), policies, plan.snapshot.catalog
    )
