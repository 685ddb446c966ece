"""Where figures of live tests go: printed, and in ``make prove`` kept on the page of results."""

from __future__ import annotations

import fcntl
from collections.abc import Iterable

from tests.support import machine, results_page
from tests.support.counts import PROVE


def record(name: str, lines: Iterable[str]) -> None:
    """A part of the page, by its name. Another worker of pytest may be writing another part."""
    text = list(lines)
    print("\n".join(text))
    if PROVE:
        with results_page.RESULTS.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            results_page.write(name, [*text, "", f"`make prove`: {machine.described()}."])
