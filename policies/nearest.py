"""The nearest right name, for messages."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from difflib import get_close_matches

_MOST_LISTED = 20
"""Longer lists bury the message; the reference and ``berth gpus`` have them whole."""


_LONGEST = 128
"""characters of a name that is looked for: twice the longest that is known; to compare a megabyte takes a quarter of a second"""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` was probably meant to be, or None. Case never keeps names apart."""
    return None if len(name) > _LONGEST else _nearest(name, frozenset(known))


@functools.lru_cache(maxsize=2048)
def _nearest(name: str, known: frozenset[str]) -> str | None:
    """A pod is judged several times over, on each platform: the comparison, a millisecond with two hundred names, is made once."""
    folded = {candidate.lower(): candidate for candidate in sorted(known, reverse=True)}
    found = get_close_matches(name.lower(), sorted(folded), n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def hint(name: str, known: Iterable[str]) -> str:
    """``; did you mean "hopper"?``, else the known names: ``; known: ampere, hopper``."""
    names = sorted(known)
    near = nearest(name, names)
    if near is not None:
        return f'; did you mean "{near}"?'
    return f"; known: {listed(names)}" if names else ""


def listed(names: Iterable[str]) -> str:
    """``a, b, c``, cut after the twentieth with a count of the rest."""
    shown = list(names)
    rest = len(shown) - _MOST_LISTED
    return ", ".join(shown[:_MOST_LISTED]) + (f" and {rest} more" if rest > 0 else "")
