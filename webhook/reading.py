"""The requests of one connection out of its bytes, by llhttp: calls that are in, and a bound on all that one may take until it is."""

from __future__ import annotations

from time import monotonic
from typing import Any, Protocol

import httptools

from webhook.bodies import BodyMemory, Pieces
from webhook.http import Answer, Application, Call, Refusal, come_back, path_of, said, unspoken
from webhook.limits import UID_BYTES

READ = {
    b"accept": False, b"content-encoding": False, b"content-length": False, b"content-type": False, b"host": False,
    b"connection": True, b"expect": True, b"transfer-encoding": True, b"upgrade": True,
}  # fmt: skip
"""The headers that are kept of a call, and whether one tells that it is no everyday one."""
SLASH = ord("/")
NO_ROOM = Refusal("shed", come_back("too many bodies are on their way"))


class Taker(Protocol):
    """Who gets the calls. After ``refuse`` nothing more is wanted of the connection."""

    def take(self, call: Call) -> None:
        """Its last byte is in, or it will be answered the same, whatever else is sent: then it is the last one."""

    def tell_to_go_on(self) -> None:
        """The caller waits for 100 Continue."""

    def refuse(self, reason: str, answer: Answer) -> None:
        """What came is no call. ``reason``: of ``metrics.CUTS``."""


class Reader:
    """A call that comes in one piece, as the API server's do, is taken within ``feed``. Raises what httptools raises."""

    __slots__ = (
        "_app",
        "_bodies",
        "_call",
        "_head",
        "_headers",
        "_parser",
        "_pieces",
        "_taker",
        "_unusual",
        "_url",
        "_wire",
        "begun",
        "feed",
    )

    def __init__(self, taker: Taker, app: Application, bodies: BodyMemory, head: int) -> None:
        self._taker = taker
        self._app = app
        self._bodies = bodies
        self._head = head
        """bytes that one may have"""
        self._parser: Any = httptools.HttpRequestParser(self)
        self.feed: Any = self._parser.feed_data
        self.begun = False
        """the first byte of a request is in, the last is not"""
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._unusual = False
        """a header of the call asks for a second look"""
        self._call: Call | None = None
        """whose head is in"""
        self._pieces: Pieces | None = None
        """of the call's body, where it does not come at once"""
        self._wire = 0
        """bytes of a request that does not come in one piece"""

    def part(self, size: int) -> bool:
        """A piece of ``size`` bytes has ended within a request. Whether it was its first."""
        first, call = not self._wire, self._call
        self._wire += size
        if call is None:
            if self._wire > self._head:
                self._taker.refuse("head", said(431, f"a head has at most {self._head} bytes", close=True))
        else:
            self._wait_on(call)
        return first

    def forsake(self) -> None:
        """The call that is on its way gets no answer of the application, and nothing is held of it."""
        call, self._call = self._call, None
        self._drop_pieces()
        if call is not None and call.waits:
            self._app.lost(call)

    def end(self) -> None:
        """The parser holds this object."""
        self._parser = self.feed = None

    # What the parser tells

    def on_message_begin(self) -> None:
        self.begun = True

    def on_url(self, part: bytes) -> None:
        self._url += part

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        unusual = READ.get(name)
        if unusual is None:
            return
        headers = self._headers
        if unusual or name in headers:
            self._unusual = True
        headers[name] = headers[name] + b", " + value if name in headers else value

    def on_headers_complete(self) -> None:
        url, headers, parser = self._url, self._headers, self._parser
        self._url, self._headers = b"", {}
        self._call = Call(parser.get_method(), url.partition(b"?")[0], headers, monotonic())
        if self._unusual or not parser.should_keep_alive() or b"host" not in headers or url[0] != SLASH:
            self._unusual = False
            self._consider(self._call, url)

    def on_body(self, chunk: bytes) -> None:
        call = self._call
        if call is None:
            return
        if call.size or call.waits:
            self._more(call, chunk)
        else:
            call.body = chunk
            call.size = len(chunk)

    def on_message_complete(self) -> None:
        call, self._call = self._call, None
        self.begun = False
        self._wire = 0
        if self._headers:  # trailers
            self._headers = {}
            self._unusual = False
        if call is None:
            return
        if self._pieces is not None:
            call.body = self._pieces.whole() or call.body
            self._pieces = None
        self._taker.take(call)

    # A call that is not everyday, or not in

    def _consider(self, call: Call, url: bytes) -> None:
        version = self._parser.get_http_version()
        refused = unspoken(version, call.headers, upgrade=self._parser.should_upgrade())
        if refused is not None:
            self._call = None
            self._taker.refuse("garbled", refused)
            return
        call.last = version == "1.0" or not self._parser.should_keep_alive()
        call.expects = version == "1.1" and b"expect" in call.headers
        call.path = path_of(url)

    def _wait_on(self, call: Call) -> None:
        if not call.waits:
            self._begin(call)
        now = call.expects and call.refusal is not None
        if now or max(call.size, call.declared) > self._app.most:
            self._call, call.last = None, True
            self._drop_pieces()
            self._taker.take(call)
        elif self._wire > 2 * call.size + 2 * self._head:
            self._taker.refuse("garbled", said(400, "send larger chunks", close=True))

    def _begin(self, call: Call) -> None:
        """It waits for its body."""
        call.waits = True
        call.refusal = self._app.begin(call)
        if call.refusal is None and not self._bodies.has(min(call.declared, self._app.room)):
            call.refusal = NO_ROOM
        self._keep(call, call.body)
        if call.expects and call.refusal is None and not call.size:
            self._taker.tell_to_go_on()

    def _more(self, call: Call, chunk: bytes) -> None:
        """What comes of a body after its first piece."""
        call.size += len(chunk)
        if call.waits:
            self._keep(call, chunk)
        else:
            call.body += chunk  # chunks that came in one piece, so it can't be long

    def _keep(self, call: Call, chunk: bytes) -> None:
        """Of a body that is over the cap, only what tells its uid; of one that is refused, nothing."""
        if self._pieces is None:
            self._pieces = Pieces(self._bodies)
            call.body = b""
        if call.refusal is not None:
            self._pieces.drop()
        elif max(call.size, call.declared) > self._app.room:
            call.body = call.body or self._pieces.head(UID_BYTES)
            call.body += chunk[: UID_BYTES - len(call.body)]
            self._pieces.drop()
        elif not self._pieces.add(chunk):
            call.refusal = NO_ROOM

    def _drop_pieces(self) -> None:
        if self._pieces is not None:
            self._pieces.drop()
            self._pieces = None
