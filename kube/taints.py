"""A taint of a node (k8s.io/api core/v1 Taint)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"

    def __str__(self) -> str:
        """Return ``pool=a100:NoSchedule``, as ``kubectl taint`` writes it."""
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"
