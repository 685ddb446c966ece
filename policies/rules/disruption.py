"""Disruption: autoscalers and upgrades leave a protected pod alone.

Reads   metadata.annotations and labels, ``default.protectFor``, ``require.protection.max``
Writes  the catalog's protections for the platforms in use: karpenter.sh/do-not-disrupt (a duration only where Karpenter
        understands it), safe-to-evict "false", CAST AI's, the GPU Operator's driver-upgrade skip label
Judges  ``require.protection.max``: a protection that lasts longer, or for ever; on UPDATE one that is new or lasts longer than before
Never   writes where the author said anything on that key; writes an endless protection where a maximum is in force
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from policies import duration
from policies.catalog import Protection
from policies.plan import Plan
from policies.pod import Pod
from policies.request import Request
from policies.verdict import Edit, Violation
from policies.wishes import FOREVER, Limit
from policies.wording import cut

NAME = "disruption"
_Seconds = Fraction | int


def mutate(request: Request, plan: Plan) -> Iterator[Edit]:
    """One annotation (or label) per platform's way to say it."""
    wish, limit = plan.wishes.protect, plan.wishes.protect_max
    if wish is None:
        return
    seconds = min(wish.value, limit.value) if limit is not None else wish.value
    for protection in _here(plan):
        if protection.key in _written(plan.pod, protection):
            continue
        value = _value(plan, protection, seconds)
        if value is None:
            assert limit is not None
            most = f"at most {duration.text(limit.value)} of protection is allowed"
            plan.remark("BERTH-212", f"{protection.key} is not written: it knows no duration here, and {most}", NAME, wish.policies)
            continue
        yield Edit(op="add", path=("metadata", protection.where, protection.key), value=value, rule=NAME, policies=wish.policies)


def _here(plan: Plan) -> Iterator[Protection]:
    """The protections of the platforms in use; all of them where the platforms are not known."""
    for protection in plan.snapshot.catalog.protections:
        here = not protection.platforms or not plan.snapshot.placed or any(p in plan.snapshot.tables for p in protection.platforms)
        if here and not protection.only_judged:
            yield protection


def _written(pod: Pod, protection: Protection) -> Mapping[str, object]:
    return pod.annotations if protection.where == "annotations" else pod.labels


def _value(plan: Plan, protection: Protection, seconds: int) -> str | None:
    """The value to write; None where only an endless one could be, and a maximum is in force."""
    if _knows_durations(plan, protection) and seconds < FOREVER:
        return duration.text(seconds)
    return protection.value if plan.wishes.protect_max is None else None


def _knows_durations(plan: Plan, protection: Protection) -> bool:
    """Whether a platform in use reads a duration in it."""
    catalog, tables = plan.snapshot.catalog, plan.snapshot.tables
    return protection.durations and any(catalog.platforms[p].protect_durations for p in protection.platforms if p in tables)


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """A protection that lasts longer than the maximum."""
    yield from _too_long(plan, {})


def check_update(request: Request, plan: Plan) -> Iterator[Violation]:
    """The same of those that the old pod lacks, or that last longer than they did."""
    old = Pod(request.old_pod or {})
    yield from _too_long(plan, {p: _standing_for(old, p) for p in plan.snapshot.catalog.protections})


def _too_long(plan: Plan, before: Mapping[Protection, _Seconds]) -> Iterator[Violation]:
    limit = plan.wishes.protect_max
    for protection in plan.snapshot.catalog.protections if limit is not None else ():
        seconds = _standing_for(plan.pod, protection)
        if limit is not None and seconds > max(limit.value, before.get(protection, 0)):
            yield _violation(plan, protection, limit)


def _standing_for(pod: Pod, protection: Protection) -> _Seconds:
    """Seconds that the pod is protected for in this way; 0 if it is not."""
    value = _written(pod, protection).get(protection.key)
    return 0 if value is None else lasts(protection, str(value))


def lasts(protection: Protection, value: str) -> _Seconds:
    """Seconds that this value protects for; 0 if whoever reads it certainly ignores it.

    Karpenter (pkg/utils/pod/scheduling.go, 1.14) compares with "true", then reads a duration above zero; Cluster Autoscaler
    (utils/drain/drain.go) and the GPU Operator's selector compare the text. How a closed program compares is not known.
    """
    if value == protection.value or (protection.any_value and value.strip().lower() not in _FALSE):
        return FOREVER
    return max(duration.read(value) or 0, 0) if protection.durations else 0


_FALSE = ("", "0", "f", "false", "no", "off", "n")
"""what no program takes for true"""
_SHOWN = 20
"""characters of a value that a message repeats"""


def _violation(plan: Plan, protection: Protection, limit: Limit) -> Violation:
    value = str(_written(plan.pod, protection)[protection.key])
    shown = cut(value, _SHOWN)
    path = f'metadata.{protection.where}["{protection.key}"]'
    fix = f'set it to "{duration.text(limit.value)}" or remove it' if _knows_durations(plan, protection) else "remove it"
    return Violation(
        code="BERTH-142",
        fact=f'{path} is "{shown}", which protects for longer than the maximum of {duration.text(limit.value)} here',
        fix=fix,
        rule=NAME,
        policies=limit.policies,
    )
