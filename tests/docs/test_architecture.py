"""The picture of the source's rooms, drawn from their imports."""

from __future__ import annotations

from pathlib import Path

from tests.docs import architecture
from tests.support.module_imports import Modules


def made(root: Path, **files: str) -> Modules:
    """Modules of a tree with these files; ``__`` in a name is a folder."""
    for name, text in files.items():
        file = root / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'"""."""\n{text}\n')
    return architecture.modules(root)


def graph(found: Modules) -> dict[str, set[str]]:
    return architecture.between(found, architecture.rooms(found))


def test_no_rooms_import_each_other() -> None:
    """Every module and every room can be read with the ones below it alone."""
    found = architecture.modules()
    assert architecture.circles(found.imports) == []
    assert architecture.circles(graph(found)) == []


def test_a_circle_is_found_and_drawn_in_red(tmp_path: Path) -> None:
    """Also where the rooms do it by different modules; an import for types alone is none."""
    files = {
        "policies__a__one": "from policies.b import two",
        "policies__b__two": "import typing",
        "policies__b__three": "from policies.a import one",
        "policies__b__four": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from policies.b import three",
    }
    found = made(tmp_path, **files)
    assert architecture.circles(found.imports) == []
    assert architecture.circles(graph(found)) == [["policies.a", "policies.b"]]
    assert architecture.drawn(graph(found)).count('class="up"') == 1


def test_what_uses_the_rooms_of_its_package_stands_above_them(tmp_path: Path) -> None:
    """A package with rooms is two boxes: what uses them, and the vocabulary that they share."""
    files = {
        "policies__engine": "from policies.rules import tolerations",
        "policies__verdict": "import json",
        "policies__rules__tolerations": "from policies.verdict import Edit",
    }
    rows = architecture.rows(graph(made(tmp_path, **files)))
    assert rows == [["policies"], ["policies.rules"], ["policies (vocabulary)"]]


def test_an_arrow_that_a_longer_path_shows_is_left_out(tmp_path: Path) -> None:
    """Of three rooms in a row two arrows are drawn, whatever the first imports of the last."""
    files = {"cli__x": "import webhook.y\nimport certs.z", "webhook__y": "import certs.z", "certs__z": "import json"}
    assert architecture.drawn(graph(made(tmp_path, **files))).count("marker-end") == 2
