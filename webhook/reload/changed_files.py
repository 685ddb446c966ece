"""Policy files that change while the server runs: they are read again once they have stopped changing, and after an error."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

from cluster import full_collections
from documents.files import Stamp, read_once, stamp
from sources.sources import LoadedSources, SourceLoader, Sources

T = TypeVar("T")
MOST_CHECKS = 60
"""The most checks between two readings of a set that is wrong or cannot be read."""


class ChangedFiles:
    """Detects changes of files; called once a second.

    A change counts only when two checks in a row find the same: a set that is being copied is never read by
    half, and a file written twice in one tick of the clock is read after the second write.
    """

    def __init__(self, sources: Sources) -> None:
        self._loader = SourceLoader(sources)
        self._sources = sources
        self._read: Stamp = ()
        self._seen: Stamp = ()
        self._once: tuple[str, ...] = ()
        self._failures = 0
        self._checks_left = 0
        """Checks until the set that failed is read again."""
        self._error = ""

    async def first(self) -> LoadedSources:
        """Read the files at the start. Raises SourcesError with all that is wrong."""
        loaded = await beside(self._load_first)
        unfollowed = tuple(
            f"{path}: can be read only once, so changes of policies are not detected; give files or folders" for path in self._once
        )
        return replace(loaded, warnings=loaded.warnings + unfollowed)

    def _load_first(self) -> LoadedSources:
        self._read = self._seen = stamp(self._sources.paths)
        self._once = read_once(self._sources.paths)
        return self._loader.load()

    async def changed(self) -> LoadedSources | None:
        """Return the new set, or None if there is none that has stopped changing.

        Raises SourcesError, or whatever else the reading ended with, once for each set and error. The set is read
        again after 1, 2, 4 and more checks: a file may have been unreadable for a moment, and then does not change.
        """
        if self._once:
            return None
        try:
            loaded = await self._read_if_due()
        except Exception as error:
            self._failures += 1
            self._checks_left = min(MOST_CHECKS, 2 ** min(self._failures - 1, 10))
            text = f"{type(error).__name__}: {error}"
            if text == self._error:
                return None
            self._error = text
            raise
        if loaded is not None:
            self._failures, self._error = 0, ""
        return loaded

    async def _read_if_due(self) -> LoadedSources | None:
        current = await beside(lambda: stamp(self._sources.paths))
        settled, self._seen = current == self._seen, current
        if not settled:
            return None
        if current != self._read:
            self._failures, self._error = 0, ""
        else:
            self._checks_left -= 1
            if not self._failures or self._checks_left > 0:
                return None
        self._read = current
        return await beside(self._load_again)

    def _load_again(self) -> LoadedSources:
        with pauseless_collection():
            return self._loader.load()


@contextlib.contextmanager
def pauseless_collection() -> Iterator[None]:
    """Keep the garbage collector short during work on a thread that makes many lasting objects.

    Meanwhile it examines only the young objects, and afterwards never any of these. Otherwise it would
    examine all of them, several times, and every call would wait: for 80 ms with a thousand policies. The new
    objects must be free of cycles, or what remains of them after their replacement is never freed.
    """
    with full_collections.postponed():
        try:
            yield
        finally:
            gc.freeze()


async def beside(work: Callable[[], T]) -> T:
    """Return the result of ``work``, run on a thread of its own so that calls go on.

    It is a daemon thread, not the loop's executor: one that waits for a file that never answers must not keep
    the process from ending.
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
        del future  # else the error's frame and the future hold each other, and all that was read of a rejected set
        raise
