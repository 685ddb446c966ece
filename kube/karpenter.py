"""A requirement on one label as Karpenter holds it (sigs.k8s.io/karpenter pkg/scheduling/requirement.go): the
values that the label may have, or those that it may not, within bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kube.labels import integer


@dataclass(frozen=True, slots=True)
class Requirement:
    """The values of one label."""

    values: frozenset[str] = frozenset()
    complement: bool = False
    """True if the label may have any value but these."""
    least: int | None = None
    most: int | None = None

    def __and__(self, other: Requirement) -> Requirement:
        """Return what both admit (``Requirement.Intersection``)."""
        least = max((n for n in (self.least, other.least) if n is not None), default=None)
        most = min((n for n in (self.most, other.most) if n is not None), default=None)
        if least is not None and most is not None and least > most:
            return Requirement()
        complement = self.complement and other.complement
        if complement:
            values = self.values | other.values
        elif self.complement:
            values = other.values - self.values
        elif other.complement:
            values = self.values - other.values
        else:
            values = self.values & other.values
        values = frozenset(value for value in values if _within(value, least, most))
        return Requirement(values, complement=True, least=least, most=most) if complement else Requirement(values)

    @property
    def denies(self) -> bool:
        """True for NotIn and DoesNotExist, which a node without the label satisfies (``Requirement.Operator``)."""
        return (self.complement and bool(self.values)) or self.none

    @property
    def none(self) -> bool:
        """True if no value is left: the label is absent."""
        return not self.complement and not self.values

    def meets(self, wanted: Requirement) -> bool:
        """Return whether a pod that asks for ``wanted`` agrees (``Requirements.Intersects``)."""
        return not (self & wanted).none or (wanted.denies and self.denies)


def requirement(operator: str, values: Sequence[str]) -> Requirement | None:
    """Return a requirement as Karpenter reads it; None for an operator that it does not know, or a bound that is no
    number."""
    match operator:
        case "In":
            return Requirement(frozenset(values))
        case "NotIn":
            return Requirement(frozenset(values), complement=True)
        case "Exists":
            return Requirement(complement=True)
        case "DoesNotExist":
            return Requirement()
        case "Gt" | "Lt" | "Gte" | "Lte":
            bound = integer(values[0]) if len(values) == 1 else None
            if bound is None:
                return None
            if operator.startswith("L"):
                return Requirement(complement=True, most=bound - (operator == "Lt"))
            least = bound + (operator == "Gt")
            return Requirement(complement=True, least=least) if least < 2**63 else Requirement()
    return None


def _within(value: str, least: int | None, most: int | None) -> bool:
    if least is None and most is None:
        return True
    number = integer(value)
    return number is not None and (least is None or number >= least) and (most is None or number <= most)
