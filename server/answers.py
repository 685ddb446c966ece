"""The calls of one connection, answered in order: most at once when their last byte arrives, the others by
Starlette in a task.

An answer waits for the last byte even if it is settled before, for a caller that is still writing may not
read; but a caller that sent Expect, or more bytes than any review has, is answered at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import uvicorn

from server.deadlines import Deadline
from server.http import Answer, Call, come_back, text_answer
from server.requests import Requests
from server.routes import OK, cycle

if TYPE_CHECKING:
    from server.server import Server

TOO_MANY = come_back("too many connections")
TOO_LONG = text_answer(413, "send no body", close=True)
UNNAMED = text_answer(403, "the client certificate has none of the names of --client-names", close=True)


class LastWord(NamedTuple):
    """The last answer of a connection, sent after the answers to the calls before it."""

    reason: str
    answer: Answer


class Answers(Requests):
    """The queue of calls of one connection; ``Protocol`` has the connection itself."""

    def __init__(self, port: Server, config: uvicorn.Config) -> None:
        super().__init__(port, config)
        self.is_open = False
        """True once the handshake is done."""
        self._queue: deque[Call | LastWord] = deque()
        """Complete calls that wait. Of a caller that pipelines, one is answered in each turn of the event
        loop."""
        self._busy = self._running = self._blocked = self.is_ended = False
        """In order: a call was answered in this turn; another is parked, or the ASGI application is running it; the caller
        leaves answers unread; no further call is answered."""
        self._named = True
        self._over = False
        """True if there is no place for the connection, so that it is only told to come back."""
        self._deadline = Deadline(port.loop, self.miss)
        self._deadline.set("handshake", port.limits.handshake)

    def miss(self, reason: str) -> None:
        """Handle a deadline that has passed."""
        raise NotImplementedError

    def go_on(self) -> None:
        """Read on: no call waits any more."""
        raise NotImplementedError

    def used(self, *, good: bool) -> None:
        """Note that an answer was sent and the connection goes on. ``good``: its status was 200."""
        raise NotImplementedError

    def end(self) -> None:
        """End the connection after what was written."""
        raise NotImplementedError

    def take(self, call: Call) -> None:
        if self.is_ended:
            return
        if self._busy or self._running or self._blocked or self._queue:
            self._queue.append(call)
        else:
            self._answer(call)

    def deny(self, reason: str, answer: Answer) -> None:
        """End the connection with this answer, but not in place of the answer that another call waits for."""
        if self._queue or self._running:
            self._queue.append(LastWord(reason, answer))
        elif not self.is_ended:
            self._say_last(LastWord(reason, answer))

    def _say_last(self, last: LastWord) -> None:
        self._port.cut(last.reason)
        self._send(last.answer, close=True)

    def _answer(self, call: Call) -> None:
        self._busy = True
        deadline, port = self._deadline, self._port
        deadline.reason, deadline.at = "idle", monotonic() + port.limits.keep_alive
        asked = self._asked(call)
        answer: Answer | None
        if self._over and call.path not in port.always:
            answer = self._turned_away(call)
        elif not self._named:
            self._lose(call)
            answer = UNNAMED
        elif asked is not None:
            answer = asked.answer(call, self._answer_later)
        elif max(call.size, call.declared) > port.most:
            answer = TOO_LONG
        else:
            self._ask(call)
            return
        if answer is None:
            self._running = True
        else:
            self._send_to(call, answer)

    def _answer_later(self, call: Call, answer: Answer) -> None:
        """Send the answer to a call that was parked, unless its caller is gone."""
        self._running = False
        if not self.is_ended:
            self._send_to(call, answer)
            self.loop.call_soon(self._next)

    def _send_to(self, call: Call, answer: Answer) -> None:
        last = answer.close or call.last or self._over or self._port.stopping
        self._send(answer, close=last, only_head=call.method == b"HEAD")

    def _send(self, answer: Answer, *, close: bool, only_head: bool = False) -> None:
        self.transport.write(answer.encoded(close=close, only_head=only_head))
        if close:
            self.end()
        else:
            self.used(good=answer.start.startswith(OK))

    def _turned_away(self, call: Call) -> Answer:
        self._port.cut("crowded")
        self._lose(call)
        asked = self._asked(call)
        return TOO_MANY if asked is None else asked.turned_away(call, TOO_MANY)

    def _next(self) -> None:
        """Answer the next of the waiting calls."""
        if not self._goes_on():
            return
        if self._queue:
            call = self._queue.popleft()
            if isinstance(call, LastWord):
                self._say_last(call)
            else:
                self._answer(call)
        if not self._goes_on():
            return
        if self._queue:
            self.loop.call_soon(self._next)
            return
        self.go_on()

    def _goes_on(self) -> bool:
        return not (self.is_ended or self._blocked or self._running)

    def _ask(self, call: Call) -> None:
        """Let the ASGI application answer in a task; its answer ends the connection where ours would."""
        self._running = True
        last = call.last or self._over or self._port.stopping
        self.cycle = cycle(call, self, self._answered, keep_alive=not last)
        self._start_asgi_task(self.cycle, self.app)

    def _answered(self, good: bool) -> None:
        self._running = False
        if not self.is_ended:
            self.used(good=good)
            self.loop.call_soon(self._next)


def is_named(transport: asyncio.BaseTransport, names: AbstractSet[str]) -> bool:
    """Return whether the caller's certificate has one of the names; without ``names`` any caller does."""
    return not names or not names.isdisjoint(_names(transport.get_extra_info("peercert") or {}))


def _names(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Yield the common name and the alternative names: DNS names, addresses, URIs."""
    for attributes in certificate.get("subject", ()):
        yield from (value for key, value in attributes if key == "commonName")
    yield from (value for _, value in certificate.get("subjectAltName", ()))
