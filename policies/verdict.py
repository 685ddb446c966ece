"""What a decision is made of: edits, violations, remarks, and the verdict that holds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Path = tuple[str | int, ...]
"""Where in the pod: ``("spec", "tolerations", "-")``. ``"-"`` at the end appends to a list (RFC 6901)."""

Mode = Literal["Audit", "Warn", "Enforce"]
MODES: tuple[Mode, ...] = ("Audit", "Warn", "Enforce")
"""Weakest first, so that a cap is the smaller index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change in the smallest place. Parents that are missing are made by ``patch``.

    ``op`` is ``add`` (sets a key, inserts before an index, appends at ``-``), ``replace`` or ``remove``.
    """

    op: Literal["add", "replace", "remove"]
    path: Path
    value: Any = None
    rule: str
    policies: tuple[str, ...]
    """Who asked for it, as ``ClusterGPUPolicy/training`` or ``GPUPolicy/ml-team/own``, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Why a pod is refused. ``code``, ``fact`` and ``fix`` fit in the first 200 characters together."""

    code: str
    """Stable, ``BERTH-104``; ``docs/codes.md`` has a section for each."""
    fact: str
    """What is, with its value and path: ``container "c": nvidia.com/gpu request 1 is not its limit 2``."""
    fix: str
    """What to type next: ``set spec.containers[0].resources.requests["nvidia.com/gpu"] to 2``."""
    detail: str = ""
    """More for those who read on: the other side, nearest names, all values."""
    rule: str
    policies: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Code, fact and fix first; who asks and the rest after."""
        asked = f" (asked by {', '.join(self.policies)})" if self.policies else ""
        detail = f" {self.detail}" if self.detail else ""
        return f"{self.code}: {self.fact}; {self.fix}.{detail}{asked}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Something said without refusing: a default that was clipped or skipped, an unknown value, a cap."""

    code: str
    text: str
    rule: str = ""
    policies: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Would:
    """What switching one Audit or Warn policy to Enforce would have done to this pod."""

    policy: str
    mode: Mode
    edits: tuple[Edit, ...] = ()
    violations: tuple[Violation, ...] = ()
    remarks: tuple[Remark, ...] = ()
    patch: tuple[dict[str, Any], ...] = ()
    """the whole patch that Enforce would then give"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to one request. ``edits`` come only from policies in Enforce; any violation refuses."""

    edits: tuple[Edit, ...] = ()
    violations: tuple[Violation, ...] = ()
    remarks: tuple[Remark, ...] = ()
    would: tuple[Would, ...] = ()
    uncounted: int = 0
    """Audit and Warn policies past the sixteenth that were not evaluated (design section 2, Modes)."""
    matched: tuple[str, ...] = ()
    """Policies that apply to this pod, sorted. Empty: nothing matched, the pod is allowed and counted."""
    judged: bool = True
    """False for a pod that asks for no accelerator: nothing was evaluated."""
    patch: tuple[dict[str, Any], ...] = field(default=())
    """RFC 6902 operations for ``edits`` and the ``berth.dev/applied`` annotation, ready for the answer."""
    missing: tuple[tuple[str, str], ...] = ()
    """(kind, name) of resource claims that are not there, where the pod is refused because nobody can count what it asks for"""
