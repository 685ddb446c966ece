"""The list of all objects of a kind, page by page, each page trimmed before the next one is requested."""

from __future__ import annotations

import asyncio

from cluster.client.api_client import Client
from cluster.client.errors import Refused, Reply, TooLarge
from cluster.client.line_stream import MOST
from cluster.watch.bounds import ListBounds
from cluster.watch.connectivity import unauthorized
from cluster.watch.decoder import Page, page
from cluster.watch.kinds import Watched
from cluster.watch.trims import Raw

SECONDS = 60.0
"""Timeout for one page: an API server that has just restarted, or is slow, may take half of it."""
FIRST, GROWS = 20, 4
"""Objects of a first page, whose size is unknown; how many times larger than the one before a page is at most."""
PAGE = 2**20
"""Bytes of a page that are aimed at: parsing them takes some 10 ms, during which no call is answered."""
LARGE_PAGE = 4 * 2**20
"""Bytes of a page of several objects at which it is given up for a smaller one."""


class Listing:
    """Lists one kind, in the first of its versions that the server has."""

    def __init__(self, client: Client, watched: Watched, namespace: str = "") -> None:
        """Create a listing of the objects in all namespaces, or in one."""
        self._client = client
        self._watched = watched
        self._namespace = namespace
        self._limit = min(FIRST, watched.page)
        self.version = watched.versions[0]

    async def all(self) -> tuple[list[Raw], int]:
        """Return (objects, resourceVersion of the list).

        This is a consistent read of the store, independent of any earlier resourceVersion, so it is right
        after a restore from a backup too. Raises Refused, with status 404 if the server has none of the
        versions, Unreachable and Garbled.
        """
        error: Refused | None = None
        for version in sorted(self._watched.versions, key=lambda one: one != self.version):
            try:
                found = await self._pages(version)
            except Refused as refused:
                if refused.reply.status != 404:
                    raise
                error = error or refused
            else:
                self.version = version
                return found
        assert error is not None, "a kind has versions"
        raise error

    async def _pages(self, version: str) -> tuple[list[Raw], int]:
        bounds, first = ListBounds(self._watched), await self._page(version, "")
        objects, more = bounds.within(first.objects), first.more
        while more:
            await asyncio.sleep(0)
            following = await self._page(version, more)
            objects += bounds.within(following.objects)
            more = following.more
        return objects, first.version

    async def _page(self, version: str, more: str) -> Page:
        path = self._watched.path(version, self._namespace)
        reply = await self._reply(path, more)
        if reply.status == 401:
            raise unauthorized(self._client, reply.message)
        if not reply.ok:
            raise Refused(f"GET {path}", reply)
        parsed = page(reply.body, self._watched, version)
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
            except TooLarge:
                if self._limit == 1:
                    raise
                self._limit = max(1, self._limit // GROWS)
