"""The objects on which templates of other workloads rest, such as the runtime that a TrainJob names, in a bounded size."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import orjson

from kube.tree import Raw
from policies.document import Document

MOST = 2**24
"""Bytes of all of them: a few thousand. What is past it is not found, so that workloads that name it are passed over."""
BaseKey = tuple[str, str, str]
"""(kind with its API group, namespace, name)"""


class Bases:
    """The store of their reflectors, see ``cluster.watch.workload_kinds``. ``changed`` is set by every change."""

    def __init__(self, changed: asyncio.Event) -> None:
        self._changed = changed
        self._texts: dict[BaseKey, bytes] = {}
        self._size = 0

    async def replace(self, kind: str, objects: Sequence[Raw]) -> None:
        """Take a full list of one kind."""
        listed = {_key(kind, one) for one in objects}
        for key in [key for key in self._texts if key[0] == kind and key not in listed]:
            self._put(key, None)
        for one in objects:
            self._put(_key(kind, one), one["base"])

    def put(self, kind: str, obj: Raw) -> None:
        """Take a new or changed object."""
        self._put(_key(kind, obj), obj["base"])

    def remove(self, kind: str, obj: Raw) -> None:
        """Take the end of an object."""
        self._put(_key(kind, obj), None)

    def _put(self, key: BaseKey, text: bytes | None) -> None:
        before = self._texts.get(key)
        if before is not None:
            self._size -= len(self._texts.pop(key))
        if text is not None and self._size + len(text) <= MOST:
            self._texts[key] = text
            self._size += len(text)
        if self._texts.get(key) != before:
            self._changed.set()

    def find(self, kinds: Sequence[tuple[str, str]], namespace: str, name: str) -> Document | None:
        """Return the object of that name, of the first of the kinds (API group, kind): in the namespace, or in none."""
        for group, kind in kinds:
            for where in (namespace, ""):
                text = self._texts.get((f"{kind}.{group}", where, name))
                if text is not None:
                    return Document(file="", value=orjson.loads(text))
        return None


def _key(kind: str, one: Raw) -> BaseKey:
    metadata = one["metadata"]
    return kind, metadata.get("namespace") or "", metadata["name"]
