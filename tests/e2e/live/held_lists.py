"""A proxy before an API server that holds back some answers and passes everything else on: it ends TLS, so it sees what is asked for.

Other faults of a network need no reading and are in ``tests/support/cluster/faulty_proxy.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support import certificate_files
from tests.testcluster.controlplane.api import Api

CHUNK = 1 << 16
HEAD_END = b"\r\n\r\n"


class HeldLists:
    """Requests whose first line has one of ``parts`` wait until ``let_go``. Calls are without a body that is larger than a chunk."""

    def __init__(self, api: Api, parts: Sequence[str], files: Path) -> None:
        self.held: list[str] = []
        """first lines that wait, or have waited"""
        self.port = 0
        self._api = api
        self._parts = [part.encode() for part in parts]
        self._files = files
        self._loop = asyncio.new_event_loop()
        self._free = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def let_go(self) -> None:
        """What waits, and whatever comes, is passed on."""
        self._loop.call_soon_threadsafe(self._free.set)

    async def listen(self) -> asyncio.Server:
        """On any free port."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._files / "tls.crt", self._files / "tls.key")
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        return server

    def turn(self, server: asyncio.Server, ended: threading.Event) -> None:
        """The loop, on a thread of its own, until ``ended``."""
        self._loop.run_until_complete(self._until(server, ended))
        self._loop.close()

    def begin(self) -> asyncio.Server:
        """Before the thread is started."""
        return self._loop.run_until_complete(self.listen())

    async def _until(self, server: asyncio.Server, ended: threading.Event) -> None:
        while not ended.is_set():
            await asyncio.sleep(0.02)
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        context = ssl.create_default_context(cafile=str(self._api.ca))
        there, away = await asyncio.open_connection(self._api.host, self._api.port, ssl=context)
        ways = [asyncio.create_task(self._asked(reader, away)), asyncio.create_task(_passed(there, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for end in (writer, away):
                end.transport.abort()

    async def _asked(self, reader: asyncio.StreamReader, away: asyncio.StreamWriter) -> None:
        """Requests come one after the other, each head in one piece."""
        while part := await reader.read(CHUNK):
            line = part.partition(b"\r\n")[0]
            if HEAD_END in part and any(one in line for one in self._parts) and not self._free.is_set():
                self.held.append(line.decode(errors="replace"))
                await self._free.wait()
            away.write(part)
            await away.drain()


async def _passed(there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while part := await there.read(CHUNK):
        writer.write(part)
        await writer.drain()


@contextmanager
def held_lists(api: Api, parts: Sequence[str], folder: Path) -> Iterator[tuple[HeldLists, Path]]:
    """The proxy, and the certificate of whom its callers must trust; gone on leaving."""
    certificate_files.serving_files(folder, ("127.0.0.1",))
    proxy, ended = HeldLists(api, parts, folder), threading.Event()
    server = proxy.begin()
    thread = threading.Thread(target=proxy.turn, args=(server, ended), daemon=True)
    thread.start()
    try:
        yield proxy, folder / "ca.crt"
    finally:
        with contextlib.suppress(RuntimeError):  # its loop may have ended by an error, which pytest shows
            proxy.let_go()
        ended.set()
        thread.join()
