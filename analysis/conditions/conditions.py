"""The conditions of a status, and those of them that hold no comparison of policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.conditions.words import MOST_MESSAGE, sentences
from policies.offers.constraints import Compiled
from policies.state.compilation import MOST_OWN, MOST_OWN_TOLERATIONS
from policies.verdict import Mode

INVALID = "Invalid"
"""The reason of an object with errors in itself."""
CAPPED = "ModeCapped"
"""The reason of Ready on a policy of which less acts than it says."""
ALONE = "NothingOffered"
"""The reason of a policy that leaves nothing by itself."""
IN_ENFORCE = "In Enforce: "


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    status: str
    """``True``, ``False`` or ``Unknown``."""
    reason: str
    message: str
    """At most 2,000 characters."""


def for_waits(accepted: Condition, compiled: Compiled | None) -> Iterator[Condition]:
    """Yield Ready, and Stalled where no change of another object can fix it. ``compiled``: the policy in force, None for others."""
    if accepted.status == "True":
        if compiled is None or compiled.mode == compiled.policy.mode:
            yield Condition("Ready", "True", "InForce", "")
        else:
            text = f"{compiled.mode}: the server's --max-mode (maxMode of the chart) caps mode {compiled.policy.mode}"
            yield Condition("Ready", "True", CAPPED, text)
        return
    yield Condition("Ready", "False", accepted.reason, accepted.message)
    if accepted.reason == INVALID:
        yield Condition("Stalled", "True", accepted.reason, accepted.message)


def not_conflicted() -> Condition:
    """Return the condition of an object that no other stands against."""
    return Condition("Conflicted", "False", "NoConflict", "")


def conflicted(reason: str, texts: Sequence[str], mode: Mode) -> Condition:
    """Return the condition of a policy that conflicts with others, or with itself.

    One that only audits conflicts with no other, since nothing of it acts: what it would conflict with is in the message.
    """
    if mode == "Enforce":
        return Condition("Conflicted", "True", reason, sentences(texts))
    message = IN_ENFORCE + sentences(texts, most=MOST_MESSAGE - len(IN_ENFORCE))
    if reason == ALONE:
        return Condition("Conflicted", "True", reason, message)
    return Condition("Conflicted", "False", "ConflictsInEnforce", message)


def only_true(name: str, reason: str, texts: tuple[str, ...]) -> Condition | None:
    """Return a condition that is there only while there is something to say."""
    return Condition(name, "True", reason, sentences(texts)) if texts else None


def too_many() -> Condition:
    """Return the condition of a GPUPolicy that is beyond the first ones of its namespace."""
    text = (
        f"has no effect: only the first {MOST_OWN} GPUPolicies of a namespace by name apply, with {MOST_OWN_TOLERATIONS} tolerations"
        " at most that they forbid or add; delete or merge policies"
    )
    return Condition("Accepted", "False", "TooManyPolicies", text)
