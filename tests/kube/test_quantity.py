"""Quantities that are not read as Kubernetes reads them; the others are compared with its code in tests/kube/upstream."""

from __future__ import annotations

import pytest

from kube.quantity import QuantityError, binary, parse, whole


@pytest.mark.parametrize("value", [None, "1e1000", "1e-1000", "1" * 4001], ids=lambda value: repr(value)[:40])
def test_what_is_too_large_is_denied(value: object) -> None:
    """Kubernetes reads it, with as much work as there are digits; null is zero to it."""
    with pytest.raises(QuantityError):
        parse(value)
    assert parse("1" * 3000) == int("1" * 3000)


@pytest.mark.parametrize(
    ("value", "count"), [("8", 8), ("8000m", 8), (0, 0), ("500m", None), ("-1", None), ("x", None), (None, None)], ids=repr
)
def test_whole_numbers_of_devices(value: object, count: int | None) -> None:
    """A fraction, a negative and an unreadable amount are no number of devices."""
    assert whole(value) == count


def test_few_bytes_have_no_suffix() -> None:
    """Not even a decimal one."""
    assert binary(1000) == "1000"
    assert binary(0) == "0"
