"""A connection pool that closes no connection twice, and can end each of its connections, whoever holds it.

It works around two bugs of uvloop 0.23:

* aiohttp connects a Python socket and passes it on, ``create_connection(sock=...)``. If the peer resets it
  before the first byte of TLS is written, uvloop closes the descriptor and leaves it to the socket as well,
  which closes it again a moment later. By then the descriptor may belong to another connection: that one
  breaks, or libuv aborts the process. Connections here are made by uvloop from the start.
* A loop that is closed while a transport is open warns of each (ResourceWarning). Where warnings are errors,
  it does not close that transport and waits for its peer forever (uvloop/handles/handle.pyx,
  __uv_walk_close_all_handles_cb).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable
from threading import Thread
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest

IDLE, BETWEEN, PROBES = 15, 5, 3
"""TCP keepalive: a peer that vanished without closing is detected after IDLE + PROBES * BETWEEN = 30 s."""
USER_TIMEOUT = 20_000
"""Milliseconds within which sent data must be acknowledged (TCP_USER_TIMEOUT, Linux), close to client-go's
HTTP/2 health check."""
GONE = 1.0
"""Most seconds to wait for aborted connections: they need some iterations of the event loop, and no answer of
the peer."""
LOOK = 0.001
"""Seconds between two checks for open connections."""
TURNS = 4
"""Iterations of the event loop for connections that were aborted while being made: TLS ends in one, TCP in
the next."""
Address = tuple[Any, Any, int, str, Any]
"""A row of ``getaddrinfo``."""
Made = tuple[asyncio.Transport, ResponseHandler]
Factory = Callable[[], ResponseHandler]


class Connector(aiohttp.TCPConnector):
    """A TCP and TLS connector for aiohttp; it must be created on an event loop."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(ssl=context, limit=0, resolver=Resolver())
        self._made: list[tuple[asyncio.Transport, Any]] = []
        """Each transport with its socket as the event loop exposes it, which has no descriptor once it is
        closed."""

    async def _wrap_create_connection(
        self,
        *args: Any,
        addr_infos: list[Address],
        req: ClientRequest,
        timeout: aiohttp.ClientTimeout,
        client_error: type[Exception] = aiohttp.ClientConnectorError,
        **kwargs: Any,
    ) -> Made:
        """Connect with TCP and TLS. Overrides aiohttp's method, and raises the same errors."""
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
        """Connect to the first address that accepts, each tried for its share of the time that is left.

        Raises the error of the last address.
        """
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
        """Connect to one address, and abort the transport on failure.

        A connection cancelled just when TLS is established would send its close_notify and wait for the
        peer's.
        """
        handler = factory()
        try:
            return await self._loop.create_connection(lambda: handler, **kwargs)
        except BaseException:
            if handler.transport is not None:
                handler.transport.abort()
            raise

    async def end(self) -> None:
        """Abort all connections in whatever state they are, and return when they are closed, or after GONE
        seconds.

        That includes those that aiohttp has closed and forgotten: they may still be in TLS shutdown, which a
        hanging server never answers.
        """
        deadline = time.monotonic() + GONE
        for transport, shown in self._open():
            transport.abort()
            with contextlib.suppress(OSError, TypeError):  # asyncio does not abort one closed twice; uvloop's has no shutdown
                shown.shutdown(socket.SHUT_RDWR)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        while self._open() and time.monotonic() < deadline:
            await asyncio.sleep(LOOK)

    def _keep(self, transport: asyncio.Transport) -> None:
        shown = transport.get_extra_info("socket")
        if shown is not None:  # it is None if the connection was closed meanwhile
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


Row = tuple[Any, Any, int, str, tuple[Any, ...]]


class Resolver(AbstractResolver):
    """A resolver for aiohttp, which has at most one look-up of each name in progress: on daemon threads, which nothing waits for.

    A look-up can't be cancelled, and when name servers do not answer it takes 5 s for each attempt, server and
    search domain (resolv.conf(5)), a minute in all. uvloop waits for it when the loop is closed, asyncio when its
    executor is; a replica that has to stop does not have that time.
    """

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        """Resolve a name. Raises OSError."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[Row]] = loop.create_future()

        def look() -> None:
            rows, error = _looked_up(host, port, family)
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(_tell, found, rows, error)

        Thread(target=look, name=f"look up {host}", daemon=True).start()
        return [_result(host, row) for row in await found]

    async def close(self) -> None:
        """Do nothing: there is no state to release."""


def _looked_up(host: str, port: int, family: socket.AddressFamily) -> tuple[list[Row], OSError | None]:
    try:
        return socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG), None
    except UnicodeError as error:  # not a host name: a label of more than 63 characters
        return [], OSError(str(error))
    except OSError as error:
        return [], error


def _tell(found: asyncio.Future[list[Row]], rows: list[Row], error: OSError | None) -> None:
    if found.done():
        return
    if error is not None:
        found.set_exception(error)
    else:
        found.set_result(rows)


def _result(host: str, row: Row) -> ResolveResult:
    family, _, protocol, _, address = row
    numbers = socket.AI_NUMERICHOST
    return ResolveResult(hostname=host, host=_numeric(address), port=address[1], family=family, proto=protocol, flags=numbers)


def _numeric(address: tuple[Any, ...]) -> str:
    """Return the numeric host of an address, with the zone of a link-local IPv6 address."""
    if len(address) == 4 and address[3]:
        return socket.getnameinfo(address, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0]
    return str(address[0])
