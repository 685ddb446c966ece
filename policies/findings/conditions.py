"""The conditions of a status, and those of them that hold no comparison of policies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from policies.findings.words import sentences
from policies.state.own_policies import MOST_OWN, MOST_OWN_TOLERATIONS

INVALID = "Invalid"
"""The reason of an object with errors in itself."""


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    status: str
    """``True``, ``False`` or ``Unknown``."""
    reason: str
    message: str
    """At most 2,000 characters."""


def for_waits(accepted: Condition) -> Iterator[Condition]:
    """Yield Ready, and Stalled where no other object can mend it."""
    if accepted.status == "True":
        yield Condition("Ready", "True", "InForce", "")
        return
    yield Condition("Ready", "False", accepted.reason, accepted.message)
    if accepted.reason == INVALID:
        yield Condition("Stalled", "True", accepted.reason, accepted.message)


def not_conflicted() -> Condition:
    """Return the condition of an object that no other stands against."""
    return Condition("Conflicted", "False", "NoConflict", "")


def only_true(name: str, reason: str, texts: tuple[str, ...]) -> Condition | None:
    """Return a condition that is there only while there is something to say."""
    return Condition(name, "True", reason, sentences(texts)) if texts else None


def too_many() -> Condition:
    """Return the condition of a GPUPolicy that is beyond the first ones of its namespace."""
    text = (
        f"of a namespace's GPUPolicies the first {MOST_OWN} by name act, with {MOST_OWN_TOLERATIONS} tolerations in all that they forbid or"
        " add, and this is none of them: delete others, or put some together"
    )
    return Condition("Accepted", "False", "TooManyPolicies", text)
