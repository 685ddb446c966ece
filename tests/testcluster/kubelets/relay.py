"""Carries connections into a machine that a test plays: from a port of this machine's loopback to the same port of that one's.

Run as a script in that machine's network, with the listening sockets that it inherits as arguments (``DESCRIPTOR:PORT``): they were made
outside, and stay there. So a test, kubectl and Helm reach what runs inside, and neither machine has an address of the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys

CHUNK = 1 << 16


async def main(pairs: list[tuple[int, int]]) -> None:
    """Until it is ended."""
    servers = [await asyncio.start_server(_carrying(port), sock=socket.socket(fileno=descriptor)) for descriptor, port in pairs]
    await asyncio.gather(*(server.serve_forever() for server in servers))


def _carrying(port: int):  # type: ignore[no-untyped-def]
    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", port)
        except OSError:  # nobody listens there yet, or any more
            writer.close()
            return
        await asyncio.gather(_pump(reader, back), _pump(there, writer))

    return carry


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """What comes is passed on, its end too; an end by an error ends both."""
    with contextlib.suppress(OSError):
        while data := await source.read(CHUNK):
            target.write(data)
            await target.drain()
    target.close()


if __name__ == "__main__":
    asyncio.run(main([(int(one), int(port)) for one, port in (word.split(":") for word in sys.argv[1:])]))
