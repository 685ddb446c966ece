"""Wait until files change."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cli.policy_cases.files import files
from documents.files import stamp

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
