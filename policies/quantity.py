"""Kubernetes quantities as exact rationals: 1, 1000m and 1e0 are equal.

Grammar: k8s.io/apimachinery pkg/api/resource/quantity.go, ``<signedNumber><suffix>``.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_SUFFIX = {
    "": Fraction(1),
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9),
    "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30),
    "Ti": Fraction(2**40), "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip
_QUANTITY = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?", re.ASCII)
_MOST_CHARACTERS = 64
"""Longer than any quantity Kubernetes prints (int64 in nano units has 20 digits); bounds the work per value."""


class QuantityError(ValueError):
    """Not a quantity by Kubernetes' grammar."""


def parse(value: object) -> Fraction:
    """``value`` (a string or a JSON number) as an exact rational; raises QuantityError.

    >>> parse("1000m") == parse(1) == parse("1e0")
    True
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise QuantityError(f"{value!r} is not a quantity")
    return _parse(str(value))


@lru_cache(maxsize=4096)
def _parse(text: str) -> Fraction:
    match = _QUANTITY.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
    if match is None:
        raise QuantityError(f"{text[:40]!r} is not a quantity such as 1, 500m or 16Gi")
    sign, digits, suffix, exponent = match.groups()
    scale = Fraction(10) ** int(exponent) if exponent else _SUFFIX[suffix or ""]
    number = Fraction(digits.rstrip(".")) * scale
    return -number if sign == "-" else number


def whole(value: object) -> int | None:
    """``value`` as a whole number of devices, or None when it is none (a fraction, negative, unreadable)."""
    try:
        number = parse(value)
    except QuantityError:
        return None
    return int(number) if number.denominator == 1 and number >= 0 else None
