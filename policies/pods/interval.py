"""Counts as intervals: a number that cannot be known is no less than ``least`` and no more than ``most``
(``docs/laws.md``, law 10: "guardrails hold for every author")."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from policies.values.quantity import QuantityError, parse


@dataclass(frozen=True, slots=True)
class CountInterval:
    """An interval; ``most`` is None if it has no known upper bound."""

    least: int
    most: int | None

    def __add__(self, other: CountInterval) -> CountInterval:
        if self is NONE:
            return other
        if other is NONE:
            return self
        return CountInterval(self.least + other.least, None if self.most is None or other.most is None else self.most + other.most)

    def __or__(self, other: CountInterval) -> CountInterval:
        """Return the larger of the two."""
        if self is NONE:
            return other
        if other is NONE:
            return self
        return CountInterval(max(self.least, other.least), None if self.most is None or other.most is None else max(self.most, other.most))

    def __str__(self) -> str:
        """Return ``8``, ``at least 8`` or ``1 to 8``."""
        if self.most is None:
            return f"at least {self.least}"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"

    def certainly(self, least: int | None, most: int | None) -> bool:
        """Return whether every number in the interval lies within the bounds (None: no bound)."""
        return (least is None or self.least >= least) and (most is None or (self.most is not None and self.most <= most))

    def possibly(self, least: int | None, most: int | None) -> bool:
        """Return whether some number in the interval lies within the bounds (None: no bound)."""
        if least is not None and most is not None and least > most:
            return False
        return (most is None or self.least <= most) and (least is None or self.most is None or self.most >= least)


NONE = CountInterval(0, 0)
ONE = CountInterval(1, 1)
ANY_NUMBER = CountInterval(0, None)


def of_amounts(limit: Any, request: Any, *, both: bool = False) -> CountInterval:
    """Return the devices of one container's limit and request, of which either may be absent (None): by
    limit if there is one. ``both``: where the API server lets the two differ, as it does for DRA's
    extended resources, the scheduler allocates by the request, so the number lies between them. A fraction
    is rounded up, as the scheduler rounds (k8s.io/apimachinery Quantity.Value)."""
    counts = [_whole(amount) for amount in (limit, request) if amount is not None]
    if len(counts) > 1 and both:
        most = None if any(count.most is None for count in counts) else max(count.most or 0 for count in counts)
        return CountInterval(min(count.least for count in counts), most)
    return counts[0] if counts else NONE


def _whole(amount: Any) -> CountInterval:
    try:
        number = parse(amount)
    except QuantityError:
        return ANY_NUMBER
    if number.numerator < 0:
        return ANY_NUMBER
    whole = number.numerator if number.denominator == 1 else math.ceil(number)
    return CountInterval(whole, whole)
