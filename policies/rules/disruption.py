"""Disruption: autoscalers and upgrades do not evict a protected pod.

Reads   metadata.annotations and labels, ``default.protectFor``, ``require.protection.max``
Writes  the catalog's protections for the platforms in use: karpenter.sh/do-not-disrupt (a duration only where
        Karpenter understands it), safe-to-evict "false", CAST AI's, the GPU Operator's driver-upgrade skip
        label
Checks  ``require.protection.max``: a protection that lasts longer, or for ever; on UPDATE one that is new or
        lasts longer than before
Never   writes a key that the author has set; never writes an endless protection where a maximum is in force
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from catalog import Protection
from kube import duration
from kube.pod import Pod
from kube.tree import Path
from policies.fixes import write_or_leave_out
from policies.messages import At, cut_text, phrase
from policies.offers.merging import TightestLimit
from policies.planning.plan import Plan
from policies.planning.requirements import FOREVER
from policies.request import Request
from policies.verdict import Edit, Remark, Violation, at_field

NAME = "disruption"
_Seconds = Fraction | int


def mutate(request: Request, plan: Plan) -> Iterator[Edit | Remark]:
    """Yield one annotation or label for each way in which the platforms in use mark a protected pod."""
    default, limit = plan.settings.protect, plan.settings.protect_max
    if default is None:
        return
    seconds = min(default.value, limit.value) if limit is not None else default.value
    for protection in _here(plan):
        if protection.key in _written(plan.pod, protection):
            continue
        value = _value(plan, protection, seconds)
        if value is None:
            assert limit is not None
            found = phrase("text", key=protection.key, most=duration.format_duration(limit.value))
            yield Remark(code="BERTH-212", found=found, rule=NAME, policies=default.policies)
            continue
        yield Edit(op="add", path=("metadata", protection.where, protection.key), value=value, rule=NAME, policies=default.policies)


def _here(plan: Plan) -> Iterator[Protection]:
    """Yield the protections of the platforms in use, or all if the platforms are not known."""
    for protection in plan.snapshot.catalog.protections:
        if not protection.only_judged and plan.snapshot.uses(protection.platforms):
            yield protection


def _written(pod: Pod, protection: Protection) -> Mapping[str, object]:
    return pod.annotations if protection.where == "annotations" else pod.labels


def _value(plan: Plan, protection: Protection, seconds: int) -> str | None:
    """Return the value to write; None if it could only be an endless one and a maximum is in force."""
    if _knows_durations(plan, protection) and seconds < FOREVER:
        return duration.format_duration(seconds)
    return protection.value if plan.settings.protect_max is None else None


def _knows_durations(plan: Plan, protection: Protection) -> bool:
    """Return whether a platform in use understands a duration as the value of this protection."""
    catalog, tables = plan.snapshot.catalog, plan.snapshot.tables
    return protection.durations and any(catalog.platforms[p].protect_durations for p in protection.platforms if p in tables)


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield a violation for each protection that lasts longer than the maximum."""
    yield from _too_long(plan, {})


def check_update(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield the same for protections that the old pod lacks, or that last longer than they did."""
    old = Pod(request.old_pod or {})
    yield from _too_long(plan, {p: _standing_for(old, p) for p in plan.snapshot.catalog.protections})


def _too_long(plan: Plan, before: Mapping[Protection, _Seconds]) -> Iterator[Violation]:
    limit = plan.settings.protect_max
    for protection in plan.snapshot.catalog.protections if limit is not None else ():
        seconds = _standing_for(plan.pod, protection)
        if limit is not None and seconds > max(limit.value, before.get(protection, 0)):
            yield _violation(plan, protection, limit)


def _standing_for(pod: Pod, protection: Protection) -> _Seconds:
    """Return for how many seconds the pod is protected in this way; 0 if it is not."""
    value = _written(pod, protection).get(protection.key)
    return 0 if value is None else lasts(protection, str(value))


def lasts(protection: Protection, value: str) -> _Seconds:
    """Return for how many seconds this value protects; 0 if its reader certainly ignores it.

    Karpenter (pkg/utils/pod/scheduling.go, 1.14) compares with "true", then reads a duration above zero;
    Cluster Autoscaler (utils/drain/drain.go) and the GPU Operator's selector compare the text. How
    closed-source programs compare is not known.
    """
    if value == protection.value or (protection.any_value and value.strip().lower() not in _FALSE):
        return FOREVER
    return max(duration.parse_duration(value) or 0, 0) if protection.durations else 0


_FALSE = ("", "0", "f", "false", "no", "off", "n")
"""values that no program takes for true"""
_SHOWN = 20
"""the most characters of a value that a message quotes"""


def _violation(plan: Plan, protection: Protection, limit: TightestLimit) -> Violation:
    path: Path = ("metadata", protection.where, protection.key)
    shown = cut_text(str(_written(plan.pod, protection)[protection.key]), _SHOWN)
    most, durations = duration.format_duration(limit.value), _knows_durations(plan, protection)
    return Violation(
        code="BERTH-142",
        found=phrase("fact", path=At(path), value=shown, most=most),
        advice=phrase("set or remove", most=most) if durations else phrase("remove"),
        rule=NAME,
        path=path,
        fields=at_field("spec.require.protection.max", limit.policies),
        fixes=write_or_leave_out(path, most if durations else None),
    )
