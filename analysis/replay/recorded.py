"""What was decided then, from what the API server or a review's answer recorded of it: audit annotations and patches
(``analysis.reviews.audit_annotations`` writes them), parsed already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analysis.replay import effects
from analysis.replay.decision import AuditedChange, DenialReason, RecordedDecision, does_something
from kube.tree import maps_in, text_of

LEFT_OUT = "left"
"""Key of the item that counts what a list of records leaves out."""


def read_decision(
    *,
    patches: Sequence[object] | None,
    audit_outcomes: Sequence[object] = (),
    denied: Sequence[object] | None = None,
    evidence: bool = True,
) -> RecordedDecision:
    """Return the decision of a record.

    ``patches``: the operations of each call, in order; None if they are not recorded. ``audit_outcomes`` and ``denied``: the
    lists of records; ``denied`` None for a pod that was admitted. ``evidence``: False if no such lists were to be
    recorded, as on a dry run: what is not in them is not known then.
    """
    operations = [one for patch in patches or () for one in (patch if isinstance(patch, list) else ())]
    by_path = effects.policies_by_path(operations)
    written = effects.of_patch(operations)
    left = any(LEFT_OUT in one for one in (*maps_in(list(audit_outcomes)), *maps_in(list(denied or ()))))
    return RecordedDecision(
        denied=denied is not None,
        reasons=_reasons(denied) if evidence else None,
        effects=None if patches is None else {effect: effects.writers(effect, by_path) for effect in written},
        audit_outcomes=_audit_outcomes(audit_outcomes, frozenset(written)) if evidence and patches is not None else None,
        whole=not left,
        patch=tuple(one for one in operations if isinstance(one, dict)),
    )


def _reasons(denied: Iterable[object] | None) -> tuple[DenialReason, ...]:
    records = [one for one in maps_in(list(denied or ())) if LEFT_OUT not in one]
    return tuple(DenialReason(text_of(one.get("code")), text_of(one.get("rule")), _texts(one.get("policies"))) for one in records)


def _audit_outcomes(audit_outcomes: Iterable[object], base: frozenset[effects.EditEffect]) -> dict[str, AuditedChange]:
    found = {text_of(one.get("policy")): _audited(one) for one in maps_in(list(audit_outcomes)) if LEFT_OUT not in one}
    return {policy: one for policy, one in found.items() if does_something(one, base)}


def _audited(record: Mapping[Any, Any]) -> AuditedChange:
    codes = frozenset(text_of(one.get("code")) for one in maps_in(record.get("denials")))
    patch = record.get("patch")
    return AuditedChange(codes, frozenset(effects.of_patch(patch)) if isinstance(patch, list) else None)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
