"""Kubernetes quantities as exact rationals: 1, 1000m and 1e0 are equal.

Grammar and rounding: ``ParseQuantity`` in k8s.io/apimachinery pkg/api/resource/quantity.go (1.36), which takes more than its
comment says: ``.``, ``+`` and a bare ``k`` are zero, and an exponent is cut to 32 bits.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil

_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
"""powers of ten"""
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
"""powers of two"""
_QUANTITY = re.compile(r"([+-]?)([0-9]*)(\.[0-9]*)?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?", re.ASCII)
_NANO = 10**9
"""Finer amounts are rounded away from zero to whole billionths."""
_MOST_BINARY = Fraction(2**63 - 1)
"""an amount with a binary suffix is capped here (maxAllowed)"""
_MOST_CHARACTERS = 4000
"""below the 4,300 digits at which Python rejects an int; bounds the work for each value. The API server writes no amount of a
device that is longer: its validation needs it to fit an int64"""
_REMEMBERED = 64
"""The most characters of an amount that is cached: longer than any meaningful amount (int64 in nano units
has 20 digits)."""
_MOST_EXPONENT = 999
"""The largest exponent of ten that is computed: no node has as much of anything."""


_READ = frozenset({str, int, float})
"""What JSON and YAML have for an amount; a boolean is none."""


class QuantityError(ValueError):
    """Not a quantity by Kubernetes' grammar, or one too large to be worked out."""


def parse(value: object) -> Fraction:
    """``value`` (a string or a JSON number) as an exact rational; raises QuantityError. Blanks around it are not read
    (Quantity.UnmarshalJSON).

    >>> parse("1000m") == parse(1) == parse("1e0")
    True
    """
    if type(value) not in _READ:
        raise QuantityError(f"{value!r} is not a quantity")
    text = str(value).strip(" ")
    return _remembered(text) if len(text) <= _REMEMBERED else _parse(text)


def _parse(text: str) -> Fraction:
    match = _QUANTITY.fullmatch(text) if text and len(text) <= _MOST_CHARACTERS else None
    if match is None:
        raise QuantityError(f"{text[:40]!r} is not a quantity such as 1, 500m or 16Gi")
    sign, digits, decimals, suffix = match.groups(default="")
    decimals = decimals[1:]
    exponent = _DECIMAL.get(suffix, 0) if suffix in _DECIMAL or suffix in _BINARY else _exponent(suffix[1:], text)
    if not (digits or decimals) and (suffix in ("Pi", "Ei") or exponent < _DECIMAL["n"]):
        raise QuantityError(f"{text[:40]!r} has no digits")  # Go's slow path, alone, wants one
    number = Fraction(int(f"{digits}{decimals}" or "0"), 10 ** len(decimals))
    if number and abs(exponent) > _MOST_EXPONENT:
        raise QuantityError(f"{text[:40]!r} has an exponent that is too large")
    if number:
        number = _rounded(number * Fraction(2) ** _BINARY.get(suffix, 0) * Fraction(10) ** exponent)
    if suffix in _BINARY:
        number = min(number, _MOST_BINARY)
    return -number if sign == "-" else number


_remembered = lru_cache(maxsize=4096)(_parse)


def _exponent(digits: str, text: str) -> int:
    """Return the exponent: an int64, cut to its lower 32 bits. Raises QuantityError."""
    written = int(digits)
    if not -(2**63) <= written < 2**63:
        raise QuantityError(f"{text[:40]!r} has an exponent that is too large")
    return (written + 2**31) % 2**32 - 2**31


def _rounded(number: Fraction) -> Fraction:
    return Fraction(ceil(number * _NANO), _NANO)


def binary(number: int) -> str:
    """Return a number of bytes with the largest binary suffix that leaves it whole: ``8Gi``, ``1536Mi``, ``1000``."""
    for suffix, power in reversed(_BINARY.items()):
        if number and not number % 2**power:
            return f"{number >> power}{suffix}"
    return str(number)


def whole(value: object) -> int | None:
    """Return ``value`` as a whole number of devices, or None if it is none (a fraction, negative,
    unreadable)."""
    try:
        number = parse(value)
    except QuantityError:
        return None
    return int(number) if number.denominator == 1 and number >= 0 else None
