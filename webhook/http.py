"""One call and one answer of HTTP/1.1, without a socket: what the applications of both ports read and give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple, Protocol

JSON = b"content-type: application/json\r\n"
TEXT = b"content-type: text/plain; charset=utf-8\r\n"
RETRY = b"retry-after: 1\r\n"
"""The API server tries a 503 again up to 10 times when it is told after how many whole seconds."""
CLOSE = b"connection: close\r\n"


class Answer(NamedTuple):
    """``start`` is the status line and the headers but those of length and connection, each line with its end."""

    start: bytes
    body: bytes
    close: bool = False
    """the connection ends with it; the next try reaches another replica"""

    @property
    def status(self) -> int:
        return int(self.start[9:12])

    def encoded(self, *, close: bool, only_head: bool = False) -> bytes:
        """As it goes out. ``only_head``: for HEAD, which tells the length of what it leaves out."""
        body = b"" if only_head else self.body
        return b"%b%bcontent-length: %d\r\n\r\n%b" % (self.start, CLOSE if close else b"", len(self.body), body)


class Refusal(NamedTuple):
    """How a call ends whatever its body is: the decision in one word, empty where calls are not counted, and the answer."""

    decision: str
    answer: Answer


@dataclass(slots=True)
class Call:
    """One request, as far as it is in. The path is as sent, without query; names of headers are in lower case."""

    method: bytes
    path: bytes
    headers: dict[bytes, bytes]
    """of those in ``reading.READ``; one that stands twice has both values, with a comma between"""
    arrived: float
    """when its head was in; seconds of ``time.monotonic``"""
    body: bytes = b""
    """what is held of it: of a body over the cap only its head"""
    size: int = 0
    """bytes of the body that came"""
    last: bool = False
    """the caller wants no other call on this connection, or could not make one"""
    expects: bool = False
    """the caller sends the body once it was told 100 Continue"""
    waits: bool = False
    """it did not come in one piece: the application was told of it, and counts it as in flight"""
    refusal: Refusal | None = None
    """decided before the last byte"""

    @property
    def declared(self) -> int:
        """Bytes of the body by its own word; 0 where it has none. The parser has refused what is no number."""
        return int(self.headers.get(b"content-length", b"0"))


class Application(Protocol):
    """What is behind a port. Called on the event loop; answers at once."""

    room: int
    """bytes that it can use of a body"""
    most: int
    """bytes of a body over which nothing is read on"""

    def begin(self, call: Call) -> Refusal | None:
        """A call whose head is in and whose body is not; a refusal where the body cannot change the answer."""

    def answer(self, call: Call) -> Answer:
        """A call whose last byte is in, or that is refused, or over ``most``."""

    def lost(self, call: Call) -> None:
        """A call that began and will have no answer of this application."""


def start(status: int, *headers: bytes) -> bytes:
    """The beginning of an answer."""
    return b"HTTP/1.1 %d %b\r\n%b" % (status, HTTPStatus(status).phrase.encode(), b"".join(headers))


def said(status: int, sentence: str, *headers: bytes, close: bool = False) -> Answer:
    """An answer in one sentence of plain text."""
    return Answer(start(status, TEXT, *headers), f"{sentence}\n".encode(), close)


def come_back(sentence: str) -> Answer:
    """503: try again in a second, on another connection."""
    return said(503, sentence, RETRY, close=True)


def path_of(url: bytes) -> bytes:
    """Of ``/path?query`` or, as a client says it to a proxy, ``https://host/path``. What has none is itself: ``*``."""
    path: bytes = url.partition(b"?")[0]
    if path.startswith((b"http://", b"https://")):
        path = b"/" + path.split(b"/", 3)[3] if path.count(b"/") > 2 else b"/"
    return path


def unspoken(version: str, headers: Mapping[bytes, bytes], *, upgrade: bool) -> Answer | None:
    """What to say to a head that llhttp lets pass and that is not answered here. With a body whose end two readers may see in
    different places, the parser has refused: two lengths, a length and chunks, a line that is folded or ends in LF alone."""
    coding = headers.get(b"transfer-encoding", b"chunked").lower()
    if version not in ("1.0", "1.1"):
        return said(400, "speak HTTP/1.1", close=True)
    if upgrade:
        return said(400, "nothing but HTTP/1.1 is spoken here: leave out Upgrade and CONNECT", close=True)
    if coding != b"chunked" or (version == "1.0" and b"transfer-encoding" in headers):
        return said(400, "of transfer codings only chunked is read, with HTTP/1.1", close=True)
    if version == "1.1" and b"," in headers.get(b"host", b","):
        return said(400, "send one Host", close=True)
    if headers.get(b"expect", b"100-continue").lower() != b"100-continue":
        return said(417, "expect nothing but 100-continue", close=True)
    return None
