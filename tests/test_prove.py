"""What make prove writes into bench/RESULTS.md."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.prove import section

NOW = datetime(2026, 11, 20, tzinfo=UTC)
OUTPUT = ["....", "1.50s call     tests/a.py::test_a", "===== 12 passed in 3.10s ====="]


def test_the_closing_line_and_the_slowest_are_kept() -> None:
    """The date, pytest's outcome and what took longest."""
    lines = "\n".join(section(OUTPUT, NOW))
    assert "2026-11-20, CPython 3." in lines
    assert "Outcome: **12 passed in 3.10s**" in lines
    assert "1.50s call     tests/a.py::test_a" in lines
