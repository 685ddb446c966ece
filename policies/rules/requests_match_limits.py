"""Requests match limits: a device can't be overcommitted, and a guaranteed pod must say so.

Reads   resources.requests and resources.limits of every container and init container, and the pod's own
Writes  ``repair``: the request of an accelerator becomes its limit; where there is only a request, the limit becomes it
Judges  ``requestsEqualLimits``: accelerators (every accelerator name, DRA extended resources too, which the API server
        lets pass at 1/2 and at 500m), cpuAndMemory (QoS class Guaranteed, as Kubernetes computes it); of a resize, what it worsens
Never   touches cpu or memory, or an accelerator amount that it can't read
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from policies.plan import Plan
from policies.pod import Container, Pod, dotted
from policies.qos import POD_LEVEL, Shortfall, shortfalls
from policies.quantity import QuantityError, parse
from policies.request import Request
from policies.snapshot import Snapshot
from policies.verdict import Edit, Path, Violation
from policies.wording import cut

NAME = "requests_match_limits"


def mutate(request: Request, plan: Plan) -> Iterator[Edit]:
    """request := limit, or limit := request, per container and accelerator."""
    if not plan.wishes.repair or plan.actor.resources == "no":
        return
    for container, name in _devices(plan):
        if plan.slice is not None and name == plan.slice.old != plan.slice.resource:
            continue  # mig_resources writes both sides of what it renames
        limit, asked = container.limits.get(name), container.requests.get(name)
        if limit is None:
            yield _set(plan, container, "limits", name, asked)
        elif (asked is None or not _equal(limit, asked)) and parse(limit):  # not to zero: the pod would ask for nothing, and nobody said so
            yield _set(plan, container, "requests", name, limit)


def _set(plan: Plan, container: Container, side: str, name: str, value: Any) -> Edit:
    return Edit(op="add", path=(*container.path, "resources", side, name), value=value, rule=NAME, policies=plan.wishes.repair)


def _devices(plan: Plan) -> Iterator[tuple[Container, str]]:
    """Every readable pair of container and accelerator name, in the pod's order."""
    for container in plan.pod.containers:
        for name in sorted(container.resource_names):
            if plan.snapshot.resource(name) is not None and _unreadable(container, name) is None and not _zero(container, name):
                yield container, name


def _equal(left: Any, right: Any) -> bool:
    return parse(left) == parse(right)


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """Each mismatch, unless the mutate phase is about to mend it."""
    for container in plan.pod.containers:
        if plan.wishes.equal.get("accelerators"):
            yield from _accelerators(request, plan, container)
    if plan.wishes.equal.get("cpuAndMemory") and plan.devices.any:
        yield from _cpu_and_memory(plan, shortfalls(plan.pod))


def _accelerators(request: Request, plan: Plan, container: Container) -> Iterator[Violation]:
    policies = plan.wishes.equal["accelerators"]
    mends = request.phase == "mutate" and bool(plan.wishes.repair) and plan.actor.resources != "no"
    for name in sorted(container.resource_names):
        if plan.snapshot.resource(name) is None:
            continue
        wrong = _unreadable(container, name)
        if wrong is not None:
            yield _no_count(container, name, wrong, policies)
        elif not (mends and _mended(container, name)) and not _zero(container, name):
            yield from _mismatch(container, name, policies)


def _unreadable(container: Container, name: str) -> tuple[str, Any] | None:
    """(side, value) of an amount that is no whole number of devices."""
    for side, amounts in (("limits", container.limits), ("requests", container.requests)):
        try:
            amount = parse(amounts.get(name, 0))
        except QuantityError:
            return side, amounts[name]
        if amount < 0 or amount.denominator != 1:
            return side, amounts[name]
    return None


def undecodable(pod: Pod, snapshot: Snapshot) -> Iterator[Violation]:
    """Amounts of accelerators that are no quantity at all: such a pod is refused before any webhook is called, whatever policies say."""
    for container in pod.containers:
        for name in sorted(container.resource_names):
            wrong = _unreadable(container, name) if snapshot.resource(name) is not None else None
            if wrong is not None and not _is_quantity(wrong[1]):
                yield _no_count(container, name, wrong, ())


