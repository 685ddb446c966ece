"""Checkpoint grace: a pod that is told to stop has the time to write its checkpoint.

Reads   spec.terminationGracePeriodSeconds, the probes, the annotation berth.dev/opt-out, NodePools' own grace
Writes  spec.terminationGracePeriodSeconds, raised, never lowered: by ``default.gracePeriod`` only 30 or none (a written 30
        can't be told from the API server's own, anything else was written by somebody), by ``require.gracePeriod.min``
        whatever is shorter; the former value as terminationGracePeriodSeconds of liveness and startup probes that have
        none, so that a hung server does not hold its GPU for as long
Judges  ``require.gracePeriod.min`` on validate, of all but DaemonSets and services that opted out; ``require.gracePeriod.max``, of
        the pod and of each probe
Never   raises past the maximum; by default never past what the platform or a Karpenter NodePool grants (there a longer one is
        deleted at drain start)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from policies import duration, refusal
from policies.author import OPT_OUT
from policies.chosen import FLOOR, MOST_TEXT
from policies.plan import Plan
from policies.pod import GRACE, PROBES, dotted, mapping_at
from policies.request import Request
from policies.verdict import Edit, Path, Violation
from policies.wishes import Limit
from policies.wording import cut

NAME = "checkpoint_grace"
DEFAULT = 30
"""what the API server fills in (pkg/apis/core/v1/defaults.go)"""
_PATH: Path = ("spec", GRACE)


def mutate(request: Request, plan: Plan) -> Iterator[Edit]:
    """Raise the pod's grace, then pin the former value on its probes."""
    former = _grace(plan)
    raised = _raised(plan, former)
    if raised is None:
        return
    _say_caps(plan, raised)
    yield Edit(op="add", path=_PATH, value=raised.value, rule=NAME, policies=raised.policies)
    for container in plan.pod.containers:
        for probe in PROBES:
            found = mapping_at(container.raw, probe, container.path)
            if found and found.get(GRACE) is None and former >= 1:
                yield Edit(op="add", path=(*container.path, probe, GRACE), value=former, rule=NAME, policies=raised.policies)


def _grace(plan: Plan) -> int:
    return DEFAULT if plan.pod.grace is None else plan.pod.grace


def _raised(plan: Plan, former: int) -> Limit | None:
    """To what, and who asks: a default that reaches the floor, else the floor; None where the pod's own is left."""
    wish, floor = _default(plan), _floor(plan)
    if former == DEFAULT and wish is not None and (floor is None or wish[0].value >= floor.value):
        for code, text in wish[1]:
            plan.remark(code, text, NAME, wish[0].policies)
        return wish[0] if wish[0].value > former else None
    if floor is None or former >= floor.value:
        return None
    # 30 would pass for the API server's own on a second call, and a default raise it further.
    value = floor.value + (floor.value == DEFAULT and wish is not None and wish[0].value > DEFAULT)
    _say_floor(plan, former, value, floor)
    return Limit(value, floor.policies)


# --- default.gracePeriod -------------------------------------------------------------------------------------------------


def _default(plan: Plan) -> tuple[Limit, list[tuple[str, str]]] | None:
    """What defaults leave 30 raised to, and (code, text) of what cut it."""
    wish, limit = plan.wishes.grace, plan.wishes.grace_max
    if wish is None or plan.author.opt_out_grace:
        return None
    seconds, said = wish.value, []
    if limit is not None and limit.value < seconds:
        said.append(("BERTH-203", f"default gracePeriod {seconds} s is clipped to the maximum {limit.value} s"))
        seconds = limit.value
    granted = _granted(plan)
    if granted is not None and granted[0] < seconds:
        said.append(("BERTH-211", f"grace {seconds} s is cut to {granted[0]} s: {granted[1]} grants no more"))
        seconds = granted[0]
    pool = _shortest_pool(plan)
    if pool is not None and pool[0] < seconds:
        said.append(("BERTH-211", f"grace {seconds} s is cut to {pool[0]} s: {_of_pool(pool[1])}"))
        seconds = pool[0]
    return Limit(seconds, wish.policies), said


