"""Checkpoint grace: a pod that is being stopped has the time to write its checkpoint.

Reads   spec.terminationGracePeriodSeconds, the probes, the annotation berth.dev/opt-out, and the grace of
        Karpenter NodePools
Writes  spec.terminationGracePeriodSeconds, raised, never lowered: ``default.gracePeriod`` only raises 30 or
        an absent value (a written 30 looks like the API server's default; any other was chosen by somebody),
        ``require.gracePeriod.min`` any shorter one. The former value is written as
        terminationGracePeriodSeconds of liveness and startup probes that have none, so that a hung server
        does not hold its GPU for as long
Checks  ``require.gracePeriod.min`` on validate, except for DaemonSets and services that opted out;
        ``require.gracePeriod.max``, of the pod and of each probe
Never   raises past the maximum; a default also not past what the platform or a Karpenter NodePool grants (the
        latter deletes a pod with a longer grace at the start of the drain)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kube import duration
from kube.pod import GRACE, PROBES, mapping_at
from kube.tree import Path
from policies.fixes import write, write_or_leave_out
from policies.messages import At, Phrase, cut_text, phrase
from policies.offers.merging import TightestLimit
from policies.planning.defaults import may_be_spot
from policies.planning.plan import Plan, speaks
from policies.planning.requirement_words import explain_missing
from policies.pods.annotations import OPT_OUT
from policies.request import Request
from policies.verdict import Edit, Remark, Violation, at_field

NAME = "checkpoint_grace"
CUT, FLOOR = "BERTH-211", "BERTH-222"
DEFAULT = 30
"""Seconds; the API server's default (pkg/apis/core/v1/defaults.go)."""
_MOST_NAME = 24
"""The most characters of a policy's name in a fact, so that what to type stands within the first 200."""
_MIN, _MAX = "spec.require.gracePeriod.min", "spec.require.gracePeriod.max"
_PATH: Path = ("spec", GRACE)


def mutate(request: Request, plan: Plan) -> Iterator[Edit | Remark]:
    """Raise the pod's grace, then write the former value to its probes."""
    former = _grace(plan)
    raised, remarks = _raised(plan, former)
    yield from remarks
    if raised is None:
        if former > DEFAULT and _is_admitted(plan, former):
            yield from _caps(plan, TightestLimit(former, ()), path=_PATH)
        return
    yield from _caps(plan, raised)
    yield Edit(op="add", path=_PATH, value=raised.value, rule=NAME, policies=raised.policies)
    for container in plan.pod.containers:
        for probe in PROBES:
            found = mapping_at(container.raw, probe, container.path)
            if found and found.get(GRACE) is None and former >= 1:
                yield Edit(op="add", path=(*container.path, probe, GRACE), value=former, rule=NAME, policies=raised.policies)


def _is_admitted(plan: Plan, seconds: int) -> bool:
    """Return whether policies say something of grace periods, and do not deny this one (BERTH-141)."""
    settings = plan.settings
    if settings.grace_max is not None:
        return seconds <= settings.grace_max.value
    return settings.grace is not None or settings.grace_min is not None


def _grace(plan: Plan) -> int:
    return DEFAULT if plan.pod.grace is None else plan.pod.grace


def _raised(plan: Plan, former: int) -> tuple[TightestLimit | None, list[Remark]]:
    """Return the value to raise to, with its policies, and the remarks on it: a default that reaches the
    floor, else the floor. None: the pod's own value stays."""
    default, floor = _default(plan), _floor(plan)
    if former == DEFAULT and default is not None and (floor is None or default[0].value >= floor.value):
        return default[0] if default[0].value > former else None, default[1]
    if floor is None or former >= floor.value:
        return None, []
    # 30 would pass for the API server's own on a second call, and a default raise it further.
    value = floor.value + (floor.value == DEFAULT and default is not None and default[0].value > DEFAULT)
    return TightestLimit(value, floor.policies), [_to_floor(plan, former, value, floor)]


# --- default.gracePeriod -------------------------------------------------------------------------------------------------


