"""Device counts: how many, of what, under which name.

Reads   the resource names and amounts of every container, readable resource claims
Writes  nothing
Judges  ``gpusPerPod``; a whole GPU and a MIG slice in one container; a resource name that is a listed misspelling (the
        API server stores nvdia.com/gpu, and the pod waits for ever); a slice that no model has
Never   judges a count that it can't read
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from policies.nearest import nearest
from policies.plan import WHOLE, Plan, claimed, devices
from policies.pod import asks, dotted
from policies.request import Request
from policies.verdict import Edit, Path, Violation

NAME = "device_counts"


def mutate(request: Request, plan: Plan) -> Iterator[Edit]:
    """This rule edits nothing."""
    yield from ()


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """Each count or name that can't be right."""
    yield from _per_pod(plan)
    yield from _mixed(plan)
    yield from _misspelt(plan)
    yield from _no_such_slice(plan)


def _per_pod(plan: Plan) -> Iterator[Violation]:
    wishes = plan.wishes
    count = devices(plan.asked, list(claimed(plan.pod, plan.facts)), WHOLE)
    if not count:
        return
    if wishes.gpus_max is not None and count > wishes.gpus_max.value:
        most = wishes.gpus_max.value
        fact, fix = (
            f"the pod asks for {count} GPUs, more than the {most} allowed here",
            f"ask for at most {most}, or split the work over more pods",
        )
        yield Violation(code="BERTH-111", fact=fact, fix=fix, rule=NAME, policies=wishes.gpus_max.policies)
    elif wishes.one_of is not None and count not in wishes.one_of:
        allowed = [n for n in wishes.one_of if wishes.gpus_max is None or n <= wishes.gpus_max.value]
        more = next((n for n in allowed if n > count), max(allowed, default=0))
        fact = f"the pod asks for {count} GPUs; allowed here: {', '.join(map(str, allowed)) or 'none, the policies contradict each other'}"
        fix = f"ask for {more}" if more else "ask the platform team to mend the policies"
        yield Violation(code="BERTH-112", fact=fact, fix=fix, rule=NAME, policies=wishes.one_of_by)


def _mixed(plan: Plan) -> Iterator[Violation]:
    policies = tuple(c.policy.id for c in plan.policies)
    asked: dict[Path, dict[str, str]] = {}
    for one in plan.asked:
        for container in one.containers:
            asked.setdefault(container.path, {})[one.resource.kind] = one.resource.name
    for container in plan.pod.containers:
        kinds = asked.get(container.path, {})
        if "gpu" in kinds and "mig" in kinds:
            both = f"{kinds['gpu']} and {kinds['mig']}"
            yield Violation(
                code="BERTH-113",
                fact=f'container "{container.name}" asks for {both} at once, which no container can use together',
                fix=f"remove one of the two from {dotted((*container.path, 'resources'))}",
                rule=NAME,
                policies=policies,
            )


def _misspelt(plan: Plan) -> Iterator[Violation]:
    policies = tuple(c.policy.id for c in plan.policies)
    for container in plan.pod.containers:
        for name in container.resource_names:
            right = plan.snapshot.catalog.misspellings.get(name)
            if right is not None and asks(container, name):
                yield Violation(
                    code="BERTH-114",
                    fact=f'container "{container.name}" asks for {name}, a resource that no node has',
                    fix=f"write {right}",
                    rule=NAME,
                    policies=policies,
                )


_MOST_HINTS = 5
"""wrong slices of one pod whose nearest right name is looked for, at a millisecond each"""


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
        near = _nearest_slice(plain, profiles) if hints <= _MOST_HINTS else None
        fix = f"write {near}{name.removeprefix(plain)}" if near else "see `berth gpus` for the slices that exist"
        fact = f'container "{asked.containers[0].name}" asks for {name}, a slice that no GPU model has'
        yield Violation(code="BERTH-115", fact=fact, fix=fix, rule=NAME, policies=policies)


_SIZE = re.compile(r"nvidia\.com/mig-(\d+g)\.(\d+)gb")


def _nearest_slice(name: str, known: Iterable[str]) -> str | None:
    """The slice of as much compute whose memory is nearest (3g.70gb: 3g.71gb), else the nearest name."""
    known = list(known)
    asked = _SIZE.fullmatch(name)
    sizes = [m for one in known if asked is not None and (m := _SIZE.fullmatch(one)) and m[1] == asked[1]]
    if asked is None or not sizes:
        return nearest(name, known)
    return min(sizes, key=lambda m: (abs(int(m[2]) - int(asked[2])), m[0]))[0]
