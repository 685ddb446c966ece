"""One call and one answer of HTTP/1.1, without a socket: the types that the applications of both ports use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple, Protocol

OK = b"HTTP/1.1 200 "
JSON = b"content-type: application/json\r\n"
TEXT = b"content-type: text/plain; charset=utf-8\r\n"
RETRY = b"retry-after: 1\r\n"
"""The API server retries a 503 up to 10 times if Retry-After gives a whole number of seconds."""
CLOSE = b"connection: close\r\n"


class Answer(NamedTuple):
    """An answer. ``start`` is the status line and all headers but those of length and connection, each line
    with its end."""

    start: bytes
    body: bytes
    close: bool = False
    """True if the connection ends with it, so that the next attempt reaches another replica."""

    @property
    def status(self) -> int:
        return int(self.start[9:12])

    def encoded(self, *, close: bool, only_head: bool = False) -> bytes:
        """Return the bytes to send. ``only_head``: for HEAD, which reports the length of the body it leaves
        out."""
        body = b"" if only_head else self.body
        if not self.body and self.status in (204, 304):  # RFC 9110, 8.6: no length, which would be that of the answer that was left out
            return b"%b%b\r\n" % (self.start, CLOSE if close else b"")
        return b"%b%bcontent-length: %d\r\n\r\n%b" % (self.start, CLOSE if close else b"", len(self.body), body)


class Rejection(NamedTuple):
    """The outcome of a call whatever its body is: the decision in one word (empty where calls are not
    counted), and the answer."""

    decision: str
    answer: Answer


class Peer(NamedTuple):
    """The other end of a connection, as ASGI names it."""

    client: tuple[str, int] | None
    server: tuple[str, int | None] | None
    scheme: str


@dataclass(slots=True)
class Call:
    """One request, as far as it has arrived.

    The path is as sent, without the query; names of headers are in lower case.
    """

    method: bytes
    path: bytes
    headers: dict[bytes, bytes]
    """The headers in ``request_reader.READ``, or all (``Port.all_headers``); one that occurs twice has both values, joined by a comma."""
    arrived: float
    """The time when its head was complete; seconds of ``time.monotonic``."""
    body: bytes = b""
    """The bytes that are held: of a body over the cap only its beginning."""
    size: int = 0
    """Bytes of the body that have arrived."""
    last: bool = False
    """True if the caller wants no further call on this connection, or could not make one."""
    expects: bool = False
    """True if the caller sends the body only after 100 Continue."""
    waits: bool = False
    """True if it did not arrive in one piece: the application was informed of it, and counts it as in flight.
    """
    room: int = 0
    """Bytes of a body that its application can use; set once ``waits`` is True."""
    query: bytes = b""
    peer: Peer | None = None
    rejection: Rejection | None = None
    """The rejection, if it was decided before the last byte."""

    @property
    def declared(self) -> int:
        """The Content-Length of the body; 0 if it has none. The parser has rejected what is no number."""
        return int(self.headers.get(b"content-length", b"0"))


Later = Callable[["Call", Answer], None]
"""Sends the answer to a call for which ``Application.answer`` had none yet. On the event loop, in a turn of its own."""


class Application(Protocol):
    """Answers calls without a task. Called on the event loop."""

    room: int
    """Bytes of a body that it can use."""
    most: int
    """Bytes of a body beyond which nothing more is read."""

    def begin(self, call: Call) -> Rejection | None:
        """Begin a call whose head has arrived and whose body has not; return a rejection if the body cannot
        change the answer."""

    def answer(self, call: Call, later: Later) -> Answer | None:
        """Answer a call that is complete, or rejected, or over ``most``; None if ``later`` will be called with the answer."""

    def turned_away(self, call: Call, answer: Answer) -> Answer:
        """Return the answer to a call for which there is no place: this one, unless the caller would take it for consent."""

    def lost(self, call: Call) -> None:
        """Note that a call that began will have no answer of this application."""


def start(status: int, *headers: bytes) -> bytes:
    """Return the status line and these headers."""
    return b"HTTP/1.1 %d %b\r\n%b" % (status, HTTPStatus(status).phrase.encode(), b"".join(headers))


def text_answer(status: int, sentence: str, *headers: bytes, close: bool = False) -> Answer:
    """Return an answer in one sentence of plain text."""
    return Answer(start(status, TEXT, *headers), f"{sentence}\n".encode(), close)


def come_back(sentence: str) -> Answer:
    """Return a 503: try again in a second, on another connection."""
    return text_answer(503, sentence, RETRY, close=True)


def path_of(url: bytes) -> bytes:
    """Return the path of ``/path?query`` or of the absolute form for proxies, ``https://host/path``.

    A URL without a path, ``*``, is returned as it is.
    """
    path: bytes = url.partition(b"?")[0]
    if path.startswith((b"http://", b"https://")):
        path = b"/" + path.split(b"/", 3)[3] if path.count(b"/") > 2 else b"/"
    return path


def unspoken(version: str, headers: Mapping[bytes, bytes], *, upgrade: bool) -> Answer | None:
    """Return the rejection of a head that llhttp accepts and Berth does not, or None.

    Heads that would let two readers see the end of the body in different places are rejected by the parser:
    two lengths, a length and chunks, a line that is folded or ends in LF alone.
    """
    coding = headers.get(b"transfer-encoding", b"chunked").lower()
    if version not in ("1.0", "1.1"):
        return text_answer(400, "speak HTTP/1.1", close=True)
    if upgrade:
        return text_answer(400, "only HTTP/1.1 is supported: leave out Upgrade and CONNECT", close=True)
    if coding != b"chunked" or (version == "1.0" and b"transfer-encoding" in headers):
        return text_answer(400, "only the transfer coding chunked is supported, with HTTP/1.1", close=True)
    if version == "1.1" and b"," in headers.get(b"host", b","):
        return text_answer(400, "send one Host", close=True)
    if headers.get(b"expect", b"100-continue").lower() != b"100-continue":
        return text_answer(417, "only Expect: 100-continue is supported", close=True)
    return None
