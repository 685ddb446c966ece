"""Label selectors, as Kubernetes evaluates them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelExpression:
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
        return self.key not in labels

    def __str__(self) -> str:
        """Return ``team in (a, b)``, ``team`` or ``!team``, in the syntax of ``kubectl -l``."""
        if self.operator in ("Exists", "DoesNotExist"):
            return f"{'' if self.operator == 'Exists' else '!'}{self.key}"
        return f"{self.key} {self.operator.lower()} ({', '.join(self.values)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelector:
    """A Kubernetes label selector; an empty one matches everything."""

    match_labels: tuple[tuple[str, str], ...] = ()
    match_expressions: tuple[LabelExpression, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        """The label keys that the selector uses."""
        return frozenset((*(key for key, _ in self.match_labels), *(expression.key for expression in self.match_expressions)))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels match, as apimachinery's labels.Selector does: NotIn and DoesNotExist
        hold if the key is missing."""
        return all(labels.get(key) == value for key, value in self.match_labels) and all(
            expression.holds(labels) for expression in self.match_expressions
        )

    def __str__(self) -> str:
        """Return ``team=research,environment notin (dev),!tier``, in the syntax of ``kubectl -l``;
        ``anything`` for an empty selector."""
        return ",".join([*(f"{key}={value}" for key, value in self.match_labels), *map(str, self.match_expressions)]) or "anything"
