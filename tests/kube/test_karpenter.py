"""Requirements that Karpenter cannot read; what those that it reads mean is shown in tests/kube/upstream."""

from __future__ import annotations

from kube.karpenter import requirement


def test_what_cannot_be_read_is_none() -> None:
    """An unknown operator, and a bound that is no number."""
    assert requirement("Near", ("a",)) is None
    assert requirement("Gt", ("a",)) is None
    assert requirement("Gt", ()) is None
