"""Drawings: what they count, and how large they get."""

from __future__ import annotations

from console.berths.drawing import WIDTH, bars, drawing
from console.berths.groups import Use


def _use(number: int, total: int, held: int, out: int = 0) -> Use:
    return Use(f"n{number}", "ready", total, held, total - held - out, out)


def test_each_device_has_a_cell() -> None:
    """On the nodes of a small group: a box for each, with a cross in it if it is of no use."""
    found = drawing([_use(0, 8, 3), _use(1, 8, 8), _use(2, 8, 0, 2)])
    assert found.tiles
    assert (len(found.held), len(found.free), sum(part.endswith("z") for part in found.out)) == (11, 11, 2)
    assert [one.text for one in found.texts] == ["6 free", "5 free", "full"]


def test_many_nodes_are_counted_by_what_is_free() -> None:
    """Five hundred nodes are a handful of bars, in one drawing of a few hundred bytes."""
    uses = [_use(at, 8, at % 9) for at in range(500)]
    found = drawing(uses)
    assert not found.tiles
    assert found.height < 300
    assert sum(map(len, found.held + found.free + found.out)) < 1000
    assert sum(bar.nodes for bar in bars(uses)) == 500
    assert sum(bar.free for bar in bars(uses)) == sum(one.free for one in uses)
    assert [bar.label for bar in bars(uses)] == [*(f"{number} free" for number in range(8, 0, -1)), "none free"]


def test_many_slices_are_told_in_classes() -> None:
    """Nodes of 56 slices have five bars at most."""
    found = [bar.label for bar in bars([_use(at, 56, at % 57) for at in range(100)])]
    assert found == ["all free", "≥ half free", "< half free", "none free"]


def test_nothing_is_drawn_outside_the_drawing() -> None:
    """Whatever the numbers, boxes and texts start within the width and the height."""
    for devices in range(1, 40):
        for nodes in (1, 5, 24, 25):
            found = drawing([_use(at, devices, at % (devices + 1)) for at in range(nodes)])
            data = "".join(found.held + found.free + found.out)
            starts = [part.split("h")[0].split("l")[0].split("L")[0].split() for part in data.split("M")[1:]]
            assert all(int(x) < WIDTH and int(y) < found.height for x, y in starts)
            assert all(0 <= one.x < WIDTH - 20 and 0 < one.y <= found.height for one in found.texts)
