"""The two drawings."""

from __future__ import annotations

from xml.etree import ElementTree

from bench.measuring import drawing

LINES = {
    "half": [(0.0, 150.0), (50.0, 300.0), (90.0, 400.0), (99.0, 900.0), (99.9, 2500.0), (100.0, 9000.0)],
    "nine tenths": [(0.0, 150.0), (50.0, 500.0), (90.0, 900.0), (99.0, 2900.0), (99.9, 5500.0), (100.0, 9000.0)],
}
STAGES = ("decode", "TLS <&>")
SVG = "{http://www.w3.org/2000/svg}"


def test_latencies_are_drawn_with_marks_and_axes() -> None:
    """A line for each run with p50, p99 and p99.9 marked and told, both axes named, in a few KB of well-formed SVG."""
    text = drawing.latencies("Latency", LINES)
    root = ElementTree.fromstring(text)
    texts = " ".join(element.text or "" for element in root.iter(f"{SVG}text"))
    assert len(list(root.iter(f"{SVG}circle"))) == 6
    assert "half: p50 0.30 ms, p99 0.90 ms, p99.9 2.50 ms" in texts
    assert "milliseconds since the call was due" in texts
    assert "per cent of calls answered within" in texts
    assert "prefers-color-scheme:dark" in text
    assert len(text) < 10_000


def test_points_stay_on_the_paper() -> None:
    """Whatever the latencies are."""
    root = ElementTree.fromstring(drawing.latencies("Latency", {"slow": [(0.0, 3.0), (50.0, 2e6), (99.99, 3e7), (100.0, 4e7)]}))
    marks = [(float(circle.get("cx", -1)), float(circle.get("cy", -1))) for circle in root.iter(f"{SVG}circle")]
    assert all(0 <= x <= drawing.WIDTH and 0 <= y <= drawing.HEIGHT for x, y in marks)


def test_a_bar_is_as_long_as_its_stages() -> None:
    """The longest fills the width, others are on the same scale; names are escaped."""
    root = ElementTree.fromstring(
        drawing.bars("CPU", STAGES, {"a": {STAGES[0]: 30.0, STAGES[1]: 70.0}, "b": {STAGES[0]: 25.0, STAGES[1]: 25.0}})
    )
    widths = [float(rect.get("width", 0)) for rect in root.iter(f"{SVG}rect") if rect.get("height") == "26"]
    assert abs(sum(widths[:2]) - 2 * sum(widths[2:])) < 1
    assert STAGES[1] in [element.text for element in root.iter(f"{SVG}text")]
