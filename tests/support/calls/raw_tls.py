"""A caller that writes bytes to a TLS connection and reads answers off it, with nothing between that would put them right."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.calls.server_process import Running
from tests.testcluster.calls import PATIENCE

HOST = "127.0.0.1"
GONE = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""How a connection that the server ended looks from here, beside an end of the bytes."""


class Garbled(AssertionError):
    """Bytes came that are no HTTP/1.1 answer with a length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer off the wire. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def closes(self) -> bool:
        """It says that the connection ends with it."""
        return self.headers.get("connection", "").lower() == "close"


class Wire:
    """One connection. ``send`` writes on, whatever the server thinks of it; ``reply`` reads one answer."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._reader = connection.makefile("rb")

    def send(self, data: bytes) -> bool:
        """All of ``data``; False where the server ended the connection first."""
        try:
            self.socket.sendall(data)
        except GONE:
            return False
        return True

    def reply(self, *, of_head: bool = False) -> Reply | None:
        """The next answer; None at the end of the connection. Raises Garbled, and TimeoutError where nothing comes.

        ``of_head``: to a HEAD request, which has the length of a body and no body.
        """
        try:
            line = self._reader.readline(65537)
            return self._answer(line, of_head=of_head) if line else None
        except GONE:
            return None

    def replies(self) -> list[Reply]:
        """Every answer until the server ends the connection. Raises TimeoutError where it never does."""
        return list(iter(self.reply, None))

    def _answer(self, line: bytes, *, of_head: bool) -> Reply:
        version, _, rest = line.partition(b" ")
        if version != b"HTTP/1.1" or not rest[:3].isdigit():
            raise Garbled(f"not a status line: {line[:200]!r}")
        status, headers = int(rest[:3]), dict(self._headers())
        if status == 100:
            return Reply(status=status, headers=headers, body=b"")
        if not headers.get("content-length", "").isdecimal():
            raise Garbled(f"an answer without a length: {headers}")
        return Reply(status=status, headers=headers, body=b"" if of_head else self._reader.read(int(headers["content-length"])))

    def _headers(self) -> Iterator[tuple[str, str]]:
        while (line := self._reader.readline(65537)) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            yield name.strip().lower(), value.strip()

    def close(self) -> None:
        """End it."""
        self._reader.close()  # while it is open, so is the socket
        self.socket.close()

    def reset(self) -> None:
        """End it with a RST, without a word of TLS, as a caller that dies does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()


def context(ca: Path) -> ssl.SSLContext:
    """A client's, that verifies the server with this CA."""
    return ssl.create_default_context(cafile=str(ca))


@contextlib.contextmanager
def dialled(server: Running, *, receive_buffer: int | None = None) -> Iterator[Wire]:
    """A connection whose handshake is done. ``receive_buffer``: bytes that the kernel holds for a caller that does not read."""
    with tcp(server, receive_buffer=receive_buffer) as raw, context(server.ca).wrap_socket(raw, server_hostname="localhost") as tls:
        wire = Wire(tls)
        try:
            yield wire
        finally:
            wire.close()


@contextlib.contextmanager
def tcp(server: Running, *, receive_buffer: int | None = None) -> Iterator[socket.socket]:
    """A connection on which no TLS is spoken yet."""
    with socket.socket() as raw:
        raw.settimeout(PATIENCE)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each first request waits 40 ms for an ACK; Go sets it too
        if receive_buffer is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)  # before connecting: it bounds the window
        raw.connect((HOST, server.port))
        yield raw


def all_of(raw: socket.socket) -> bytes:
    """What comes until the server ends the connection. Raises TimeoutError where it never does."""
    got = b""
    with contextlib.suppress(*GONE):
        while data := raw.recv(65536):
            got += data
    return got


def post(body: bytes, *, path: str = "/mutate", **headers: str) -> bytes:
    """A request as kube-apiserver writes it; ``headers`` are added, with ``_`` for ``-``."""
    return head(len(body), path=path, **headers) + body


def head(length: int | None, *, path: str = "/mutate", **headers: str) -> bytes:
    """The request line and headers of a POST; ``length`` None: no Content-Length."""
    lines = [f"POST {path} HTTP/1.1", "Host: berth.berth-system.svc", "Content-Type: application/json"]
    lines += [] if length is None else [f"Content-Length: {length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; of no bytes: the last one, with the empty trailer."""
    return b"%x\r\n%b\r\n" % (len(data), data)
