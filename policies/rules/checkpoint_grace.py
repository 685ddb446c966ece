"""Checkpoint grace: a pod that is told to stop has the time to write its checkpoint.

Reads   spec.terminationGracePeriodSeconds, the probes, the annotation berth.dev/opt-out, NodePools' own grace
Writes  spec.terminationGracePeriodSeconds, raised, never lowered (a written 30 can't be told from the default); the
        former value as terminationGracePeriodSeconds of liveness and startup probes that have none, so that a hung
        server does not hold its GPU for as long
Judges  ``require.gracePeriod.max``, of the pod and of each probe
Never   raises past the maximum, or past what a Karpenter NodePool grants (a longer one is deleted at drain start)
"""

from __future__ import annotations

from collections.abc import Iterator

from policies.author import OPT_OUT
from policies.plan import Plan
from policies.pod import GRACE, PROBES, dotted, mapping_at
from policies.request import Request
from policies.verdict import Edit, Path, Violation
from policies.wishes import Limit

NAME = "checkpoint_grace"
DEFAULT = 30
"""what the API server fills in (pkg/apis/core/v1/defaults.go)"""


def mutate(request: Request, plan: Plan) -> Iterator[Edit]:
    """Raise the pod's grace, then pin the former value on its probes."""
    former = DEFAULT if plan.pod.grace is None else plan.pod.grace
    wish = plan.wishes.grace
    if wish is None or plan.author.opt_out_grace:
        return
    seconds = _capped(plan, wish.value)
    if former >= seconds or former < 0:
        return
    _say_caps(plan, seconds, wish.policies)
    yield Edit(op="add", path=("spec", GRACE), value=seconds, rule=NAME, policies=wish.policies)
    for container in plan.pod.containers:
        for probe in PROBES:
            found = mapping_at(container.raw, probe, container.path)
            if found and found.get(GRACE) is None and former >= 1:
                yield Edit(op="add", path=(*container.path, probe, GRACE), value=former, rule=NAME, policies=wish.policies)


def _capped(plan: Plan, seconds: int) -> int:
    wishes = plan.wishes
    assert wishes.grace is not None
    if wishes.grace_max is not None and wishes.grace_max.value < seconds:
        plan.remark(
            "BERTH-203",
            f"default gracePeriod {seconds} s is clipped to the maximum {wishes.grace_max.value} s",
            NAME,
            wishes.grace.policies,
        )
        seconds = wishes.grace_max.value
    pools = {name: grace for name, grace in _pools(plan).items() if grace is not None and grace < seconds}
    if pools:
        name = min(pools, key=lambda n: (pools[n] or 0, n))
        plan.remark(
            "BERTH-211", f"grace {seconds} s is cut to {pools[name]} s: NodePool {name} ends a node after its terminationGracePeriod, and "
            "deletes a pod that asks for more when draining starts", NAME, wishes.grace.policies,
        )  # fmt: skip
        seconds = pools[name] or 0
    return seconds


def _pools(plan: Plan) -> dict[str, int | None]:
    """The NodePools that the pod may land on: the one it names, or the chosen template's, else all that may make GPU nodes."""
    pools = dict(plan.snapshot.cluster.nodepool_grace)
    labels = dict(plan.template.template.labels) if plan.template is not None else {}
    named = {labels.get("karpenter.sh/nodepool")}
    named |= {v for term in plan.terms for said in term.said if said.key == "karpenter.sh/nodepool" for v in said.values}
    if named & pools.keys():
        return {name: grace for name, grace in pools.items() if name in named}
    return {name: grace for name, grace in pools.items() if name not in plan.snapshot.pools_without_gpus}


def _say_caps(plan: Plan, seconds: int, policies: tuple[str, ...]) -> None:
    """Say which interruption gives less time: only those of a capacity that the pod may get."""
    for cap in plan.snapshot.catalog.grace_caps:
        if seconds <= cap.seconds or not any(name in plan.snapshot.tables for name in cap.platforms) or not plan.snapshot.placed:
            continue
        if cap.capacity == "spot" and not plan.spot:
            continue
        plan.remark("BERTH-211", f"grace {seconds} s is set, but {cap.name} gives {cap.seconds} s", NAME, policies)


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """A grace above the maximum: the pod's, or a probe's own, which counts instead of it where the probe fails (KEP-2238)."""
    limit, grace = plan.wishes.grace_max, plan.pod.grace
    yield from (v for v in plan.violations if v.rule == NAME)
    if limit is None:
        return
    if grace is not None and grace > max(limit.value, DEFAULT if _defaulted(plan) else 0):
        yield _too_long(("spec", GRACE), grace, limit, f'The annotation {OPT_OUT}: "grace" only stops Berth from raising it.')
    for path, own in _of_probes(plan):
        if own > limit.value:
            yield _too_long(path, own, limit)


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
