"""The typed view of one admission request: all that a decision may know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Phase = Literal["mutate", "validate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """``pod`` and ``old_pod`` are the objects as decoded; they are never changed."""

    operation: Literal["CREATE", "UPDATE"] = "CREATE"
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
