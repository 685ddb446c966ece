"""The calls of one connection, answered in order: most at once when their last byte arrives, the others when their application has an
answer. Such a call is parked, and the calls behind it wait.

An answer waits for the last byte even if it is settled before, for a caller that is still writing may not
read; but a caller that sent Expect, or more bytes than any review has, is answered at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic
from typing import NamedTuple, Protocol

from server.deadlines import Deadline
from server.http import OK, Answer, Call, come_back, text_answer
from server.port import Port

TOO_MANY = come_back("too many connections")
UNNAMED = text_answer(403, "the client certificate has none of the names of --client-names", close=True)


class LastAnswer(NamedTuple):
    """The last answer of a connection, sent after the answers to the calls before it."""

    reason: str
    answer: Answer


class Outlet(Protocol):
    """The connection, as far as answers need it."""

    def send(self, data: bytes) -> None:
        """Write an answer."""

    def answered(self, *, is_good: bool) -> None:
        """Note that an answer was sent and the connection goes on. ``is_good``: its status was 200."""

    def read_on(self) -> None:
        """Read on: no call waits any more."""

    def end(self) -> None:
        """End the connection after what was written."""


class AnswerQueue:
    """The calls of one connection that have no answer yet."""

    def __init__(self, port: Port, outlet: Outlet, deadline: Deadline, loop: asyncio.AbstractEventLoop) -> None:
        self._port = port
        self._outlet = outlet
        self._deadline = deadline
        self._loop = loop
        self._waiting: deque[Call | LastAnswer] = deque()
        """Complete calls. Of a caller that pipelines, one is answered in each turn of the event loop."""
        self.is_busy = False
        """True if a call was answered in this turn."""
        self.is_parked = False
        """True if the application of a call will answer it later."""
        self.is_blocked = False
        """True if the caller leaves answers unread."""
        self.is_ended = False
        """True if no further call is answered."""
        self.is_named = True
        """False if the caller's certificate has none of the names that are required."""
        self.is_over = False
        """True if there is no place for the connection, so that it is only told to come back."""

    @property
    def has_calls(self) -> bool:
        """True if a call has no answer yet."""
        return bool(self._waiting) or self.is_parked

    @property
    def has_waiting(self) -> bool:
        """True if a call waits for its turn."""
        return bool(self._waiting)

    @property
    def goes_on(self) -> bool:
        """True if the next call can be answered now."""
        return not (self.is_ended or self.is_blocked or self.is_parked)

    def take(self, call: Call) -> None:
        """Take a call that is complete, or whose answer is settled whatever else is sent: then it is the last one."""
        if self.is_ended:
            return
        if self.is_busy or self.is_parked or self.is_blocked or self._waiting:
            self._waiting.append(call)
        else:
            self._answer(call)

    def reject(self, reason: str, answer: Answer) -> None:
        """Reject what is no call and end the connection, but not in place of the answer that another call waits for. ``reason``: one of
        ``metrics.CUTS``."""
        if self.has_calls:
            self._waiting.append(LastAnswer(reason, answer))
        elif not self.is_ended:
            self._end_with(LastAnswer(reason, answer))

    def next(self) -> None:
        """Answer the next of the calls that wait."""
        if self.goes_on and self._waiting:
            call = self._waiting.popleft()
            if isinstance(call, LastAnswer):
                self._end_with(call)
            else:
                self._answer(call)
        if self.goes_on:
            if self._waiting:
                self._loop.call_soon(self.next)
            else:
                self._outlet.read_on()

    def forsake(self) -> None:
        """Drop the calls that wait: they will have no answer."""
        for call in self._waiting:
            if isinstance(call, Call):
                self.lose(call)
        self._waiting.clear()

    def close(self) -> None:
        """Answer nothing any more, and let go of the connection, which refers to this object."""
        self.is_ended = True
        self.forsake()
        del self._outlet

    def lose(self, call: Call) -> None:
        """Tell the application of a call that began that it will have no answer."""
        if call.waits:
            self._port.application(call).lost(call)

    def _answer(self, call: Call) -> None:
        self.is_busy = True
        self._deadline.reason, self._deadline.at = "idle", monotonic() + self._port.limits.keep_alive
        application = self._port.application(call)
        answer: Answer | None
        if self.is_over and call.path not in self._port.always:
            self._port.cut("crowded")
            self.lose(call)
            answer = application.turned_away(call, TOO_MANY)
        elif not self.is_named:
            self.lose(call)
            answer = UNNAMED
        else:
            answer = application.answer(call, self._answer_later)
        if answer is None:
            self.is_parked = True
        else:
            self._send_to(call, answer)

    def _answer_later(self, call: Call, answer: Answer) -> None:
        """Send the answer to a call that was parked, unless its caller is gone."""
        self.is_parked = False
        if not self.is_ended:
            self._send_to(call, answer)
            self._loop.call_soon(self.next)

    def _send_to(self, call: Call, answer: Answer) -> None:
        is_last = answer.close or call.last or self.is_over or self._port.stopping.is_set()
        self._send(answer, is_last=is_last, only_head=call.method == b"HEAD")

    def _end_with(self, last: LastAnswer) -> None:
        self._port.cut(last.reason)
        self._send(last.answer, is_last=True)

    def _send(self, answer: Answer, *, is_last: bool, only_head: bool = False) -> None:
        self._outlet.send(answer.encoded(close=is_last, only_head=only_head))
        if is_last:
            self._outlet.end()
        else:
            self._outlet.answered(is_good=answer.start.startswith(OK))
