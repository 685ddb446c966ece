"""Requests match limits: a device can't be overcommitted, and a guaranteed pod must say so.

Reads   resources.requests and resources.limits of every container and init container
Writes  ``repair``: the request of an accelerator becomes its limit; where there is only a request, the limit becomes it
Judges  ``requestsEqualLimits``: accelerators (every accelerator name, DRA extended resources too, which the API server
        lets pass at 1/2 and at 500m), cpuAndMemory (QoS class Guaranteed)
Never   touches cpu or memory, or an accelerator amount that it can't read
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from policies.plan import Plan
from policies.pod import Container, dotted
from policies.quantity import QuantityError, parse
from policies.request import Request
from policies.verdict import Edit, Path, Violation

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
            if plan.snapshot.catalog.resource(name) is not None and _unreadable(container, name) is None and not _zero(container, name):
                yield container, name


def _equal(left: Any, right: Any) -> bool:
    return parse(left) == parse(right)


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """Each mismatch, unless the mutate phase is about to mend it."""
    for container in plan.pod.containers:
        if plan.wishes.equal.get("accelerators"):
            yield from _accelerators(request, plan, container)
        if plan.wishes.equal.get("cpuAndMemory") and plan.asked:
            yield from _cpu_and_memory(plan, container)


def _accelerators(request: Request, plan: Plan, container: Container) -> Iterator[Violation]:
    policies = plan.wishes.equal["accelerators"]
    mends = request.phase == "mutate" and bool(plan.wishes.repair) and plan.actor.resources != "no"
    for name in sorted(container.resource_names):
        if plan.snapshot.catalog.resource(name) is None:
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


def _mended(container: Container, name: str) -> bool:
    """Whether repair acts. A limit of zero beside a request is left to be refused."""
    limit = container.limits.get(name)
    return limit is None or bool(parse(limit))


def _zero(container: Container, name: str) -> bool:
    return parse(container.limits.get(name, 0)) == parse(container.requests.get(name, 0)) == 0


_ROOM = 200 - len("BERTH-101: ; .")
"""characters for fact and fix together (design section 1, law 9)"""


def _fix(fact: str, container: Container, side: str, name: str, value: Any) -> str:
    """Long resource names are not said twice."""
    path: Path = (*container.path, "resources", side, name)
    fix = f"set {dotted(path)} to {value}"
    return fix if len(fact) + len(fix) <= _ROOM else f"set it to {value} in {dotted(path[:-1])}"


def _short(text: object, most: int) -> str:
    return str(text) if len(str(text)) <= most else f"{str(text)[: most - 3]}..."


def _container(container: Container) -> str:
    return f'container "{_short(container.name, 20)}"'


def _no_count(container: Container, name: str, wrong: tuple[str, Any], policies: tuple[str, ...]) -> Violation:
    side, value = wrong
    fact = f'{_container(container)}: "{_short(value, 12)}" of {name} is no whole number'
    return Violation(code="BERTH-102", fact=fact, fix=_fix(fact, container, side, name, "a whole number"), rule=NAME, policies=policies)


def _mismatch(container: Container, name: str, policies: tuple[str, ...]) -> Iterator[Violation]:
    limit, asked = container.limits.get(name), container.requests.get(name)
    if limit is None:
        fact = f"{_container(container)} requests {_short(asked, 12)} {name} and sets no limit"
        yield Violation(code="BERTH-101", fact=fact, fix=_fix(fact, container, "limits", name, asked), rule=NAME, policies=policies)
    elif asked is not None and not _equal(limit, asked):
        fact = f"{_container(container)} requests {_short(asked, 12)} {name} but its limit is {_short(limit, 12)}"
        side, value = ("requests", limit) if parse(limit) else ("limits", asked)
        fix = _fix(fact, container, side, name, value)
        yield Violation(code="BERTH-101", fact=fact, fix=fix, detail="Devices can't be overcommitted.", rule=NAME, policies=policies)


def _cpu_and_memory(plan: Plan, container: Container) -> Iterator[Violation]:
    for name in ("cpu", "memory"):
        limit, asked = container.limits.get(name), container.requests.get(name)
        try:
            equal = limit is not None and (asked is None or _equal(limit, asked))
        except QuantityError:
            continue  # wrong by Kubernetes' own rules: the API server says so
        if not equal:
            have = f"request {asked or 'none'}, limit {limit or 'none'}"
            fact = f"{_container(container)}: {name} has {have}; GPU pods here must be of QoS class Guaranteed"
            side, value = ("limits", asked) if limit is None else ("requests", limit)
            yield Violation(
                code="BERTH-103",
                fact=fact,
                fix=_fix(fact, container, side, name, value or "an amount"),
                rule=NAME,
                policies=plan.wishes.equal["cpuAndMemory"],
            )