def _granted(plan: Plan) -> tuple[int, str] | None:
    """The most that is granted wherever the pod may land, and by what; None where some platform has no limit, or none is known. A spot
    notice is none: whatever else stops a pod there waits for its grace."""
    caps = [cap for cap in plan.snapshot.catalog.grace_caps if cap.capacity is None]
    granted = [min(((cap.seconds, cap.name) for cap in caps if name in cap.platforms), default=None) for name in _platforms(plan)]
    known = [one for one in granted if one is not None]
    return max(known) if known and len(known) == len(granted) else None


def _platforms(plan: Plan) -> Collection[str]:
    """Where the pod may land, as far as it is known; all in force where nothing is, none where nobody knows which are."""
    if not plan.snapshot.placed:
        return ()
    if len(plan.snapshot.tables) == 1 or not plan.space.wanted:
        return plan.snapshot.tables
    return {cell.platform for cell in plan.space.cells if plan.space.leaves(cell, plan.inside)} or plan.snapshot.tables


def _shortest_pool(plan: Plan) -> tuple[int, str] | None:
    """(seconds, name) of the NodePools that the pod may land on: the one it names, or the chosen template's, else all that may make GPU
    nodes; None where none has a limit."""
    pools = dict(plan.snapshot.cluster.nodepool_grace)
    labels = dict(plan.template.template.labels) if plan.template is not None else {}
    named = {labels.get("karpenter.sh/nodepool")}
    named |= {v for term in plan.terms for said in term.said if said.key == "karpenter.sh/nodepool" for v in said.values}
    here = named & pools.keys() or pools.keys() - plan.snapshot.pools_without_gpus
    return min(((grace, name) for name, grace in pools.items() if name in here and grace is not None), default=None)


def _of_pool(name: str) -> str:
    return f"NodePool {name} ends a node after its terminationGracePeriod, and deletes a pod that asks for more when draining starts"


def _say_caps(plan: Plan, raised: Limit) -> None:
    """Say which interruption gives less time: only those of a capacity that the pod may get. A floor is written past the platform's and a
    NodePool's grant too."""
    seconds, policies, platforms = raised.value, raised.policies, _platforms(plan)
    for cap in plan.snapshot.catalog.grace_caps:
        if seconds <= cap.seconds or not any(name in platforms for name in cap.platforms):
            continue
        if cap.capacity == "spot" and not plan.spot:
            continue
        plan.remark("BERTH-211", f"grace {seconds} s is set, but {cap.name} gives {cap.seconds} s", NAME, policies)
    pool = _shortest_pool(plan)
    if pool is not None and pool[0] < seconds:
        plan.remark("BERTH-211", f"grace {seconds} s is set, and {pool[0]} s granted: {_of_pool(pool[1])}", NAME, policies)


# --- require.gracePeriod -------------------------------------------------------------------------------------------------


def _floor(plan: Plan) -> Limit | None:
    """The floor that holds for this pod; None also where a maximum excludes it."""
    floor, limit = plan.wishes.grace_min, plan.wishes.grace_max
    if floor is None or not _held(plan) or (limit is not None and limit.value < floor.value):
        return None
    return floor


def _held(plan: Plan) -> bool:
    """Whether a floor is for this pod: not for a DaemonSet's, nor for a service's whose author opted out."""
    return plan.actor.floor == "yes" or (plan.actor.floor == "opt-out" and not plan.author.opt_out_grace)


