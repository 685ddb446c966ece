"""Parsing of the requests of one connection by llhttp, with a bound on all that an incomplete one may take."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

import httptools

from server.answer_queue import AnswerQueue
from server.http import Application, Call, Peer, Rejection, come_back, path_of, text_answer, unspoken
from server.limits import UID_BYTES
from server.port import BodyMemory, Port

READ = {
    b"accept": False, b"content-encoding": False, b"content-length": False, b"content-type": False, b"host": False,
    b"connection": True, b"expect": True, b"transfer-encoding": True, b"upgrade": True,
}  # fmt: skip
"""The headers that are read of a call; True for those that mark it as unusual."""
SLASH = ord("/")
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
NO_ROOM = Rejection("shed", come_back("too many unfinished bodies"))

SMALL = 4096
"""Bytes up to which a piece is appended to the one before: each separate piece costs some 50 bytes more."""
ROOMY = 16 * 2**10
"""Bytes after which no piece is appended to a buffer: one that grows to megabytes fragments the heap."""
OVERHEAD = 64
"""Bytes that a piece takes beside its content, its place in the list included."""


class RequestReader:
    """Makes calls of bytes, and hands them to the queue.

    A call that arrives in one piece, as the API server's do, is handed on within ``feed``, which raises what httptools raises.
    """

    def __init__(self, port: Port, queue: AnswerQueue) -> None:
        self._port = port
        self._queue = queue
        self._parser: Any = httptools.HttpRequestParser(self)
        self.feed: Callable[[bytes], None] = self._parser.feed_data
        self.is_begun = False
        """True between the first and the last byte of a request."""
        self.peer: Peer | None = None
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        """The headers of the request so far."""
        self._is_unusual = False
        """True if a header requires a closer check of the call."""
        self._call: Call | None = None
        """The call whose head is complete."""
        self._pieces: Pieces | None = None
        """The pieces of the call's body, if it does not arrive at once."""
        self._wire = 0
        """Bytes of a request that does not arrive in one piece."""

    def count(self, size: int, send: Callable[[bytes], object]) -> bool:
        """Account for a piece of ``size`` bytes that ended within a request; return whether it was its first. ``send`` writes to the
        caller, who may wait for 100 Continue."""
        is_first, call = not self._wire, self._call
        self._wire += size
        if call is not None:
            self._wait_on(call, send)
        elif self._wire > self._port.limits.head:
            self._queue.reject("head", text_answer(431, f"a head has at most {self._port.limits.head} bytes", close=True))
        return is_first

    def forsake(self) -> None:
        """Drop the incomplete call and all that is held of it."""
        call, self._call = self._call, None
        self._drop_pieces()
        if call is not None:
            self._queue.lose(call)

    def close(self) -> None:
        """Drop everything; the parser refers to this object."""
        self.forsake()
        self._parser = None
        del self.feed

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        self.is_begun = True

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        unusual = READ.get(name)
        if unusual is None and not self._port.all_headers:
            return
        headers = self._headers
        if unusual or name in headers:
            self._is_unusual = True
        headers[name] = headers[name] + b", " + value if name in headers else value

    def on_headers_complete(self) -> None:
        url, headers, parser = self._url, self._headers, self._parser
        self._url, self._headers = b"", {}
        path, _, query = url.partition(b"?")
        self._call = Call(parser.get_method(), path, headers, monotonic(), query=query, peer=self.peer)
        if self._is_unusual or not parser.should_keep_alive() or b"host" not in headers or url[0] != SLASH:
            self._is_unusual = False
            self._check(self._call, url)

    def on_body(self, body: bytes) -> None:
        call = self._call
        if call is None:
            return
        call.size += len(body)
        if call.waits:
            self._keep(call, body)
        elif call.size > len(body):
            call.body += body  # chunks that came in one piece, so it can't be long
        else:
            call.body = body

    def on_message_complete(self) -> None:
        call, self._call = self._call, None
        self.is_begun = False
        self._wire = 0
        if self._headers:  # trailers
            self._headers = {}
            self._is_unusual = False
        if call is None:
            return
        if self._pieces is not None:
            call.body = self._pieces.whole() or call.body
            self._pieces = None
        self._queue.take(call)

    # Unusual or incomplete calls

    def _check(self, call: Call, url: bytes) -> None:
        version = self._parser.get_http_version()
        rejection = unspoken(version, call.headers, upgrade=self._parser.should_upgrade())
        if rejection is not None:
            self._call = None
            self._queue.reject("garbled", rejection)
            return
        call.last = version == "1.0" or not self._parser.should_keep_alive()
        call.expects = version == "1.1" and b"expect" in call.headers
        call.path = path_of(url)

    def _wait_on(self, call: Call, send: Callable[[bytes], object]) -> None:
        application = self._port.application(call)
        if not call.waits:
            self._begin(call, application, send)
        is_rejected = call.expects and call.rejection is not None
        if is_rejected or max(call.size, call.declared) > application.most:
            self._call, call.last = None, True
            self._drop_pieces()
            self._queue.take(call)
        elif self._wire > 2 * call.size + 2 * self._port.limits.head:
            self._queue.reject("garbled", text_answer(400, "send larger chunks", close=True))

    def _begin(self, call: Call, application: Application, send: Callable[[bytes], object]) -> None:
        """Begin to wait for the body of a call. Nothing is held of a body that no page reads."""
        call.waits = True
        call.room = application.room
        call.rejection = application.begin(call)
        if call.rejection is None and not self._port.bodies.has(min(call.declared, call.room)):
            call.rejection = NO_ROOM
        self._keep(call, call.body)
        if call.expects and call.rejection is None and not call.size:
            send(CONTINUE)

    def _keep(self, call: Call, chunk: bytes) -> None:
        """Hold a piece of the body: of one that is rejected or over the cap only the start with the uid."""
        if self._pieces is None:
            self._pieces = Pieces(self._port.bodies)
            call.body = b""
        if call.rejection is not None or max(call.size, call.declared) > call.room:
            call.body = call.body or self._pieces.head(UID_BYTES)
            call.body += chunk[: UID_BYTES - len(call.body)]
            self._pieces.drop()
        elif not self._pieces.add(chunk):
            call.rejection = NO_ROOM

    def _drop_pieces(self) -> None:
        if self._pieces is not None:
            self._pieces.drop()
            self._pieces = None


class Pieces:
    """The pieces of one body, in order. Nothing is held once ``add`` has returned False, or after ``drop``."""

    __slots__ = ("_held", "_memory", "_pieces")

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory
        self._pieces: list[bytes | bytearray] = []
        self._held = 0

    def add(self, piece: bytes) -> bool:
        """Append a piece; return whether there was room for it."""
        if not self._memory.take(len(piece) + OVERHEAD):
            self.drop()
            return False
        self._held += len(piece) + OVERHEAD
        last = self._pieces[-1] if self._pieces else b""
        if len(piece) > SMALL:
            self._pieces.append(piece)
        elif isinstance(last, bytearray) and len(last) < ROOMY:
            last += piece
        else:
            self._pieces.append(bytearray(piece))
        return True

    def head(self, size: int) -> bytes:
        """Return the first ``size`` bytes of the body."""
        pieces, start = iter(self._pieces), b""
        while len(start) < size and (piece := next(pieces, None)) is not None:
            start += piece[: size - len(start)]
        return start

    def whole(self) -> bytes:
        """Return the whole body and release it."""
        body = b"".join(self._pieces)
        self.drop()
        return body

    def drop(self) -> None:
        """Release the body."""
        self._pieces.clear()
        self._memory.give_back(self._held)
        self._held = 0
