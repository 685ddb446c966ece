"""Quantities: Kubernetes' grammar, exact values, nothing else."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.quantity import QuantityError, binary, parse, whole

ONE = ["1", 1, 1.0, "1000m", "1e0", "1E0", "+1", "1.", "0.001k", "1000000u", "1000000000n", ".1e1", " 1 ", "0" * 99 + "1", "1e4294967296"]


@pytest.mark.parametrize("value", ONE, ids=repr)
def test_one_is_one_however_it_is_written(value: object) -> None:
    """Quantities are equal by value."""
    assert parse(value) == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1Ki", 1024),
        ("16Gi", 16 * 2**30),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("500m", Fraction(1, 2)),
        ("-2", -2),
        ("1e3", 1000),
        ("1e-2", Fraction(1, 100)),
        ("1E+2", 100),
        ("1e-99", Fraction(1, 10**9)),
        ("-0.0000000001", Fraction(-1, 10**9)),
        ("9Ei", 2**63 - 1),
        ("9E", 9 * 10**18),
        ("1" * 3000, int("1" * 3000)),
        ("000", 0),
        ("k", 0),
        ("Ki", 0),
        ("+", 0),
        (".", 0),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else "",
)
def test_suffixes_and_exponents(text: str, value: Fraction) -> None:
    """As the API server reads them: E is exa without digits behind it, what is finer than a billionth is rounded up, no digit is zero."""
    assert parse(text) == value


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, [], {}, "", "  ", "one", "$GPUS", "1K", "1mi", "1e", "0x1", "١", "1\n", "1 Gi", "--1", "1M5", "1ee3", "1_000"),
        *("Ei", "e-12", "1e1000", "1e99999999999999999999", "1" * 4001),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_no_quantity_is_denied(value: object) -> None:
    """Nothing is guessed: a boolean, a blank inside, an Arabic digit, an exponent or a text without end."""
    with pytest.raises(QuantityError):
        parse(value)


@pytest.mark.parametrize(
    ("value", "count"), [("8", 8), ("8000m", 8), (0, 0), ("500m", None), ("-1", None), ("x", None), (None, None)], ids=repr
)
def test_whole_numbers_of_devices(value: object, count: int | None) -> None:
    """A fraction, a negative and an unreadable amount are no number of devices."""
    assert whole(value) == count


@pytest.mark.parametrize(("number", "text"), [(2**33, "8Gi"), (3 * 2**29, "1536Mi"), (1000, "1000"), (0, "0"), (2**40, "1Ti")])
def test_bytes_with_a_suffix(number: int, text: str) -> None:
    """The largest that leaves the number whole, and it reads as the number again."""
    assert binary(number) == text
    assert parse(text) == number


@given(st.integers(-(10**12), 10**12))
def test_an_integer_is_itself(number: int) -> None:
    """As number, as text and in thousandths."""
    assert parse(number) == parse(str(number)) == parse(f"{number * 1000}m") == number
