"""What has come from the API server and is not taken yet, and what the replica knows of: one version of each object."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import orjson

from cluster.kinds import Raw
from policies.stored import Key


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
        self._sums: dict[str, int] = {}

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
        """The same for two that know the same versions of the same objects (``digest_of``). Kept up, as 10,000 take 20 ms to add up."""
        return f"{self._sums.get(kind, 0):016x}"

    def _came(self, kind: str, place: tuple[str, str], one: Raw) -> None:
        known = self._known.setdefault(kind, {})
        before, now = known.get(place), _version(one)
        known[place] = now
        leaves = 0 if before is None else _share(place, before.version)
        self._sums[kind] = (self._sums.get(kind, 0) + _share(place, now.version) - leaves) % _MODULUS
        self._waiting[kind, *place] = one
        self.filled.set()

    def _gone(self, kind: str, place: tuple[str, str]) -> None:
        before = self._known[kind].pop(place)
        self._sums[kind] = (self._sums[kind] - _share(place, before.version)) % _MODULUS
        self._waiting[kind, *place] = None
        self.filled.set()


_MODULUS = 2**64


def _share(place: tuple[str, str], version: str) -> int:
    """What one object adds to the digest of its kind: in any order the sum is the same."""
    namespace, name = place
    text = f"{namespace}/{name}@{version}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())


def digest_of(objects: Iterable[Raw]) -> str:
    """Of all objects of a kind: the sum of the BLAKE2b hashes, 8 bytes each, of ``namespace/name@resourceVersion``, as 16 hex digits."""
    return f"{sum(_share(_place(one), one['metadata']['resourceVersion']) for one in objects) % _MODULUS:016x}"


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
