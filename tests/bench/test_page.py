"""Parts of bench/RESULTS.md that commands write."""

from __future__ import annotations

from pathlib import Path

from tests.support import results_page


def test_only_its_own_part_is_replaced(tmp_path: Path) -> None:
    """What others wrote into the page stays, however often a command runs."""
    results = tmp_path / "RESULTS.md"
    results.write_text("# Results\n\nBy hand.\n")
    results_page.write("prove", ["## make prove", "12 passed"], results)
    results.write_text(results.read_text() + "\nMore by hand.\n")
    results_page.write("bench engine", ["## engine"], results)
    results_page.write("prove", ["## make prove", "13 passed"], results)
    text = results.read_text()
    assert text.startswith("# Results\n\nBy hand.\n")
    assert "\nMore by hand.\n" in text
    assert "12 passed" not in text
    assert text.count("## make prove") == text.count("## engine") == 1
    assert text.index("13 passed") < text.index("More by hand.")


def test_a_page_that_is_not_there_is_made(tmp_path: Path) -> None:
    """The first run on a machine needs nothing."""
    results_page.write("prove", ["12 passed"], tmp_path / "RESULTS.md")
    assert (tmp_path / "RESULTS.md").read_text().startswith("# Results\n")


def test_a_table_has_figures_on_the_right() -> None:
    """Every column but the first."""
    assert results_page.table(("who", "ms"), [("Berth", "1")]) == ["| who | ms |", "| --- | ---: |", "| Berth | 1 |"]


def test_a_bar_that_was_missed_is_said_loudly() -> None:
    """A reader who looks for what failed finds it."""
    assert results_page.shown("four times", "3.9", held=False) == "- **NOT held**: four times: 3.9"
    assert results_page.shown("four times", "4.1", held=True) == "- held: four times: 4.1"