def _say_floor(plan: Plan, former: int, seconds: int, floor: Limit) -> None:
    fix = f"write {seconds} or more there"
    if plan.actor.floor == "opt-out":
        fix += f", or annotate the pod {OPT_OUT}: grace"
    elif plan.author.opt_out_grace:
        fix += f"; {OPT_OUT}: grace is for services alone"
    text = f"{dotted(_PATH)} {former} is raised to {seconds}: at least {floor.value} is required here; {fix}"
    plan.remark(FLOOR, f"{text} (asked by {', '.join(floor.policies)})", NAME, floor.policies)


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """A grace below the minimum that was not raised, or above the maximum: the pod's, or a probe's own, which counts instead of it where
    the probe fails (KEP-2238). A probe's own is held to the maximum alone: a server that hangs writes no checkpoint."""
    limit, grace = plan.wishes.grace_max, plan.pod.grace
    yield from (v for v in plan.violations if v.rule == NAME)
    yield from _below(request, plan)
    if limit is None:
        return
    if grace is not None and grace > max(limit.value, DEFAULT if _defaulted(plan) else 0):
        yield _too_long(_PATH, grace, limit, f'The annotation {OPT_OUT}: "grace" only stops Berth from raising it.')
    for path, own in _of_probes(plan):
        if own > limit.value:
            yield _too_long(path, own, limit)


def _below(request: Request, plan: Plan) -> Iterator[Violation]:
    floor, limit = plan.wishes.grace_min, plan.wishes.grace_max
    if floor is None or not _held(plan):
        return
    if limit is not None and limit.value < floor.value:
        yield _conflict(floor, limit)
    elif request.phase == "validate" and _grace(plan) < floor.value:
        yield _too_short(plan, floor)


def _conflict(floor: Limit, limit: Limit) -> Violation:
    least, most = f"gracePeriod.min {duration.text(floor.value)}", f"gracePeriod.max {duration.text(limit.value)}"
    one, other = (cut(names[0].rpartition("/")[2], MOST_TEXT // 2) for names in (floor.policies, limit.policies))
    return Violation(
        code="BERTH-133",
        fact=f"{one} ({least}) and {other} ({most}) leave no grace period: this is a policy conflict, not your pod",
        fix="ask the platform team to mend it",
        detail=f"Required: {floor.policies[0]} spec.require.{least} and {limit.policies[0]} spec.require.{most}.",
        rule=NAME,
        policies=tuple(sorted({*floor.policies, *limit.policies})),
    )


def _too_short(plan: Plan, floor: Limit) -> Violation:
    service = f" A service may opt out: {OPT_OUT}: grace." if plan.actor.floor == "opt-out" else ""
    return Violation(
        code="BERTH-133",
        fact=f"{dotted(_PATH)} is {_grace(plan)}, below the minimum of {floor.value} s here",
        fix=f"set {dotted(_PATH)} to at least {floor.value}",
        detail=f"{refusal.likely(plan, NAME, 'another webhook lowered what Berth wrote')}{service}",
        rule=NAME,
        policies=floor.policies,
    )


def _of_probes(plan: Plan) -> Iterator[tuple[Path, int]]:
    """Where a probe has a grace of its own, and how long."""
    for container in plan.pod.containers:
        for probe in PROBES:
            own = mapping_at(container.raw, probe, container.path).get(GRACE)
            if isinstance(own, int) and not isinstance(own, bool):
                yield (*container.path, probe, GRACE), own


def _too_long(path: Path, seconds: int, limit: Limit, detail: str = "") -> Violation:
    return Violation(
        code="BERTH-141",
        fact=f"{dotted(path)} is {seconds}, above the maximum of {limit.value} s here",
        fix=f"set {dotted(path)} to at most {limit.value}" if len(path) == 2 else f"set it to at most {limit.value}, or remove it",
        detail=detail,
        rule=NAME,
        policies=limit.policies,
    )


def _defaulted(plan: Plan) -> bool:
    """A maximum below 30 s can't be meant for pods whose author wrote nothing: 30 may be the API server's own."""
    return plan.pod.grace == DEFAULT
