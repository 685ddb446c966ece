"""Connections to the API server with one set of certificates: kept until those are replaced and the last call on them has ended."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

import aiohttp
from yarl import URL

from cluster.access import Loaded

CONNECT = 5.0
"""Seconds for TCP and TLS together: a second is much, and a lost SYN is sent again after one and three"""
IDLE, BETWEEN, PROBES = 15, 5, 3
"""TCP keepalive: a peer that is gone without a word is found in IDLE + PROBES * BETWEEN = 30 s"""
USER_TIMEOUT = 20_000
"""milliseconds in which what was sent must be acknowledged (TCP_USER_TIMEOUT, Linux), as client-go's HTTP/2 health check has it nearly"""


class Transport:
    """A pool, and how many calls use it."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self._uses = 0
        self._retired = False
        connector = aiohttp.TCPConnector(ssl=loaded.context, limit=0, socket_factory=_socket)
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
            await self._session.close()

    async def close(self) -> None:
        """At once."""
        await self._session.close()

    async def _less(self) -> None:
        self._uses -= 1
        if self._retired and not self._uses:
            await self._session.close()


def _socket(address: Any) -> socket.socket:
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    wanted = (("TCP_KEEPIDLE", IDLE), ("TCP_KEEPINTVL", BETWEEN), ("TCP_KEEPCNT", PROBES), ("TCP_USER_TIMEOUT", USER_TIMEOUT))
    for name, value in wanted:
        if hasattr(socket, name):  # macOS and Windows have some of them
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
