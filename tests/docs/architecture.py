"""The rooms of the source and who imports whom, as docs/architecture.svg has them (``tests.generated``).

Every fact in the picture is read from the imports. A package that has rooms of its own is drawn as two boxes: the modules that use its
rooms stand above them, the modules that its rooms use, its vocabulary, below. An arrow that longer paths already show is left out; an arrow
that runs upwards, and so closes a circle, is red.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

from tests.support import module_imports
from tests.support.module_imports import ROOT, Graph, Modules

BOX, ROW, GAP, MARGIN = (148, 40), 92, 14, 16
"""width and height of a box, distance of rows, gap between boxes, margin: pixels"""


def modules(root: Path = ROOT) -> Modules:
    """All modules of the source with code in them, more than a docstring."""
    found = module_imports.modules(root)
    code = {name: file for name, file in found.files.items() if len(module_imports.tree(file).body) > 1}
    return Modules(code, {name: found.imports[name] & code.keys() for name in code})


def rooms(found: Modules) -> dict[str, str]:
    """Dotted name -> the box that the module is drawn in."""
    folders = {name: ".".join(file.relative_to(_root_of(name, file)).parent.parts) for name, file in found.files.items()}
    parents = {
        folders[other] for name, imported in found.imports.items() for other in imported if folders[name].startswith(f"{folders[other]}.")
    }

    def box(name: str) -> str:
        folder = folders[name]
        if folder not in parents:
            return folder
        return folder if _reached(found.imports, name, folder, folders) else f"{folder} (vocabulary)"

    return {name: box(name) for name in found.files}


def _root_of(name: str, file: Path) -> Path:
    depth = len(name.split(".")) + (file.name == "__init__.py")
    return file.parents[depth - 1]


def _reached(imports: Graph, name: str, folder: str, folders: Mapping[str, str]) -> bool:
    """Whether the module imports one of the rooms that stand on the folder's own modules, directly or through other modules of it."""
    standing = {folders[one] for one, found in imports.items() for other in found if folders[other] == folder}
    open_, seen = [name], {name}
    while open_:
        for found in imports[open_.pop()] - seen:
            if folders[found].startswith(f"{folder}.") and folders[found] in standing:
                return True
            if folders[found] == folder:
                seen.add(found)
                open_.append(found)
    return False


def between(found: Modules, boxes: Mapping[str, str]) -> dict[str, set[str]]:
    """Box -> the boxes that it imports from."""
    graph: dict[str, set[str]] = {box: set() for box in boxes.values()}
    for name, imported in found.imports.items():
        graph[boxes[name]] |= {boxes[other] for other in imported} - {boxes[name]}
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """Groups that reach each other, each sorted; none in a tree that reads downwards."""
    reach = {node: _reachable(graph, node) for node in graph}
    groups = {tuple(sorted(other for other in reach[node] if node in reach[other])) for node in graph}
    return [list(group) for group in sorted(groups) if len(group) > 1]


def _reachable(graph: Graph, start: str) -> set[str]:
    open_, seen = list(graph[start]), set[str]()
    while open_:
        if (node := open_.pop()) not in seen:
            seen.add(node)
            open_.extend(graph[node])
    return seen


def rows(graph: Graph) -> list[list[str]]:
    """Who imports stands above whom it imports; of a circle the one with most arrows out stands first."""
    order = _order(graph)
    at = {node: index for index, node in enumerate(order)}
    level: dict[str, int] = {}
    for node in order:
        level[node] = 1 + max((level[other] for other in order[: at[node]] if node in graph[other]), default=-1)
    for node in reversed(order):  # as low as whoever it imports lets it stand
        below = [level[other] for other in graph[node] if at[other] > at[node]]
        level[node] = min(below) - 1 if below else max(level.values())
    return [sorted(node for node in graph if level[node] == row) for row in range(max(level.values()) + 1)]


def _order(graph: Graph) -> list[str]:
    left, order = set(graph), []
    while left:
        imported = defaultdict(int, {node: sum(node in graph[other] for other in left) for node in left})
        order.append(min(left, key=lambda node: (imported[node], -len(graph[node] & left), node)))
        left.remove(order[-1])
    return order


def drawn(graph: Graph) -> str:
    """The picture as SVG text, readable on light and dark pages."""
    placed = [row for row in rows(graph) if row]
    width = max(len(row) for row in placed) * (BOX[0] + GAP) - GAP + 2 * MARGIN
    at = {
        node: (round((width - len(row) * (BOX[0] + GAP) + GAP) / 2) + column * (BOX[0] + GAP), MARGIN + number * ROW)
        for number, row in enumerate(placed)
        for column, node in enumerate(row)
    }
    lines = [_arrow(at[one], at[other]) for one, other in sorted(_needed(graph, at))]
    height = MARGIN * 2 + (len(placed) - 1) * ROW + BOX[1]
    style = (
        "<style>text{font:12px sans-serif;fill:#222}rect{fill:#eef3fa;stroke:#5b7ba6}path{fill:none;stroke:#8a97a8}.up{stroke:#c0392b}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}rect{fill:#243247}path{stroke:#66758a}}</style>"
    )
    shape = 'viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"'
    marker = f'<marker id="to" {shape}><path d="M0 0L8 4L0 8"/></marker>'
    title = 'role="img" aria-label="Packages of the source and their imports"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {title}>'
    return "\n".join([head, style, f"<defs>{marker}</defs>", *lines, *(_box(node, *at[node]) for node in sorted(at)), "</svg>"]) + "\n"


def _needed(graph: Graph, at: Mapping[str, tuple[int, int]]) -> Iterator[tuple[str, str]]:
    """Arrows upwards, and those downwards that no longer path shows."""
    down = {node: {other for other in graph[node] if at[other][1] > at[node][1]} for node in graph}
    for node in graph:
        yield from ((node, other) for other in graph[node] - down[node])
        yield from ((node, other) for other in down[node] if not any(other in _reachable(down, step) for step in down[node] - {other}))


def _arrow(one: tuple[int, int], other: tuple[int, int]) -> str:
    x, to = one[0] + BOX[0] // 2, other[0] + BOX[0] // 2
    if other[1] > one[1]:
        y, end = one[1] + BOX[1], other[1]
        bend = (end - y) // 2
        return f'<path d="M{x} {y}C{x} {y + bend} {to} {end - bend} {to} {end}" marker-end="url(#to)"/>'
    y, end = one[1], other[1] + BOX[1]
    return f'<path class="up" d="M{x} {y}C{x} {y - 30} {to} {end + 30} {to} {end}" marker-end="url(#to)"/>'


def _box(node: str, x: int, y: int) -> str:
    name, _, kind = node.partition(" ")
    first, second = escape(name.replace(".", "/") + "/"), escape(kind)
    middle = x + BOX[0] // 2
    lines = [(first, y + (17 if second else 25))] + ([(second, y + 32)] if second else [])
    texts = "".join(f'<text x="{middle}" y="{line}" text-anchor="middle">{text}</text>' for text, line in lines)
    return f'<rect x="{x}" y="{y}" width="{BOX[0]}" height="{BOX[1]}" rx="5"/>{texts}'


def picture() -> str:
    """The picture of the source as it is."""
    found = modules()
    return drawn(between(found, rooms(found)))
