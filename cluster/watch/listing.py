"""The list of all objects of a kind, each trimmed as it arrives: in a stream, or page by page where the server has none. ``survey``
lists several kinds once: a kind that may not be read, or that the server lacks, is named with the reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cluster.client.api_client import Client
from cluster.client.errors import Garbled, Rejected, Reply, ResponseTooLarge
from cluster.client.line_stream import MOST
from cluster.watch.bounds import ListBounds
from cluster.watch.connectivity import unauthorized
from cluster.watch.decoder import ListPage, decode_page, event
from cluster.watch.discovery import find_absent
from cluster.watch.kinds import Watched
from kube.tree import Raw

SECONDS = 60.0
"""Timeout for one page: an API server that has just restarted, or is slow, may take half of it."""
STREAM, BEGINS = 120.0, 3.0
"""Timeout for a whole stream, and for its first line: a server that does not know of such streams would send nothing."""
UNKNOWN = (400, 405, 406, 422)
"""The statuses with which a server tells that it does not stream lists."""
FIRST, GROWS = 10, 4
"""Objects of a first page, whose size is unknown; how many times larger than the one before a page is at most."""
PAGE = 2**18
"""Bytes of a page that are aimed at: parsing them takes some 10 ms, during which no call is answered."""
LARGE_PAGE = 2**20
"""Bytes of a page of several objects at which it is given up for a smaller one."""
AT_ONCE = 4
"""Lists at a time: kube-apiserver's share for one user is a few seats (API priority and fairness)."""
ATTEMPTS = 3
"""Lists of one kind before it is given up: its pages expire after five minutes (410), and a server that is busy
says when to come again (429)."""
AGAIN = (410, 429, 500, 503, 504)
"""Statuses after which a list is tried again."""
LONGEST = 10.0
"""Most seconds of a server's Retry-After that are waited for."""


