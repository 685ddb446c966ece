"""Callers that hold connections and let the server wait, thousands of them on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import time
from collections.abc import Awaitable, Callable, Sequence

from tests.support.calls.raw_tls import HOST, context, dialled, head, post
from tests.support.calls.server_process import ROOT, Running
from tests.testcluster.calls import PATIENCE

REVIEW = (ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_bytes()
PAUSE = 0.3
"""Seconds between two bytes."""
RECEIVED = 4096
"""Bytes that the kernel holds for an attacker: what it does not read stays with the server."""
DIALLING = 50
"""Handshakes at one time."""

Attack = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""What is done with a connection; returns or raises ConnectionError once the server ended it."""


async def nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A handshake, and no request."""
    await reader.read()


async def trickle(begun: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A byte, and a byte ..."""
    writer.write(begun)
    end = asyncio.ensure_future(reader.read())
    while not end.done():
        writer.write(b"x")
        await asyncio.wait([end], timeout=PAUSE)
    await end


async def trickle_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Headers that never end."""
    await trickle(head(100)[:-2] + b"X-A: ", reader, writer)


async def trickle_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A body that never ends."""
    await trickle(post(REVIEW)[:-1000], reader, writer)


async def stop_in_the_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Half a body, and nothing more."""
    writer.write(post(REVIEW)[:-1000])
    await reader.read()


def never_read(server: Running) -> bool:
    """Ask without end and take no answer, on a connection of its own. True once the server ended it; False where it never does."""
    with dialled(server, receive_buffer=RECEIVED) as wire, contextlib.suppress(TimeoutError):
        while wire.send(post(REVIEW) * 10):
            pass
        return True
    return False


def make_room() -> None:
    """Let this process have as many connections as the system allows."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Attackers:
    """Connections to one server, each with what it does. ``lived`` has the seconds from the handshake to the end, of each that ended."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self._context = context(server.ca)
        self._dialling = asyncio.Semaphore(DIALLING)
        self.open = 0
        self.lived: dict[str, list[float]] = {}
        make_room()

    def start(self, attack: Attack, number: int) -> Sequence[asyncio.Task[None]]:
        """So many that do the same, from now on."""
        return [asyncio.create_task(self._one(attack)) for _ in range(number)]

    async def _one(self, attack: Attack) -> None:
        with contextlib.suppress(ConnectionError):
            async with self._dialling:
                reader, writer = await self._dialled()
            begun = time.monotonic()
            self.open += 1
            try:
                with contextlib.suppress(ConnectionError):
                    await attack(reader, writer)
                self.lived.setdefault(attack.__name__, []).append(time.monotonic() - begun)
            finally:
                self.open -= 1
                writer.transport.abort()

    async def _dialled(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        raw = socket.socket()
        raw.setblocking(False)  # noqa: FBT003 - it takes no keyword
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED)
        await asyncio.get_running_loop().sock_connect(raw, (HOST, self._server.port))
        return await asyncio.open_connection(
            sock=raw, ssl=self._context, server_hostname="localhost", ssl_handshake_timeout=PATIENCE, limit=1
        )
