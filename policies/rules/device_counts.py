"""Device counts: how many, of what, under which name.

Reads   the resource names and amounts of every container, readable resource claims
Writes  nothing
Judges  ``gpusPerPod``, by the most that it may be; fractions and devices of no known class under what is required of machines and
        sharing; a whole GPU and a MIG slice in one container; a resource name that is a listed misspelling (the API server stores
        nvdia.com/gpu, and the pod waits for ever); a slice that no model has
Never   takes what can't be read for nothing
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from policies import lookalikes, refusal
from policies.actor import FRACTION_DEVICES, is_fraction
from policies.compiled import who
from policies.count import NONE, Count, of_amounts
from policies.plan import Plan
from policies.pod import Container, asks, dotted
from policies.policy import Sharing
from policies.request import Request
from policies.slice_names import MOST_SAID, nearest_slice
from policies.verdict import Edit, Path, Violation
from policies.wishes import Limit, Wishes

NAME = "device_counts"


def mutate(request: Request, plan: Plan) -> Iterator[Edit]:
    """This rule edits nothing."""
    yield from ()


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """Each count or name that can't be right."""
    yield from _per_pod(plan)
    yield from _shared(plan)
    yield from _of_no_known_class(plan)
    yield from _mixed(plan)
    yield from _misspelt(plan)
    yield from _no_such_slice(plan)


UNCOUNTED = "BERTH-118"


def _per_pod(plan: Plan) -> Iterator[Violation]:
    wishes, count = plan.wishes, plan.devices.whole(plan.snapshot.catalog)
    if wishes.gpus_max is None and wishes.one_of is None:
        return
    if wishes.gpus_max is not None and count.least > wishes.gpus_max.value:
        yield _above(count, wishes.gpus_max)
    elif count.most is None:
        yield _uncounted(plan, (*(wishes.gpus_max.policies if wishes.gpus_max else ()), *wishes.one_of_by))
    elif wishes.gpus_max is not None and count.most > wishes.gpus_max.value:
        yield _above(count, wishes.gpus_max)
    elif wishes.one_of is not None and not _all_allowed(count, count.most, wishes.one_of):
        yield _none_of(count, wishes)


def _all_allowed(count: Count, most: int, allowed: Collection[int]) -> bool:
    """Whether every number that it may be is allowed, none apart. What lies between is possible too: ``firstAvailable`` may list it."""
    least = max(count.least, 1)
    return most - least < len(allowed) and all(number in allowed for number in range(least, most + 1))


def _above(count: Count, limit: Limit) -> Violation:
    fact = f"the pod asks for {count} GPUs, more than the {limit.value} allowed here"
    fix = f"ask for at most {limit.value}, or split the work over more pods"
    return Violation(code="BERTH-111", fact=fact, fix=fix, rule=NAME, policies=limit.policies)


def _none_of(count: Count, wishes: Wishes) -> Violation:
    allowed = [n for n in wishes.one_of or () if wishes.gpus_max is None or n <= wishes.gpus_max.value]
    more = next((n for n in allowed if n > count.least), max(allowed, default=0))
    fact = f"the pod asks for {count} GPUs; allowed here: {', '.join(map(str, allowed)) or 'none, the policies contradict each other'}"
    fix = f"ask for {more}" if more else "ask the platform team to mend the policies"
    return Violation(code="BERTH-112", fact=fact, fix=fix, rule=NAME, policies=wishes.one_of_by)


def _uncounted(plan: Plan, policies: Iterable[str]) -> Violation:
    """Nobody can say how many, and there is a limit: the worst is taken."""
    fact, fix = _what_is_open(plan)
    who = tuple(sorted(set(policies)))
    return Violation(code=UNCOUNTED, fact=f"{fact}, and GPUs are limited here", fix=fix, rule=NAME, policies=who)


