"""One suggested policy as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from analysis.scan.finding import Kind, Value
from policies.policy import API_VERSION

Code = Literal["accelerators", "runs", "notebooks", "namespace"]
"""Which kind of suggestion: its reasons are worded by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """One policy, in mode Audit."""

    code: Code
    name: str
    """Of the object, and of its file."""
    spec: Mapping[str, Any]
    """Without the mode."""
    values: Mapping[str, Value] = field(default_factory=dict)
    """What its reasons need."""
    fixes: tuple[Kind, ...] = ()
    """The kinds of finding that it is for."""

    def manifest(self, mode: str = "Audit") -> dict[str, Any]:
        """Return the object."""
        return {
            "apiVersion": API_VERSION,
            "kind": "ClusterGPUPolicy",
            "metadata": {"name": self.name},
            "spec": {"mode": mode, **self.spec},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionEffect:
    """What a policy would do to the pods that exist, were it alone and in Enforce."""

    matched: int = 0
    changed: int = 0
    denied: int = 0
    found: int = 0
    """Pods of which something is found that it is for."""
    fixed: int = 0
    """Those of which nothing of that would then be found."""