class Listing:
    """Lists one kind, in the first of its versions that the server has."""

    def __init__(self, client: Client, watched: Watched, namespace: str = "", *, streams: bool = False) -> None:
        """Create a listing of the objects in all namespaces, or in one. ``streams``: the objects are watched afterwards, so that a
        list may be streamed, which takes the right to watch."""
        self._client = client
        self._watched = watched
        self._namespace = namespace
        self._limit = min(FIRST, watched.page)
        # where a conversion fails, a stream ends after seconds, with 504
        self._streams = streams and (watched.ours or not watched.converted)
        self.version = watched.versions[0]

    async def all(self) -> tuple[list[Raw], int]:
        """Return (objects, resourceVersion of the list).

        This is a consistent read of the store, independent of any earlier resourceVersion, so it is right
        after a restore from a backup too. Raises Rejected, with status 404 if the server has none of the
        versions, Unreachable and Garbled.
        """
        error: Rejected | None = None
        for version in sorted(self._watched.versions, key=lambda one: one != self.version):
            try:
                listed = await self._objects(version)
            except Rejected as denied:
                if denied.reply.status != 404:
                    raise
                error = error or denied
            else:
                self.version = version
                return listed
        assert error is not None, "a kind has versions"
        raise error

    async def _objects(self, version: str) -> tuple[list[Raw], int]:
        if self._streams and not self._watched.most_objects:
            try:
                return await self._streamed(version)
            except Rejected as error:
                if error.reply.status not in UNKNOWN:
                    raise
                self._streams = False
            except (Garbled, TimeoutError):
                self._streams = False
        return await self._pages(version)

    async def _streamed(self, version: str) -> tuple[list[Raw], int]:
        """Return the list that a watch begins with (KEP-3157 WatchList, on by default since Kubernetes 1.34): one object is parsed at a
        time. Raises TimeoutError if it does not begin."""
        query = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(round(STREAM)), **dict(self._watched.selectors)}
        query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        path, bounds = self._watched.path(version, self._namespace), ListBounds(self._watched)
        objects: dict[tuple[str, str], Raw] = {}
        async with self._client.stream(path, query, STREAM, self._watched.accept("watch")) as lines:
            async with asyncio.timeout(BEGINS):
                batch = await lines.batch()
            while batch:
                for line in batch:
                    watch_event = event(line, self._watched, version)
                    if watch_event.ends_list:
                        return list(objects.values()), watch_event.version
                    if watch_event.value is not None:
                        place = watch_event.place
                        if (before := objects.pop(place, None)) is not None:
                            bounds.release(before)
                        if watch_event.change != "DELETED":
                            (objects[place],) = bounds.within([watch_event.value])
                await asyncio.sleep(0)
                batch = await lines.batch()
        raise Garbled("the stream of a list ended before its last bookmark")

    async def _pages(self, version: str) -> tuple[list[Raw], int]:
        bounds, first = ListBounds(self._watched), await self._page(version, "")
        objects, more = bounds.within(first.objects), first.more
        while more and not 0 < self._watched.most_objects <= len(objects):
            await asyncio.sleep(0)
            following = await self._page(version, more)
            objects += bounds.within(following.objects)
            more = following.more
        return objects, first.version

    async def _page(self, version: str, more: str) -> ListPage:
        path = self._watched.path(version, self._namespace)
        reply = await self._reply(path, more)
        if reply.status == 401:
            raise unauthorized(self._client, reply.message)
        if not reply.ok:
            raise Rejected(f"GET {path}", reply)
        parsed = decode_page(reply.body, self._watched, version)
        if parsed.objects and reply.size:
            fitting = PAGE * len(parsed.objects) // reply.size
            self._limit = max(1, min(fitting, self._limit * GROWS, self._watched.page))
        return parsed

    async def _reply(self, path: str, more: str) -> Reply:
        """Request a page, of fewer objects if it turns out to be large."""
        while True:
            query = {"limit": str(self._limit), **dict(self._watched.selectors)} | ({"continue": more} if more else {})
            most = LARGE_PAGE if self._limit > 1 else MOST
            try:
                return await self._client.call("GET", path, query=query, accept=self._watched.accept("list"), seconds=SECONDS, most=most)
            except ResponseTooLarge:
                if self._limit == 1:
                    raise
                self._limit = max(1, self._limit // GROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What was read. ``objects``: kind -> its objects, trimmed; empty for what is in ``unread``."""

    objects: Mapping[str, Sequence[Raw]]
    unread: Mapping[str, str] = field(default_factory=dict)
    """Kind -> why it was not read, in one sentence."""
    absent: frozenset[str] = frozenset()
    """Those of ``unread`` that the server does not have."""
    ignored: Mapping[str, int] = field(default_factory=dict)
    """Of files: kind, with its API group, of objects that nothing is read of -> how many there are."""


Progress = Callable[[str, int], None]
"""Called with a kind and the number of its objects, once it is read."""


async def survey(client: Client, kinds: Sequence[Watched], namespace: str = "", progress: Progress | None = None) -> Survey:
    """Read these kinds; of namespaced ones the objects of one namespace, or of all. A kind may be there twice, with other selectors.

    Raises Unreachable: without an answer from the server there is nothing to report.
    """
    turns, unread, absent = asyncio.Semaphore(AT_ONCE), dict[str, str](), set[str]()
    forbidden: list[Watched] = []
    objects: dict[str, list[Raw]] = {kind.kind: [] for kind in kinds}

    async def read(kind: Watched) -> None:
        async with turns:
            listed: list[Raw] = []
            try:
                listed = await _listed(client, kind, namespace if kind.namespaced else "")
            except Rejected as error:
                unread[kind.kind] = _reason(kind, namespace, error)
                if error.reply.status == 404:
                    absent.add(kind.kind)
                elif error.reply.status == 403:
                    forbidden.append(kind)
            objects[kind.kind] += listed
            if progress is not None:
                progress(kind.kind, len(listed))

    try:
        async with asyncio.TaskGroup() as group:
            for kind in kinds:
                group.create_task(read(kind))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    lacking = await find_absent(client, ((kind.group, kind.plural) for kind in forbidden))
    for kind in (kind for kind in forbidden if (kind.group, kind.plural) in lacking):
        unread[kind.kind] = _lacks(kind)
        absent.add(kind.kind)
    return Survey(objects=objects, unread=unread, absent=frozenset(absent))


async def _listed(client: Client, kind: Watched, namespace: str) -> list[Raw]:
    listing = Listing(client, replace(kind, most=0), namespace)
    for left in reversed(range(ATTEMPTS)):
        try:
            return (await listing.all())[0]
        except Rejected as error:
            if error.reply.status not in AGAIN or not left:
                raise
            await asyncio.sleep(min(LONGEST, error.reply.retry_after or 1.0))
    raise AssertionError("the last attempt returns or raises")


def _lacks(kind: Watched) -> str:
    return f"the API server has no {kind.resource}"


def _reason(kind: Watched, namespace: str, error: Rejected) -> str:
    if error.reply.status == 404:
        return _lacks(kind)
    if error.reply.status == 403:
        where = f" in namespace {namespace}" if namespace and kind.namespaced else ""
        return f"you may not list {kind.resource}{where}"
    return str(error)