def _what_is_open(plan: Plan) -> tuple[str, str]:
    """The first thing that can't be counted, and what to write instead."""
    for asked in plan.asked:
        if lookalikes.is_part(asked.resource):
            fact = f'container "{asked.containers[0].name}": {asked.resource.name} asks for a part of devices, of nobody knows how many'
            return fact, "ask for devices by a resource name that is known here"
        if asked.count.most is None:
            container = next((c for c in asked.containers if _unreadable(c, asked.resource.name)), asked.containers[0])
            path = dotted((*container.path, "resources", "limits", asked.resource.name))
            return f'container "{container.name}": the amount of {asked.resource.name} can\'t be read', f"set {path} to a whole number"
    for claim in plan.devices.claimed:
        if not claim.found:
            return f'{claim.kind} "{claim.name}" is not there', "create the claim first"
        if claim.count.most is None:
            return f'{claim.kind} "{claim.name}" asks for all devices, or a number that can\'t be read', (
                "ask for a count, with allocationMode ExactCount"
            )
    return f'metadata.annotations["{FRACTION_DEVICES}"] is no number', "write a whole number"


def _unreadable(container: Container, name: str) -> bool:
    return of_amounts(container.limits.get(name), container.requests.get(name)).most is None


def _shared(plan: Plan) -> Iterator[Violation]:
    """What is no whole device, or shares one, where every policy that speaks of sharing must admit it."""
    found = dict.fromkeys(_ways(plan))
    for way, words in found:
        policies = tuple(c.policy.id for c in plan.policies if c.policy.require.sharing and way not in c.policy.require.sharing)
        if policies:
            yield Violation(
                code="BERTH-117",
                fact=f"{words}: it counts as {way}, and only {' or '.join(_admitted(plan))} is allowed here",
                fix="ask for a whole GPU",
                rule=NAME,
                policies=policies,
            )


def _admitted(plan: Plan) -> list[str]:
    """What every policy that speaks of sharing admits, else what the first does."""
    said = [c.policy.require.sharing for c in plan.policies if c.policy.require.sharing]
    return [way for way in said[0] if all(way in other for other in said)] or list(said[0])


def _ways(plan: Plan) -> Iterator[tuple[Sharing, str]]:
    """How the pod shares devices where no table of offers tells: fractions, names that no table lists, and those of a pod that is on a node
    already or fits none by the tables: one whose slices somebody has cut by hand takes it all the same."""
    if plan.devices.fraction != NONE or is_fraction(plan.pod):
        yield "TimeSliced", "the pod asks for a fraction of a GPU"
    cells = plan.space.cells
    if cells and all(cell.renamed and cell.cut is not None for cell in cells):
        yield "MIG", f"{cells[0].cut} names GPUs that are cut into slices"
    for asked in plan.asked:
        resource = asked.resource
        if plan.snapshot.lists(resource.name) and plan.actor.affinity != "no" and plan.space.possible_anywhere():
            continue
        if resource.kind in ("shared", "part"):
            yield "TimeSliced", f"the pod asks for {resource.name}{', a part of a device' if resource.kind == 'part' else ''}"
        elif not resource.vendor:
            yield "TimeSliced", f"nobody knows how {resource.name} is shared"
        elif resource.kind == "mig" or (resource.parts is not None and min(resource.parts) > 1):
            yield "MIG", f"the pod asks for {resource.name}"


def _of_no_known_class(plan: Plan) -> Iterator[Violation]:
    """A device of a class that nobody knows, or of a claim that is not there, is inside no ``in`` and outside no ``notIn``."""
    unknown = next(_unknown_classes(plan), None)
    demands = [c for c in plan.constraints if c.axis == "machine"]
    if unknown is not None and demands:
        fact, fix = unknown
        fact = f"{fact}, and {refusal.joined(demands)} is required here"
        yield Violation(code="BERTH-126", fact=fact, fix=fix, detail=refusal.required(demands), rule=NAME, policies=who(demands))


def _unknown_classes(plan: Plan) -> Iterator[tuple[str, str]]:
    for asked in plan.asked:
        if asked.resource.vendor == "":
            yield f"nobody knows what devices {asked.resource.name} stands for", "ask for GPUs by a resource name that is known here"
    for claim in plan.devices.claimed:
        if not claim.found:
            yield f'{claim.kind} "{claim.name}" is not there', "create the claim first"
        elif "" in claim.vendors:
            yield f'{claim.kind} "{claim.name}" names a DeviceClass of no known driver', "name a class of a known driver"


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
        fix = f"write {near}{name.removeprefix(plain)}" if near else "see `berth gpus` for the slices that exist"
        fact = f'container "{asked.containers[0].name}" asks for {name}, a slice that no GPU model has'
        yield Violation(code="BERTH-115", fact=fact, fix=fix, rule=NAME, policies=policies)
