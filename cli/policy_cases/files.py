"""The files that paths name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from documents.files import stamp
from policies.document import InputError

SUFFIXES = (".yaml", ".yml")


def files(paths: Sequence[str]) -> Iterator[str | InputError]:
    """Yield the files that the paths name: of a folder every YAML file in it and in its folders, hidden ones left out."""
    for path in paths:
        if not Path(path).is_dir():
            yield path
            continue
        inside = sorted(_inside(path))
        if not inside:
            yield InputError(file=path, message="the folder has no .yaml or .yml file; pass the folder of your test cases")
        yield from inside


def _inside(folder: str) -> Iterator[str]:
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (os.path.join(root, name) for name in names if name.endswith(SUFFIXES) and not name.startswith("."))


Seen = dict[str, object]
"""Path -> what a file, or all files of a folder, looked like."""


def look(path: str) -> object:
    """Return a value that changes when the files that a path names do."""
    return stamp([one for one in files([path]) if isinstance(one, str)]), stamp([path])


def settled(seen: Seen, wait: Callable[[], None]) -> Iterator[None]:
    """Yield whenever a path no longer looks as it was seen, and has then stayed the same for one look.

    Whoever reads the files anew puts what was seen then into ``seen``, looked at before they were read: a change in
    between is not missed. ``wait`` is called between two looks.
    """
    while True:
        wait()
        now = {path: look(path) for path in seen}
        if now == seen:
            continue
        while True:
            wait()
            before, now = now, {path: look(path) for path in seen}
            if now == before:
                break
        yield
