"""Policy files that change while the server runs: read again once they have come to rest."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

from webhook.files import Stamp, read_once, stamp
from webhook.sources import Loaded, Sources, load

T = TypeVar("T")
NEVER = 10**6
"""Collections of the middle generation between two full ones."""


class FollowedSources:
    """Asked once a second. A change counts only when two looks in a row see the same: a set that is being copied is never
    read by half, and a file written twice in one tick of the clock is read after the second."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._read: Stamp = ()
        self._seen: Stamp = ()
        self._once: tuple[str, ...] = ()

    async def first(self) -> Loaded:
        """Read at the start. Raises SourcesError with all that is wrong."""
        loaded = await beside(self._load_first)
        told = tuple(f"{path}: can be read but once, so no policy is followed; give files or folders" for path in self._once)
        return replace(loaded, warnings=loaded.warnings + told)

    def _load_first(self) -> Loaded:
        self._read = self._seen = stamp(self._sources.paths)
        self._once = read_once(self._sources.paths)
        return load(self._sources)

    async def changed(self) -> Loaded | None:
        """The new set, or None where nothing new has come to rest. Raises SourcesError, once for each set that is wrong."""
        if self._once:
            return None
        found = await beside(lambda: stamp(self._sources.paths))
        settled, self._seen = found == self._seen, found
        if not settled or found == self._read:
            return None
        self._read = found
        return await beside(self._load_again)

    def _load_again(self) -> Loaded:
        with pauseless_collection():
            return load(self._sources)


@contextlib.contextmanager
def pauseless_collection() -> Iterator[None]:
    """For work on a thread that makes many objects which stay: the garbage collector looks at the young ones alone meanwhile, and at
    none of these ever after. Else it looks at all of them, several times, and every call waits: for 80 ms with a thousand policies.
    What is made must be free of cycles, or what is left of it when it is replaced is never found."""
    young, middle, full = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(young, middle, full)


async def beside(work: Callable[[], T]) -> T:
    """The result of ``work``, done on a thread of its own so that calls go on.

    A daemon thread, not the loop's executor: one that waits for a file that never answers must not keep the process from
    ending.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(settle: Callable[[], None]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: None if future.done() else settle())

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            tell(partial(future.set_exception, error))
        else:
            tell(partial(future.set_result, result))

    threading.Thread(target=run, daemon=True).start()
    try:
        return await future
    except Exception:
        del future  # what is raised holds this frame, which would hold it: with all that was read of a set that is refused
        raise
