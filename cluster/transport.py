"""Connections to the API server with one set of certificates: kept until those are replaced and the last call on them has ended."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp
from yarl import URL

from cluster.access import Loaded
from cluster.lookups import Lookups
from cluster.sockets import Sockets

CONNECT = 5.0
"""Seconds for TCP and TLS together: a second is much, and a lost SYN is sent again after one and three"""


class Transport:
    """A pool, and how many calls use it."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self._uses = 0
        self._retired = False
        self._sockets = Sockets()
        connector = aiohttp.TCPConnector(ssl=loaded.context, limit=0, socket_factory=self._sockets.made, resolver=Lookups())
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "berth"},  # the API server writes it into managedFields
            skip_auto_headers=("Accept-Encoding",),  # compressed lists cost both sides more time than a pod network does
        )

    async def sent(
        self, method: str, path: str, *, query: str, headers: Mapping[str, str], data: bytes | None, seconds: float
    ) -> aiohttp.ClientResponse:
        """The answer, once its head is there. Raises what aiohttp raises. The caller gives it back by ``done``."""
        self._uses += 1
        try:
            return await self._session.request(
                method,
                URL(f"{self.loaded.server}{path}{f'?{query}' if query else ''}", encoded=True),
                headers=headers,
                data=data,
                allow_redirects=False,  # it would take the token along
                timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=min(CONNECT, seconds)),
                proxy=self.loaded.proxy,
                server_hostname=self.loaded.server_name,
            )
        except BaseException:
            await self._less()
            raise

    async def done(self, response: aiohttp.ClientResponse) -> None:
        """The connection is kept where the answer was read to its end."""
        if response.content.at_eof():
            response.release()
        else:
            response.close()
        await self._less()

    async def retire(self) -> None:
        """Closed as soon as no call uses it."""
        self._retired = True
        if not self._uses:
            await self.close()

    async def close(self) -> None:
        """At once. No connection is left: aiohttp forgets those that take their leave, which a server that hangs never answers."""
        self._sockets.end()
        await self._session.close()
        await self._sockets.gone()

    async def _less(self) -> None:
        self._uses -= 1
        if self._retired and not self._uses:
            await self.close()
