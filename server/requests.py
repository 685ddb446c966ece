"""Parsing of the requests of one connection by llhttp, with a bound on all that an incomplete one may take."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from server.bodies import Pieces
from server.http import Answer, Application, Call, Denial, come_back, path_of, text_answer, unspoken
from server.limits import UID_BYTES

if TYPE_CHECKING:
    from server.server import Server

READ = {
    b"accept": False, b"content-encoding": False, b"content-length": False, b"content-type": False, b"host": False,
    b"connection": True, b"expect": True, b"transfer-encoding": True, b"upgrade": True,
}  # fmt: skip
"""The headers that are read of a call; True for those that mark it as unusual."""
SLASH = ord("/")
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
NO_ROOM = Denial("shed", come_back("too many unfinished bodies"))


class Requests(HttpToolsProtocol):
    """uvicorn's protocol, with a parser of calls in place of its own callbacks.

    A call that arrives in one piece, as the API server's do, is taken within ``_feed``, which raises what
    httptools raises. ``Protocol`` decides what is done with calls.
    """

    def __init__(self, port: Server, config: uvicorn.Config) -> None:
        super().__init__(config, port.server_state, {}, port.loop)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=False)  # uvicorn reads on behind the last call
        self._port = port
        self._feed: Any = self.parser.feed_data
        self._begun = False
        """True between the first and the last byte of a request."""
        self._url = b""
        self._kept: dict[bytes, bytes] = {}
        """The headers of the request so far."""
        self._unusual = False
        """True if a header requires a closer check of the call."""
        self._call: Call | None = None
        """The call whose head is complete."""
        self._pieces: Pieces | None = None
        """The pieces of the call's body, if it does not arrive at once."""
        self._wire = 0
        """Bytes of a request that does not arrive in one piece."""

    def take(self, call: Call) -> None:
        """Take a call that is complete, or whose answer is settled whatever else is sent: then it is the last
        one."""
        raise NotImplementedError

    def deny(self, reason: str, answer: Answer) -> None:
        """Reject what is no call, and end the connection. ``reason``: one of ``metrics.CUTS``."""
        raise NotImplementedError

    def _asked(self, call: Call) -> Application | None:
        """Return the application that answers it without a task; None if the ASGI application answers in one."""
        return self._port.direct.get(call.path) if call.method == b"POST" else None

    def _part(self, size: int) -> bool:
        """Account for a piece of ``size`` bytes that ended within a request; return whether it was its first."""
        first, call = not self._wire, self._call
        self._wire += size
        if call is not None:
            self._wait_on(call)
        elif self._wire > self._port.limits.head:
            self.deny("head", text_answer(431, f"a head has at most {self._port.limits.head} bytes", close=True))
        return first

    def _forsake_begun(self) -> None:
        """Drop the incomplete call and all that is held of it."""
        call, self._call = self._call, None
        self._drop_pieces()
        if call is not None:
            self._lose(call)

    def _lose(self, call: Call) -> None:
        """Tell the application of a call that waits that it will have no answer."""
        if call.waits and (asked := self._asked(call)) is not None:
            asked.lost(call)

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        self._begun = True

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        unusual = READ.get(name)
        if unusual is None:
            return
        headers = self._kept
        if unusual or name in headers:
            self._unusual = True
        headers[name] = headers[name] + b", " + value if name in headers else value

    def on_headers_complete(self) -> None:
        url, headers, parser = self._url, self._kept, self.parser
        self._url, self._kept = b"", {}
        self._call = Call(parser.get_method(), url.partition(b"?")[0], headers, monotonic())
        if self._unusual or not parser.should_keep_alive() or b"host" not in headers or url[0] != SLASH:
            self._unusual = False
            self._consider(self._call, url)

    def on_body(self, body: bytes) -> None:
        call = self._call
        if call is None:
            return
        if call.size or call.waits:
            self._more(call, body)
        else:
            call.body = body
            call.size = len(body)

    def on_message_complete(self) -> None:
        call, self._call = self._call, None
        self._begun = False
        self._wire = 0
        if self._kept:  # trailers
            self._kept = {}
            self._unusual = False
        if call is None:
            return
        if self._pieces is not None:
            call.body = self._pieces.whole() or call.body
            self._pieces = None
        self.take(call)

    # Unusual or incomplete calls

    def _consider(self, call: Call, url: bytes) -> None:
        version = self.parser.get_http_version()
        denied = unspoken(version, call.headers, upgrade=self.parser.should_upgrade())
        if denied is not None:
            self._call = None
            self.deny("garbled", denied)
            return
        call.last = version == "1.0" or not self.parser.should_keep_alive()
        call.expects = version == "1.1" and b"expect" in call.headers
        call.path = path_of(url)

    def _wait_on(self, call: Call) -> None:
        asked = self._asked(call)
        if not call.waits:
            self._begin(call, asked)
        now = call.expects and call.denial is not None
        if now or max(call.size, call.declared) > (asked.most if asked is not None else self._port.most):
            self._call, call.last = None, True
            self._drop_pieces()
            self.take(call)
        elif self._wire > 2 * call.size + 2 * self._port.limits.head:
            self.deny("garbled", text_answer(400, "send larger chunks", close=True))

    def _begin(self, call: Call, asked: Application | None) -> None:
        """Begin to wait for the body of a call. Nothing is held of a body that no page reads."""
        call.waits = True
        call.room = 0
        if asked is not None:
            call.room = asked.room
            call.denial = asked.begin(call)
        if call.denial is None and not self._port.bodies.has(min(call.declared, call.room)):
            call.denial = NO_ROOM
        self._keep(call, call.body)
        if call.expects and call.denial is None and not call.size:
            self.transport.write(CONTINUE)

    def _more(self, call: Call, chunk: bytes) -> None:
        """Take the part of a body that follows its first piece."""
        call.size += len(chunk)
        if call.waits:
            self._keep(call, chunk)
        else:
            call.body += chunk  # chunks that came in one piece, so it can't be long

    def _keep(self, call: Call, chunk: bytes) -> None:
        """Hold a piece of the body: of one that is rejected or over the cap only the start with the uid."""
        if self._pieces is None:
            self._pieces = Pieces(self._port.bodies)
            call.body = b""
        if call.denial is not None or max(call.size, call.declared) > call.room:
            call.body = call.body or self._pieces.head(UID_BYTES)
            call.body += chunk[: UID_BYTES - len(call.body)]
            self._pieces.drop()
        elif not self._pieces.add(chunk):
            call.denial = NO_ROOM

    def _drop_pieces(self) -> None:
        if self._pieces is not None:
            self._pieces.drop()
            self._pieces = None
