"""What make prove writes into bench/RESULTS.md."""

from __future__ import annotations

from datetime import UTC, datetime

from bench.record import replaced, section

NOW = datetime(2026, 11, 20, tzinfo=UTC)
OUTPUT = ["....", "1.50s call     tests/a.py::test_a", "===== 12 passed in 3.10s ====="]


def test_the_closing_line_and_the_slowest_are_kept() -> None:
    """The date, pytest's outcome and what took longest."""
    part = section(OUTPUT, NOW)
    assert "2026-11-20, CPython 3." in part
    assert "Outcome: **12 passed in 3.10s**" in part
    assert "1.50s call     tests/a.py::test_a" in part


def test_only_its_own_part_is_replaced() -> None:
    """What others wrote into the page stays, however often prove runs."""
    once = replaced("# Results\n\nBy hand.\n", section(OUTPUT, NOW))
    twice = replaced(once + "\nMore by hand.\n", section(["===== 13 passed ====="], NOW))
    assert twice.startswith("# Results\n\nBy hand.\n")
    assert twice.endswith("\nMore by hand.\n")
    assert "12 passed" not in twice
    assert twice.count("## make prove") == 1
