"""When files count as changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from cli.policy_cases import files


def ticks(*steps: Callable[[], object]) -> Callable[[], None]:
    """What happens at each wait, in order; more waits than that end the test."""
    left = list(steps)

    def wait() -> None:
        if not left:
            raise TimeoutError
        left.pop(0)()

    return wait


def nothing() -> None:
    pass


def noticed(path: Path, *steps: Callable[[], object]) -> int:
    """How often a change is told while these things happen, to one who reads the files anew each time."""
    number, seen = 0, {str(path): files.look(str(path))}
    try:
        for _ in files.settled(seen, ticks(*steps)):
            number += 1
            seen[str(path)] = files.look(str(path))
    except TimeoutError:
        pass
    return number


def put(file: Path, text: str) -> Callable[[], object]:
    return lambda: file.write_text(text)


def test_a_change_is_told_once_it_has_settled(tmp_path: Path) -> None:
    """Two writes in a row are one change; without a write there is none."""
    file = tmp_path / "c.yaml"
    file.write_text("a: 1")
    assert noticed(file, nothing, nothing) == 0
    assert noticed(file, put(file, "a: 22"), nothing) == 1
    assert noticed(file, put(file, "a: 333"), put(file, "a: 4444"), nothing) == 1
    assert noticed(file, put(file, "a: 55555"), nothing, nothing, put(file, "b: 1"), nothing) == 2


def test_new_and_removed_files_are_changes(tmp_path: Path) -> None:
    """In any folder below; and JSON of a folder of policies."""
    (tmp_path / "deep").mkdir()
    file = tmp_path / "deep" / "new.yaml"
    assert noticed(tmp_path, put(file, "a: 1"), nothing) == 1
    assert noticed(tmp_path, lambda: os.remove(file), nothing) == 1
    assert noticed(tmp_path, put(tmp_path / "p.json", "{}"), nothing) == 1


def test_a_change_while_files_are_read_is_not_missed(tmp_path: Path) -> None:
    """What was seen is what they looked like before."""
    file = tmp_path / "c.yaml"
    file.write_text("a")
    seen: files.Seen = {str(file): files.look(str(file))}
    file.write_text("bb")
    assert next(files.settled(seen, ticks(nothing, nothing))) is None
