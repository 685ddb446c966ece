"""Longest time: a pod ends by itself, so that a run that hangs or was forgotten does not hold its GPUs for ever.

Reads   spec.activeDeadlineSeconds, the annotation berth.dev/expected-duration
Writes  spec.activeDeadlineSeconds where there is none: ``default.maxRuntime``, else ``require.maxRuntime``
Judges  ``require.maxRuntime``, except for DaemonSets. On validate also that a deadline is there
Never   changes a deadline that is written; gives by default less than the author expects
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from kube import duration
from kube.pod import DEADLINE
from kube.tree import Path
from policies.messages import At, Phrase, phrase
from policies.planning.plan import Plan
from policies.pods.annotations import DURATION
from policies.reasons import denial_messages
from policies.request import Request
from policies.settings.limits import TightestLimit
from policies.settings.running import deadline, seconds_of
from policies.verdict import Edit, Remark, Violation, at_field

NAME = "max_runtime"
_PATH: Path = ("spec", DEADLINE)
_FIELD = "spec.require.maxRuntime"


def mutate(request: Request, plan: Plan) -> Iterator[Edit | Remark]:
    """Write the deadline, and tell the author of it, and the platform team of a default that does not act as given."""
    if seconds_of(plan.pod) is not None:
        return
    expected = plan.author.expected
    limit = deadline(plan.settings.running, expected, plan.actor)
    yield from _of_default(plan, limit, expected)
    if limit is not None:
        variant = "shorter" if expected is not None and expected > limit.value else "text"
        found = phrase(variant, most=duration.format_duration(limit.value), path=At(_PATH), annotation=DURATION, policies=limit.policies)
        yield Remark(code="BERTH-226", found=found, rule=NAME, policies=limit.policies, path=_PATH)
        yield Edit(op="add", path=_PATH, value=limit.value, rule=NAME, policies=limit.policies)


def _of_default(plan: Plan, limit: TightestLimit | None, expected: Fraction | None) -> Iterator[Remark]:
    default = plan.settings.running.max_runtime
    if default is None:
        return
    given, on = duration.format_duration(default.value), at_field("spec.default.maxRuntime", default.policies)
    if expected is not None and expected > default.value:
        found = phrase("runtime expected", given=given, annotation=DURATION)
        yield Remark(code="BERTH-225", found=found, rule=NAME, policies=default.policies, fields=on)
    elif limit is not None and limit.value < default.value:
        found = phrase("runtime clipped", given=given, most=duration.format_duration(limit.value))
        yield Remark(code="BERTH-225", found=found, rule=NAME, policies=default.policies, fields=on)


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield a violation for a deadline past the longest time, or, once all mutators have run, for none."""
    longest, seconds = plan.settings.running.longest, seconds_of(plan.pod)
    if longest is None or plan.actor.floor == "no":
        return
    if seconds is not None and seconds > longest.value:
        found = phrase("fact", path=At(_PATH), seconds=seconds, most=duration.format_duration(longest.value))
        yield _violation(plan, longest, found)
    elif seconds is None and request.phase == "validate":
        yield _violation(plan, longest, phrase("none there", path=At(_PATH), most=duration.format_duration(longest.value)))


def _violation(plan: Plan, longest: TightestLimit, found: Phrase) -> Violation:
    return Violation(
        code="BERTH-143",
        found=found,
        advice=phrase("fix", path=At(_PATH), most=longest.value),
        more=(denial_messages.likely(plan, NAME),) if found.name == "none there" else (phrase("go on"),),
        rule=NAME,
        policies=longest.policies,
        path=_PATH,
        fields=at_field(_FIELD, longest.policies),
    )
