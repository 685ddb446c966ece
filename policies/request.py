"""The typed view of one admission request of a pod: all that a decision may know of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from kube.tree import Path

Phase = Literal["mutate", "validate"]
Operation = Literal["CREATE", "UPDATE"]


class SingleRun(NamedTuple):
    """The field of a workload because of which the first pod that is interrupted ends the run."""

    path: Path
    """The path in the workload."""
    cause: Literal["no retry", "no strategy", "failing rule"]
    """It allows no retry, is not there, or has a rule that fails the Job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """``pod`` and ``old_pod`` are the objects as decoded; they are never changed."""

    operation: Operation = "CREATE"
    namespace: str
    user: str = ""
    groups: tuple[str, ...] = ()
    """The groups of the user, as the API server authenticated them."""
    subresource: str = ""
    """``resize``; "" for the pod itself"""
    pod: dict[str, Any]
    old_pod: dict[str, Any] | None = None
    dry_run: bool = False
    phase: Phase = "mutate"
    single_run: SingleRun | None = None
    """Of a pod of a workload that is checked in place of the pod; a review of a pod does not tell."""
    uid: str = field(default="", compare=False, repr=False)
    """The uid of the review, which the answer repeats; "" if nobody is answered."""

    def in_phase(self, phase: Phase) -> Request:
        """Return the same request as the other webhook receives it."""
        return self if phase == self.phase else replace(self, phase=phase)