def _default(plan: Plan) -> tuple[TightestLimit, list[Remark]] | None:
    """Return the value to which defaults raise 30, after all limits, and the remarks on what limited it."""
    default, limit = plan.settings.grace, plan.settings.grace_max
    if default is None or plan.author.opt_out_grace:
        return None
    seconds, cuts = default.value, []
    if limit is not None and limit.value < seconds:
        cuts.append(("BERTH-203", phrase("grace", seconds=seconds, most=limit.value)))
        seconds = limit.value
    granted = _granted(plan)
    if granted is not None and granted[0] < seconds:
        cuts.append((CUT, phrase("cut", seconds=seconds, most=granted[0], by=granted[1])))
        seconds = granted[0]
    pool = _shortest_pool(plan)
    if pool is not None and pool[0] < seconds:
        cuts.append((CUT, phrase("cut by pool", seconds=seconds, most=pool[0], pool=pool[1])))
        seconds = pool[0]
    return TightestLimit(seconds, default.policies), [
        Remark(code=code, found=found, rule=NAME, policies=default.policies) for code, found in cuts
    ]


def _granted(plan: Plan) -> tuple[int, str] | None:
    """Return the longest grace that platforms grant wherever the pod may land, in seconds, and its name. None
    if some platform has no limit or none is known. Spot notices do not count: other interruptions wait for
    the pod's grace even there."""
    caps = [cap for cap in plan.snapshot.catalog.grace_caps if cap.capacity is None]
    granted = [min(((cap.seconds, cap.name) for cap in caps if name in cap.platforms), default=None) for name in _platforms(plan)]
    known = [one for one in granted if one is not None]
    return max(known) if known and len(known) == len(granted) else None


def _platforms(plan: Plan) -> Collection[str]:
    """Return the platforms on which the pod may land: all that are in force if that is unknown; none if no
    platforms are known."""
    if not plan.snapshot.placed:
        return ()
    if len(plan.snapshot.tables) == 1 or not plan.space.wanted:
        return plan.snapshot.tables
    return {cell.platform for cell in plan.space.cells if cell.leaves(plan.inside)} or plan.snapshot.tables


def _shortest_pool(plan: Plan) -> tuple[int, str] | None:
    """Return (seconds, name) of the shortest limit of the NodePools on which the pod may land: the one that
    it or the chosen template names, else all that may make GPU nodes. None if none has a limit."""
    pools = dict(plan.snapshot.cluster.nodepool_grace)
    if not pools:
        return None
    labels = dict(plan.template.template.labels) if plan.template is not None else {}
    named = {labels.get("karpenter.sh/nodepool")}
    named |= {v for term in plan.terms for authored in term.expressions if authored.key == "karpenter.sh/nodepool" for v in authored.values}
    here = named & pools.keys() or pools.keys() - plan.snapshot.pools_without_gpus
    return min(((grace, name) for name, grace in pools.items() if name in here and grace is not None), default=None)


def _caps(plan: Plan, grace: TightestLimit, path: Path = ()) -> Iterator[Remark]:
    """Yield a remark for each interruption that grants less time, among those of capacities that the pod may
    get. A floor is written even past the grant of the platform or of a NodePool. ``path``: that of the author's own value."""
    seconds, policies, platforms = grace.value, grace.policies, _platforms(plan)
    is_spot = bool(plan.spot) or (speaks(plan, plan.snapshot.vocabulary.capacity) and may_be_spot(plan))
    for cap in plan.snapshot.catalog.grace_caps:
        if seconds <= cap.seconds or not any(name in platforms for name in cap.platforms):
            continue
        if cap.capacity == "spot" and not is_spot:
            continue
        fact = phrase("set past platform", seconds=seconds, by=cap.name, most=cap.seconds)
        yield Remark(code=CUT, found=fact, rule=NAME, policies=policies, path=path)
    pool = _shortest_pool(plan)
    if pool is not None and pool[0] < seconds:
        fact = phrase("set past pool", seconds=seconds, most=pool[0], pool=pool[1])
        yield Remark(code=CUT, found=fact, rule=NAME, policies=policies, path=path)


# --- require.gracePeriod -------------------------------------------------------------------------------------------------


def _floor(plan: Plan) -> TightestLimit | None:
    """Return the floor for this pod; None also if a maximum excludes it."""
    floor, limit = plan.settings.grace_min, plan.settings.grace_max
    if floor is None or not _held(plan) or (limit is not None and limit.value < floor.value):
        return None
    return floor


