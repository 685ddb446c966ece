"""The bounds of what is kept of the objects of a cluster: of one that is too large, or beyond the share of its namespace, only
the name is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import orjson

from cluster.watch.kinds import Watched
from kube.tree import Raw, map_at
from policies.document import UNREAD

SHARE = 2 * 2**20
"""Bytes that are kept of the objects of one namespace, for each ``Watched.share``."""
ENTRY = 100
"""Bytes that each object counts besides its own: for its place in maps."""


def size_of(obj: Raw, length: int = 0) -> int:
    """Return the bytes that a trimmed object counts: its length as JSON, measured here if it is 0, and ENTRY.

    The last good spec in the status of Berth's own counts apart, and the larger part is taken: else a spec of more than half the bound
    could not be replaced, since Berth keeps the last good one until it has read the next.
    """
    if UNREAD in obj:
        return ENTRY
    length = length or _length(obj)
    if last_good := map_at(obj, "status").get("lastGood"):
        length = max(length - _length(last_good), _length(last_good))
    return length + ENTRY


def _length(value: object) -> int:
    try:
        return len(orjson.dumps(value))
    except TypeError:  # nested deeper than orjson writes, which is rare, or text that is no UTF-8
        return _deep_length(value)


def _deep_length(value: object) -> int:
    """Return about the length of a value as JSON, however deeply it is nested."""
    length, rest = 0, [value]
    while rest:
        part = rest.pop()
        if isinstance(part, dict):
            rest += [*part, *part.values()]
        elif isinstance(part, list):
            rest += part
        length += len(part) + 4 if isinstance(part, str) else 8
    return length


def size_problem(size: int, watched: Watched) -> str:
    """Return why an object of this size is not kept; "" if it is."""
    return f"larger than the {watched.most >> 10} KiB that Berth keeps of one object" if 0 < watched.most < size else ""


def share_problem(size: int, kept: int, watched: Watched) -> str:
    """Return why an object is not kept beside the ``kept`` bytes of its namespace; "" if it is."""
    if not watched.share or kept + size <= SHARE:
        return ""
    return f"beyond the {SHARE >> 20} MiB that Berth keeps of all {watched.share} of a namespace"


def strip_object(obj: Raw, why: str) -> Raw:
    """Return the object with nothing but its metadata and status, and the reason."""
    return {**obj, "spec": None, UNREAD: why}


class ListBounds:
    """The bounds while one list is read: so that no list is larger in memory than what is kept of it."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._kept: Counter[str] = Counter()
        """namespace -> bytes"""

    def within(self, objects: Iterable[Raw]) -> list[Raw]:
        """Return the objects, as far as they are kept."""
        return list(objects) if not self._watched.most else [self._bounded(obj) for obj in objects]

    def release(self, obj: Raw) -> None:
        """Count an object no more that ``within`` returned."""
        if self._shared and UNREAD not in obj:
            self._kept[_namespace(obj)] -= size_of(obj)

    @property
    def _shared(self) -> bool:
        """True for objects that count towards the share of their namespace here: Berth's own, of which the oldest are kept, count
        in ``DeltaQueue`` alone."""
        return bool(self._watched.share) and not self._watched.ours

    def _bounded(self, obj: Raw) -> Raw:
        if UNREAD in obj:  # too large already: not counted, so that ``release`` has nothing to take back
            return obj
        size, namespace = size_of(obj), _namespace(obj)
        if why := size_problem(size, self._watched) or (share_problem(size, self._kept[namespace], self._watched) if self._shared else ""):
            return strip_object(obj, why)
        if self._shared:
            self._kept[namespace] += size
        return obj


def _namespace(obj: Raw) -> str:
    namespace: str = obj["metadata"].get("namespace") or ""
    return namespace
