"""What has come from the API server and is not taken yet, and what the replica knows of: one version of each object."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

Raw = dict[str, Any]
Key = tuple[str, str, str]
"""(kind, namespace or "", name)"""


class _Version(NamedTuple):
    """Which state of an object is known."""

    uid: str
    version: str
    """resourceVersion"""
    contents: int
    """a hash: a store that was restored from a backup gives the same resourceVersion a second time"""


_UNLIKE = itertools.count()


class Inbox:
    """What reflectors write into and one reader takes from. On the event loop alone; see ``reflector.Sink``."""

    def __init__(self) -> None:
        self.filled = asyncio.Event()
        """set while something waits to be taken"""
        self._waiting: dict[Key, Raw | None] = {}
        self._known: dict[str, dict[tuple[str, str], _Version]] = {}
        """kind -> (namespace, name)"""

    def replace(self, kind: str, objects: Sequence[Raw]) -> None:
        """These are all that there are of the kind. What is known in this very version is not taken again."""
        known = self._known.setdefault(kind, {})
        listed = {_place(one): one for one in objects}
        for place in [place for place in known if place not in listed]:
            self._gone(kind, place)
        for place, one in listed.items():
            if known.get(place) != _version(one):
                self._came(kind, place, one)
        self.filled.set()  # also of an empty list: whoever waits for the first one is told

    def put(self, kind: str, obj: Raw) -> None:
        """It is so from now on."""
        self._came(kind, _place(obj), obj)

    def remove(self, kind: str, obj: Raw) -> None:
        """It is gone."""
        if _place(obj) in self._known.get(kind, {}):
            self._gone(kind, _place(obj))

    def take(self) -> dict[Key, Raw | None]:
        """Everything since the last time, each object once; None for one that is gone."""
        taken, self._waiting = self._waiting, {}
        self.filled.clear()
        return taken

    def sizes(self) -> Mapping[str, int]:
        """Objects of each kind."""
        return {kind: len(known) for kind, known in self._known.items()}

    def digest(self, kind: str) -> str:
        """The same for two that know the same versions of the same objects: of ``namespace/name@resourceVersion``, sorted."""
        lines = sorted(f"{namespace}/{name}@{found.version}" for (namespace, name), found in self._known.get(kind, {}).items())
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

    def _came(self, kind: str, place: tuple[str, str], one: Raw) -> None:
        self._known.setdefault(kind, {})[place] = _version(one)
        self._waiting[kind, *place] = one
        self.filled.set()

    def _gone(self, kind: str, place: tuple[str, str]) -> None:
        del self._known[kind][place]
        self._waiting[kind, *place] = None
        self.filled.set()


def _place(one: Raw) -> tuple[str, str]:
    metadata = one["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _version(one: Raw) -> _Version:
    metadata = one["metadata"]
    try:
        contents = hash(orjson.dumps(one))
    except ValueError:  # nested deeper than it writes, which few are
        contents = next(_UNLIKE)
    return _Version(metadata.get("uid", ""), metadata["resourceVersion"], contents)
