"""The smallest group of sets that have nothing in common, which a denial names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MOST_PAIRED = 40
"""The most distinct sets of which every pair is tried: 800, in a tenth of a millisecond. A pod under ten
policies has some thirty."""


def smallest(sets: Sequence[int], all_rows: int) -> tuple[int, ...]:
    """Return the indices of a small group of sets that have nothing in common; () if they have something.

    Groups of one and of two are tried first, up to ``MOST_PAIRED`` distinct sets; larger groups are found by
    dropping what is not needed.
    """
    if _common(sets, all_rows):
        return ()
    first = {rows: i for i, rows in reversed(list(enumerate(sets)))}
    if 0 in first:
        return (first[0],)
    distinct = sorted(first.values())
    for at, i in enumerate(distinct if len(distinct) <= MOST_PAIRED else ()):
        for j in distinct[at + 1 :]:
            if not sets[i] & sets[j]:
                return (i, j)
    return _needed(sets, all_rows)


def _needed(sets: Sequence[int], all_rows: int) -> tuple[int, ...]:
    """Return the sets that remain after dropping each set in turn if the others have nothing in common
    without it."""
    behind = [all_rows]
    for rows in reversed(sets):
        behind.append(behind[-1] & rows)
    kept, common = [], all_rows
    for i, rows in enumerate(sets):
        if common & behind[len(sets) - i - 1]:
            kept.append(i)
            common &= rows
    return tuple(kept)


def _common(sets: Iterable[int], all_rows: int) -> int:
    common = all_rows
    for rows in sets:
        common &= rows
    return common
