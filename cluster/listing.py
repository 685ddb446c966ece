"""All objects of a kind, page by page, each trimmed before the next is asked for."""

from __future__ import annotations

import asyncio

from cluster.client import Client
from cluster.failures import Refused, TooLarge
from cluster.gate import unauthorized
from cluster.kinds import Raw, Watched
from cluster.reading import Page, page

SECONDS = 60.0
"""for one page: an API server that is just back, or slow, may take half of it"""


class Listing:
    """Lists one kind, in the first of its versions that the server has."""

    def __init__(self, client: Client, watched: Watched) -> None:
        self._client = client
        self._watched = watched
        self._limit = watched.page
        self.version = watched.versions[0]

    async def all(self) -> tuple[list[Raw], int]:
        """(objects, resourceVersion of the list): a consistent read of the store, whatever was known before, so what was restored
        from a backup counts. Raises Refused, with status 404 where the server has none of the versions, Unreachable and Garbled."""
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
        first = await self._page(version, "")
        objects, more = first.objects, first.more
        while more:
            await asyncio.sleep(0)
            following = await self._page(version, more)
            objects += following.objects
            more = following.more
        return objects, first.version

    async def _page(self, version: str, more: str) -> Page:
        query = {"limit": str(self._limit)} | ({"continue": more} if more else {})
        path = self._watched.path(version)
        try:
            reply = await self._client.call("GET", path, query=query, accept=self._watched.accept("list"), seconds=SECONDS)
        except TooLarge:
            self._limit = max(1, self._limit // 10)  # for the next attempt
            raise
        if reply.status == 401:
            raise unauthorized(self._client, reply.message)
        if not reply.ok:
            raise Refused(f"GET {path}", reply)
        return page(reply.body, self._watched, version)
