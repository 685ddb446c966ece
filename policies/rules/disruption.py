"""Disruption: autoscalers and upgrades leave a protected pod alone.

Reads   metadata.annotations and labels, ``default.protectFor``, ``require.protection.max``
Writes  the catalog's protections for the platforms in use: karpenter.sh/do-not-disrupt (a duration only where Karpenter
        understands it), safe-to-evict "false", CAST AI's, the GPU Operator's driver-upgrade skip label
Judges  ``require.protection.max``: a protection that lasts longer, or for ever
Never   writes where the author said anything on that key; writes an endless protection where a maximum is in force
"""

from __future__ import annotations

from collections.abc import Iterator

from policies import duration
from policies.catalog import Protection
from policies.plan import Plan
from policies.request import Request
from policies.verdict import Edit, Violation
from policies.wishes import FOREVER, Limit

NAME = "disruption"


def mutate(request: Request, plan: Plan) -> Iterator[Edit]:
    """One annotation (or label) per platform's way to say it."""
    wish, limit = plan.wishes.protect, plan.wishes.protect_max
    if wish is None:
        return
    seconds = min(wish.value, limit.value) if limit is not None else wish.value
    for protection in _here(plan):
        if protection.key in _standing(plan, protection):
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
        if not protection.platforms or not plan.snapshot.placed or any(p in plan.snapshot.tables for p in protection.platforms):
            yield protection


def _standing(plan: Plan, protection: Protection) -> dict[str, str]:
    return plan.pod.annotations if protection.where == "annotations" else plan.pod.labels


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
    limit = plan.wishes.protect_max
    if limit is None:
        return
    for protection in plan.snapshot.catalog.protections:
        standing = _standing(plan, protection).get(protection.key)
        lasts = None if standing is None else _lasts(protection, str(standing))
        if lasts is not None and lasts > limit.value:
            yield _too_long(plan, protection, str(standing), limit)


def _lasts(protection: Protection, value: str) -> int | None:
    """Seconds that this value protects for; None if it does not protect."""
    if value == protection.value:
        return FOREVER
    return duration.read(value) if protection.durations else None


def _too_long(plan: Plan, protection: Protection, value: str, limit: Limit) -> Violation:
    path = f'metadata.{protection.where}["{protection.key}"]'
    fix = f'set it to "{duration.text(limit.value)}" or remove it' if _knows_durations(plan, protection) else "remove it"
    return Violation(
        code="BERTH-142",
        fact=f'{path} is "{value}", which protects for longer than the maximum of {duration.text(limit.value)} here',
        fix=fix,
        rule=NAME,
        policies=limit.policies,
    )