def _is_quantity(amount: Any) -> bool:
    try:
        parse(amount)
    except QuantityError:
        return False
    return True


def _mended(container: Container, name: str) -> bool:
    """Whether repair acts. A limit of zero beside a request is left to be refused."""
    limit = container.limits.get(name)
    return limit is None or bool(parse(limit))


def _zero(container: Container, name: str) -> bool:
    return parse(container.limits.get(name, 0)) == parse(container.requests.get(name, 0)) == 0


_ROOM = 200 - len("BERTH-101: ; .")
"""characters for fact and fix together (design section 1, law 9)"""


def _fix(fact: str, resources: Path, side: str, name: str, value: Any) -> str:
    """Long resource names are not said twice."""
    path: Path = (*resources, side, name)
    fix = f"set {dotted(path)} to {value}"
    return fix if len(fact) + len(fix) <= _ROOM else f"set it to {value} in {dotted(path[:-1])}"


def _resources(container: Container) -> Path:
    return (*container.path, "resources")


def _container(container: Container) -> str:
    return f'container "{cut(str(container.name), 20)}"'


def _no_count(container: Container, name: str, wrong: tuple[str, Any], policies: tuple[str, ...]) -> Violation:
    side, value = wrong
    fact = f'{_container(container)}: "{cut(str(value), 12)}" of {name} is no whole number'
    return Violation(
        code="BERTH-102", fact=fact, fix=_fix(fact, _resources(container), side, name, "a whole number"), rule=NAME, policies=policies
    )


def _mismatch(container: Container, name: str, policies: tuple[str, ...]) -> Iterator[Violation]:
    limit, asked = container.limits.get(name), container.requests.get(name)
    if limit is None:
        fact = f"{_container(container)} requests {cut(str(asked), 12)} {name} and sets no limit"
        yield Violation(
            code="BERTH-101", fact=fact, fix=_fix(fact, _resources(container), "limits", name, asked), rule=NAME, policies=policies
        )
    elif asked is not None and not _equal(limit, asked):
        fact = f"{_container(container)} requests {cut(str(asked), 12)} {name} but its limit is {cut(str(limit), 12)}"
        side, value = ("requests", limit) if parse(limit) else ("limits", asked)
        fix = _fix(fact, _resources(container), side, name, value)
        yield Violation(code="BERTH-101", fact=fact, fix=fix, detail="Devices can't be overcommitted.", rule=NAME, policies=policies)


def _cpu_and_memory(plan: Plan, wrong: Iterable[Shortfall]) -> Iterator[Violation]:
    for short in wrong:
        at, name = short.level, short.name
        limit, asked = at.limits.get(name), at.requests.get(name)
        who = f'container "{cut(str(at.who), 20)}"' if at.path != POD_LEVEL else "spec.resources"
        have = f"request {_said(asked)}, limit {_said(limit)}"
        fact = f"{who}: {name} has {have}; GPU pods here must be of QoS class Guaranteed"
        side, value = ("requests", limit) if at.limit(name) else ("limits", asked if at.request(name) else "an amount")
        yield Violation(
            code="BERTH-103",
            fact=fact,
            fix=_fix(fact, at.path, side, name, cut(str(value), 12)),
            rule=NAME,
            policies=plan.wishes.equal["cpuAndMemory"],
        )


def _said(value: object) -> str:
    return "none" if value is None else cut(str(value), 12)


def check_update(request: Request, plan: Plan) -> Iterator[Violation]:
    """A resize (KEP-1287) that leaves the pod further from QoS class Guaranteed than it was.

    The API server itself refuses one that changes the class (ValidatePodResize in pkg/apis/core/validation/validation.go). What is
    left to judge is a pod that is not Guaranteed, because it is older than the policy, and gains one more amount that keeps it from
    being so; and a pod whose status says another class than its spec does, since that rule compares with the status.
    """
    if request.subresource != "resize" or not plan.wishes.equal.get("cpuAndMemory") or not plan.asked or request.old_pod is None:
        return
    before = {(one.level.path, one.name) for one in shortfalls(Pod(request.old_pod))}
    yield from _cpu_and_memory(plan, (one for one in shortfalls(plan.pod) if (one.level.path, one.name) not in before))
