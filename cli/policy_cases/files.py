"""The files that paths name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

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
