"""What is decided otherwise of one pod than it was: the gravest of it, with the policies that it is due to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from analysis.replay.decision import AuditedChange, DenialReason, RecordedDecision
from analysis.replay.effects import EditEffect
from kube.pod import field_of

Turn = Literal["newly-denied", "newly-admitted", "other-reasons", "other-edits", "other-would"]
"""A pod that was admitted is denied; one that was denied is admitted; it is denied for other reasons; it is
admitted with other edits; or all that is enforced is as it was, and a policy in Audit or Warn would do otherwise."""
TURNS: tuple[Turn, ...] = ("newly-denied", "newly-admitted", "other-reasons", "other-edits", "other-would")


class Side(NamedTuple):
    """One of the two decisions, as far as they differ."""

    word: str
    """``admitted``, ``edited``, ``denied``, ``nothing``, ``would change`` or ``would deny``."""
    codes: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    """Fields of the pod that are written only here."""


class Difference(NamedTuple):
    """Pods with equal differences are counted together."""

    turn: Turn
    policies: tuple[str, ...]
    """Those that it is due to, sorted; none where the record does not name them."""
    then: Side
    now: Side


def difference(then: RecordedDecision, now: RecordedDecision) -> Difference | None:
    """Return how ``now`` differs from ``then``, as far as both are known; None where it does not."""
    if then.denied != now.denied:
        turn: Turn = "newly-denied" if now.denied else "newly-admitted"
        return Difference(turn, _accountable(then, now), _without_fields(then), _without_fields(now))
    if now.denied:
        return _reasons(then, now) or _audit_outcomes(then, now)
    return _edits(then, now) or _audit_outcomes(then, now)


def _without_fields(decision: RecordedDecision) -> Side:
    """Return a side without what is written: pods that are denied alike are one group, whatever would be written into each."""
    return Side(decision.word, tuple(sorted({reason.code for reason in decision.reasons or ()})))


def _accountable(then: RecordedDecision, now: RecordedDecision) -> tuple[str, ...]:
    denying = now if now.denied else then
    return _names(policy for reason in denying.reasons or () for policy in reason.policies)


def _reasons(then: RecordedDecision, now: RecordedDecision) -> Difference | None:
    before, after = _by_cause(then.reasons), _by_cause(now.reasons)
    if before is None or after is None or before.keys() == after.keys() or (not then.whole and before.keys() <= after.keys()):
        return None
    changed = [reason for cause in before.keys() ^ after.keys() for reason in (*before.get(cause, ()), *after.get(cause, ()))]
    policies = _names(policy for reason in changed for policy in reason.policies)
    return Difference("other-reasons", policies, _without_fields(then), _without_fields(now))


def _by_cause(reasons: Iterable[DenialReason] | None) -> dict[tuple[str, str], list[DenialReason]] | None:
    """Return the reasons by code and rule: who asks, and in which words, is no other decision."""
    if reasons is None:
        return None
    found: dict[tuple[str, str], list[DenialReason]] = {}
    for reason in reasons:
        found.setdefault((reason.code, reason.rule), []).append(reason)
    return found


def _edits(then: RecordedDecision, now: RecordedDecision) -> Difference | None:
    if then.effects is None or now.effects is None or then.effects.keys() == now.effects.keys():
        return None
    lost = {effect: then.effects[effect] for effect in then.effects.keys() - now.effects.keys()}
    gained = {effect: now.effects[effect] for effect in now.effects.keys() - then.effects.keys()}
    policies = _names(policy for names in (*lost.values(), *gained.values()) for policy in names)
    return Difference("other-edits", policies, Side(then.word, (), _fields(lost)), Side(now.word, (), _fields(gained)))


def _audit_outcomes(then: RecordedDecision, now: RecordedDecision) -> Difference | None:
    if then.audit_outcomes is None or now.audit_outcomes is None:
        return None
    names = then.audit_outcomes.keys() | now.audit_outcomes.keys()
    if not then.whole:
        names = names & then.audit_outcomes.keys()
    if not now.whole:
        names = names & now.audit_outcomes.keys()
    changed = sorted(name for name in names if _differs(then.audit_outcomes.get(name), now.audit_outcomes.get(name)))
    if not changed:
        return None
    return Difference(
        "other-would",
        tuple(changed),
        _audit_side(then.audit_outcomes, now.audit_outcomes, changed),
        _audit_side(now.audit_outcomes, then.audit_outcomes, changed),
    )


def _differs(then: AuditedChange | None, now: AuditedChange | None) -> bool:
    if then is None or now is None:
        return True
    return then.codes != now.codes or (then.effects is not None and now.effects is not None and then.effects != now.effects)


def _audit_side(audit_outcomes: Mapping[str, AuditedChange], other: Mapping[str, AuditedChange], changed: Iterable[str]) -> Side:
    codes: set[str] = set()
    written: set[EditEffect] = set()
    for name in changed:
        if (one := audit_outcomes.get(name)) is not None:
            codes |= one.codes
            written |= (one.effects or frozenset()) - ((beside.effects or frozenset()) if (beside := other.get(name)) else frozenset())
    there = any(name in audit_outcomes for name in changed)
    return Side("would deny" if codes else "would change" if there else "nothing", tuple(sorted(codes)), _fields(written))


def _fields(effects: Iterable[EditEffect]) -> tuple[str, ...]:
    return tuple(sorted({field_of(effect.path) for effect in effects}))


def _names(policies: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(policies)))