def _held(plan: Plan) -> bool:
    """Return whether floors apply to this pod: not to a DaemonSet's, nor to a service's whose author opted
    out."""
    return plan.actor.floor == "yes" or (plan.actor.floor == "opt-out" and not plan.author.opt_out_grace)


def _to_floor(plan: Plan, former: int, seconds: int, floor: TightestLimit) -> Remark:
    variant = "service" if plan.actor.floor == "opt-out" else "opted out" if plan.author.opt_out_grace else "text"
    amounts = {"former": former, "seconds": seconds, "least": floor.value}
    found = phrase(variant, path=At(_PATH), **amounts, annotation=OPT_OUT, policies=floor.policies)
    return Remark(code=FLOOR, found=found, rule=NAME, policies=floor.policies)


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield a violation for a grace below the minimum that was not raised, or above the maximum. A probe's
    own grace, which replaces the pod's if the probe fails (KEP-2238), is held to the maximum alone: a server
    that hangs writes no checkpoint."""
    limit, grace = plan.settings.grace_max, plan.pod.grace
    yield from _below(request, plan)
    if limit is None:
        return
    # 30 s may be the API server's default, to which no shorter maximum is applied
    if grace is not None and grace > limit.value and grace != DEFAULT:
        yield _too_long(_PATH, grace, limit, phrase("opt out", annotation=OPT_OUT))
    for path, own in _of_probes(plan):
        if own > limit.value:
            yield _too_long(path, own, limit)


def _below(request: Request, plan: Plan) -> Iterator[Violation]:
    floor, limit = plan.settings.grace_min, plan.settings.grace_max
    if floor is None or not _held(plan):
        return
    if limit is not None and limit.value < floor.value:
        yield _conflict(floor, limit)
    elif request.phase == "validate" and _grace(plan) < floor.value:
        yield _too_short(plan, floor)


def _conflict(floor: TightestLimit, limit: TightestLimit) -> Violation:
    bounds = {"least": duration.format_duration(floor.value), "most": duration.format_duration(limit.value)}
    one, other = (cut_text(names[0].rpartition("/")[2], _MOST_NAME) for names in (floor.policies, limit.policies))
    return Violation(
        code="BERTH-133",
        found=phrase("conflict", one=one, other=other, **bounds),
        advice=phrase("fix the policies"),
        more=(phrase("both", one=floor.policies[0], other=limit.policies[0], **bounds),),
        rule=NAME,
        fields=(*at_field(_MIN, floor.policies), *at_field(_MAX, limit.policies)),
    )


def _too_short(plan: Plan, floor: TightestLimit) -> Violation:
    service = [phrase("opt out", annotation=OPT_OUT)] if plan.actor.floor == "opt-out" else []
    return Violation(
        code="BERTH-133",
        found=phrase("fact", path=At(_PATH), seconds=_grace(plan), least=floor.value),
        advice=phrase("fix", path=At(_PATH), least=floor.value),
        more=(explain_missing(plan, NAME), *service),
        rule=NAME,
        path=_PATH,
        fields=at_field(_MIN, floor.policies),
        fixes=write(_PATH, floor.value),
    )


def _of_probes(plan: Plan) -> Iterator[tuple[Path, int]]:
    """Yield the path and the seconds of each probe's own grace."""
    for container in plan.pod.containers:
        for probe in PROBES:
            own = mapping_at(container.raw, probe, container.path).get(GRACE)
            if isinstance(own, int) and not isinstance(own, bool):
                yield (*container.path, probe, GRACE), own


def _too_long(path: Path, seconds: int, limit: TightestLimit, *more: Phrase) -> Violation:
    return Violation(
        code="BERTH-141",
        found=phrase("fact", path=At(path), seconds=seconds, most=limit.value),
        advice=phrase("fix", path=At(path), most=limit.value) if path == _PATH else phrase("of probe", most=limit.value),
        more=more,
        rule=NAME,
        path=path,
        fields=at_field(_MAX, limit.policies),
        fixes=write(path, limit.value) if path == _PATH else write_or_leave_out(path, limit.value),
    )
