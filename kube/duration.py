"""Durations in Go's grammar (time.ParseDuration): ``2h``, ``1h30m``, ``90s``.

A policy's own fields take whole seconds, and no odd spelling (``seconds``). Durations that other programs
read are read as they read them (``parse_duration``): to the nanosecond, with every spelling that Go takes.
"""

from __future__ import annotations

import functools
import re
from fractions import Fraction

from kube.tree import kind_of

_SECONDS = {
    "h": Fraction(3600), "m": Fraction(60), "s": Fraction(1),
    "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "ns": Fraction(1, 10**9),
}  # fmt: skip
PATTERN = r"^([0-9]+(\.[0-9]+)?(h|m|s|ms|us|µs|ns))+$"
"""for JSON schemas; Go also reads ``.5h`` and ``+1h``, which nobody writes in a policy and we reject there"""
IN_ORDER = r"^([0-9]{1,4}([.][0-9]{1,3})?h)?([0-9]{1,6}([.][0-9]{1,3})?m)?([0-9]{1,8}([.][0-9]{1,3})?s)?$"
"""For CRDs: hours, minutes, seconds, each at most once. The parser takes them in any order, and ms, us and
ns too. Here nothing can overflow in Go's duration (292 years), and three decimals are exact in its
nanoseconds, which cuts off further ones where the parser does not."""
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
        raise DurationError(f"must be a duration with its unit, found the number {value}; write {value}s")
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS or not _WHOLE.fullmatch(value):
        raise DurationError(f"must be a duration; {_advice(value)}")
    total = _total(value)
    if total.denominator != 1 or total < 1:
        raise DurationError(f'must be whole seconds, at least 1s; found "{value}"')
    if total > _MOST_SECONDS:
        raise DurationError(f'"{value}" is more than a year (8784h)')
    return int(total)


_NANOSECONDS = {
    "ns": 1, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip
"""Go knows both the micro sign and the Greek letter"""
_GO = re.compile(r"([+-]?)((?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+|0)", re.ASCII)
_GO_PART = re.compile(r"([0-9]*)\.?([0-9]*)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)
_INT64 = 2**63
LONGEST = Fraction(_INT64 - 1, 10**9)
"""In seconds: 292 years, where Go's durations end."""
_MOST_READ = 1000
"""The most characters of a duration that are read; bounds the work for each."""


def parse_duration(value: object) -> Fraction | None:
    """Seconds, as Go reads it, to the nanosecond; None where Go rejects: no duration, or one of more than 292 years.

    ``0``, ``-1h``, ``.5h`` and ``500ms`` are durations too. One of more than 1,000 characters, which somebody may read and we
    don't, is the longest there is.

    >>> parse_duration("1.5m")
    Fraction(90, 1)
    """
    if not isinstance(value, str):
        return None
    return LONGEST if len(value) > _MOST_READ else _read(value)


@functools.lru_cache(maxsize=1024)
def _read(value: str) -> Fraction | None:
    match = _GO.fullmatch(value)
    if match is None:
        return None
    total = 0
    for whole, decimals, unit in _GO_PART.findall(match[2]):
        part = _nanoseconds(whole, decimals, _NANOSECONDS[unit])
        total = (total + part) % 2**64  # Go's sum is a uint64, and two halves of its range are nothing
        if max(part, total) > _INT64:
            return None
    if match[1] == "-":
        return Fraction(-total, 10**9)
    return Fraction(total, 10**9) if total < _INT64 else None


def _nanoseconds(whole: str, decimals: str, unit: int) -> int:
    """Return one number with its unit, in nanoseconds. The fraction is computed in floating point, as Go
    does."""
    numerator, scale = 0, 1.0
    for digit in decimals:
        longer = numerator * 10 + int(digit)
        if longer > _INT64:
            break  # what an int64 does not hold of a fraction is left out
        numerator, scale = longer, scale * 10
    return int(whole or "0") * unit + int(float(numerator) * (float(unit) / scale))


def _total(value: str) -> Fraction:
    return sum((Fraction(number) * _SECONDS[unit] for number, unit in _PART.findall(value)), Fraction(0))


def _advice(value: object) -> str:
    if isinstance(value, str) and (days := _DAYS.fullmatch(value.strip())):
        return f'"{value}" has no unit that Go knows; write {int(days[1]) * 24}h'
    kind = f'"{value[:40]}"' if isinstance(value, str) else kind_of(value)
    return f"found {kind}; write 2h, 90s or 1h30m"


def format_duration(value: int) -> str:
    """Return seconds in the usual spelling: 5400 is ``1h30m``."""
    hours, rest = divmod(value, 3600)
    minutes, left = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (left, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"
