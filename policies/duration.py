"""Durations in Go's grammar (time.ParseDuration): ``2h``, ``1h30m``, ``90s``, to whole seconds."""

from __future__ import annotations

import re
from fractions import Fraction

from policies.document import kind_of

_SECONDS = {
    "h": Fraction(3600), "m": Fraction(60), "s": Fraction(1),
    "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "ns": Fraction(1, 10**9),
}  # fmt: skip
PATTERN = r"^([0-9]+(\.[0-9]+)?(h|m|s|ms|us|µs|ns))+$"
"""for JSON schemas; Go also reads ``.5h`` and ``+1h``, which nobody writes and we refuse"""
_WHOLE = re.compile(PATTERN, re.ASCII)
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|us|µs|ns|h|m|s)", re.ASCII)
_DAYS = re.compile(r"([0-9]{1,4})\s*d(?:ays?)?", re.ASCII)
_MOST_SECONDS = 366 * 24 * 3600
"""A year: above any training run, and far below where kubelet's arithmetic ends."""
_MOST_CHARACTERS = 32


class DurationError(ValueError):
    """Not a duration that can be used; the message says what to write."""


def seconds(value: object) -> int:
    """``value`` as whole seconds, at least 1; raises DurationError.

    >>> seconds("1h30m")
    5400
    """
    if isinstance(value, int) and not isinstance(value, bool):
        raise DurationError(f"wants a duration with its unit, found the number {value}; write {value}s")
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS or not _WHOLE.fullmatch(value):
        raise DurationError(f"wants a duration; {_advice(value)}")
    total = _total(value)
    if total.denominator != 1 or total < 1:
        raise DurationError(f'wants whole seconds, at least 1s; found "{value}"')
    if total > _MOST_SECONDS:
        raise DurationError(f'"{value}" is more than a year (8784h)')
    return int(total)


def read(value: object) -> int | None:
    """As others write it, whole seconds rounded down: ``0s`` and ``500ms`` too. None if it is no duration."""
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS or not _WHOLE.fullmatch(value):
        return None
    return int(_total(value))


def _total(value: str) -> Fraction:
    return sum((Fraction(number) * _SECONDS[unit] for number, unit in _PART.findall(value)), Fraction(0))


def _advice(value: object) -> str:
    if isinstance(value, str) and (days := _DAYS.fullmatch(value.strip())):
        return f'"{value}" has no unit that Go knows; write {int(days[1]) * 24}h'
    found = f'"{value[:40]}"' if isinstance(value, str) else kind_of(value)
    return f"found {found}; write 2h, 90s or 1h30m"


def text(value: int) -> str:
    """Seconds as people write them: 5400 is ``1h30m``."""
    hours, rest = divmod(value, 3600)
    minutes, left = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (left, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"
