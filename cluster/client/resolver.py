"""Resolution of host names on daemon threads, which nothing waits for.

A look-up can't be cancelled, and when name servers do not answer it takes 5 s for each attempt, server and
search domain (resolv.conf(5)), a minute in all. uvloop waits for it when the loop is closed, asyncio when its
executor is; a replica that has to stop does not have that time.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from threading import Thread
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

Row = tuple[Any, Any, int, str, tuple[Any, ...]]


class Resolver(AbstractResolver):
    """A resolver for aiohttp, which has at most one look-up of each name in progress."""

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
