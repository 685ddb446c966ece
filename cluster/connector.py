"""The connections of a pool: made so that none is closed twice, and all of them can be ended, whoever holds them by then.

Two faults of uvloop 0.23 are kept away from:

* aiohttp connects a Python socket and hands it over, ``create_connection(sock=...)``. Where the peer resets it before the first byte of
  TLS is written, uvloop closes the descriptor and leaves it to the socket as well, which closes it again a moment later. By then it
  may be another connection's: that one breaks, or libuv aborts the process. Connections here are uvloop's own from the start.
* A loop that is closed while a transport is open warns of each (ResourceWarning), and where warnings are errors it does not close that
  one and waits for its peer, for ever (uvloop/handles/handle.pyx, __uv_walk_close_all_handles_cb).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest

from cluster.lookups import Lookups

IDLE, BETWEEN, PROBES = 15, 5, 3
"""TCP keepalive: a peer that is gone without a word is found in IDLE + PROBES * BETWEEN = 30 s"""
USER_TIMEOUT = 20_000
"""milliseconds in which what was sent must be acknowledged (TCP_USER_TIMEOUT, Linux), as client-go's HTTP/2 health check has it nearly"""
GONE = 1.0
"""Seconds that ended connections are waited for: they need some turns of the event loop, and nothing of the peer"""
LOOK = 0.001
"""seconds between two looks"""
TURNS = 4
"""Of the event loop, for connections that were given up while they were made: TLS ends in one, TCP in the next"""
Address = tuple[Any, Any, int, str, Any]
"""a row of ``getaddrinfo``"""
Made = tuple[asyncio.Transport, ResponseHandler]
Factory = Callable[[], ResponseHandler]


class Connector(aiohttp.TCPConnector):
    """Made on an event loop."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(ssl=context, limit=0, resolver=Lookups())
        self._made: list[tuple[asyncio.Transport, Any]] = []
        """and the socket of each, as its event loop shows it; without a descriptor once it is closed"""

    async def _wrap_create_connection(
        self,
        *args: Any,
        addr_infos: list[Address],
        req: ClientRequest,
        timeout: aiohttp.ClientTimeout,
        client_error: type[Exception] = aiohttp.ClientConnectorError,
        **kwargs: Any,
    ) -> Made:
        """TCP and TLS, with the errors that aiohttp's own gives, which this stands for."""
        try:
            return await self._first(addr_infos, timeout.sock_connect, args[0], kwargs)
        except TimeoutError:
            raise
        except ssl.CertificateError as error:
            raise aiohttp.ClientConnectorCertificateError(req.connection_key, error) from error
        except ssl.SSLError as error:
            raise aiohttp.ClientConnectorSSLError(req.connection_key, error) from error
        except OSError as error:
            raise client_error(req.connection_key, error) from error

    async def _first(self, addresses: list[Address], seconds: float | None, factory: Factory, kwargs: Any) -> Made:
        """Of the first address that has it, each tried for its share of the time that is left. Raises what the last one raises."""
        ends = None if seconds is None else self._loop.time() + seconds
        for left in range(len(addresses), 0, -1):
            family, _, protocol, _, at = addresses[-left]
            try:
                async with asyncio.timeout(None if ends is None else (ends - self._loop.time()) / left):
                    made = await self._one(factory, host=str(at[0]), port=at[1], family=family, proto=protocol, **kwargs)
            except OSError:  # TimeoutError is one
                if left == 1:
                    raise
                continue
            self._keep(made[0])
            return made
        raise OSError("the name has no address")

    async def _one(self, factory: Factory, **kwargs: Any) -> Made:
        """Given up in the moment in which TLS was there, it would take its leave, and wait for the peer's."""
        handler = factory()
        try:
            return await self._loop.create_connection(lambda: handler, **kwargs)
        except BaseException:
            if handler.transport is not None:
                handler.transport.abort()
            raise

    async def end(self) -> None:
        """Once all connections are closed, in whatever state they are; or after GONE seconds. Those that aiohttp has closed may still be
        taking their leave, which a server that hangs never answers, and it has forgotten them."""
        deadline = time.monotonic() + GONE
        for transport, shown in self._open():
            transport.abort()
            with contextlib.suppress(OSError, TypeError):  # asyncio does not abort one that was closed twice; uvloop's shows no shutdown
                shown.shutdown(socket.SHUT_RDWR)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        while self._open() and time.monotonic() < deadline:
            await asyncio.sleep(LOOK)

    def _keep(self, transport: asyncio.Transport) -> None:
        shown = transport.get_extra_info("socket")
        if shown is not None:  # as it is where it was closed meanwhile
            _probe(shown)
            self._made = [*self._open(), (transport, shown)]

    def _open(self) -> list[tuple[asyncio.Transport, Any]]:
        return [(transport, shown) for transport, shown in self._made if shown.fileno() >= 0]


def _probe(one: Any) -> None:
    wanted = (("TCP_KEEPIDLE", IDLE), ("TCP_KEEPINTVL", BETWEEN), ("TCP_KEEPCNT", PROBES), ("TCP_USER_TIMEOUT", USER_TIMEOUT))
    with contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in wanted:
            if hasattr(socket, name):  # macOS and Windows have some of them
                one.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
