"""One connection of a caller: its calls are answered where their last byte comes in, without a task, in order; and it ends in time.

An answer waits for the last byte even where it is settled before, for a caller that is still writing may not read; but who asks first
(Expect), or sends more than any review has, is told at once.
"""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import NamedTuple

import httptools

from webhook import logs
from webhook.channel import Channel
from webhook.deadline import Deadline
from webhook.http import Answer, Call, come_back, said
from webhook.limits import CROWDED, GOODBYE
from webhook.port import OPEN, SHAKING, Port
from webhook.reading import Reader

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
GOODBYE_ANSWER = come_back("the server stops: ask another one").encoded(close=True)
TOO_MANY = come_back("too many connections")
LAST_WORDS = {"slow": said(408, "the request took too long to arrive", close=True), "crowded": TOO_MANY}
"""to a caller that missed a deadline"""


class LastWord(NamedTuple):
    """What is said at the end, after the answers to the calls that came before."""

    reason: str
    answer: Answer


class Connection:
    """See ``channel.Receiver`` and ``reading.Taker``. ``over``: there are too many, so this one is only told to come back."""

    __slots__ = ("_blocked", "_busy", "_channel", "_deadline", "_ended", "_over", "_port", "_queue", "_reader", "_unproven")

    def __init__(self, port: Port, channel: Channel, *, over: bool) -> None:
        self._port = port
        self._channel = channel
        self._over = over
        self._reader: Reader | None = None
        """None before it is open and after its end"""
        self._queue: deque[Call | LastWord] = deque()
        """calls that are in and wait: who does not wait for answers gets one in each turn of the event loop"""
        self._busy = self._blocked = self._ended = False
        self._unproven = True
        self._deadline = Deadline(port.loop, self._missed)
        self._deadline.set("handshake", port.limits.handshake)

    @property
    def is_idle(self) -> bool:
        """No call is on its way, as far as can be seen from here."""
        return self._reader is not None and not (self._reader.begun or self._queue or self._ended)

    # What the channel tells

    def greeted(self) -> None:
        self._port.reached(self, SHAKING)

    def opened(self) -> None:
        self._port.reached(self, OPEN)
        self._reader = Reader(self, self._port.app, self._port.bodies, self._port.limits.head)
        if self._over:
            self._deadline.set("crowded", CROWDED)
        else:
            self._deadline.set("idle", self._port.limits.keep_alive)

    def received(self, piece: bytes) -> None:
        reader = self._reader
        if reader is None:
            return
        self._busy = False
        try:
            reader.feed(piece)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._stumble(error)
        else:
            self._expect_more(reader, len(piece))
        if self._queue and self._goes_on():
            self._channel.pause()
            self._port.loop.call_soon(self._next)

    def _expect_more(self, reader: Reader, size: int) -> None:
        """A piece is read, and was not the last of a call."""
        if reader.begun and self._goes_on() and reader.part(size) and self._goes_on() and not (self._blocked or self._over):
            self._deadline.set("slow", self._port.limits.request_deadline)

    def blocked(self, blocked: bool) -> None:
        self._blocked = blocked
        if self._ended:
            return
        if blocked:
            self._deadline.set("unread", self._port.limits.unread)
            self._channel.pause()
        else:
            self._be_patient()
            self._port.loop.call_soon(self._next)

    def finished(self) -> None:
        self._end()

    def broke(self, reason: str) -> None:
        self._ended = True
        self._port.cut(reason)

    def lost(self) -> None:
        self._ended = True
        self._deadline.end()
        self._forsake()
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.end()
        self._port.gone(self)

    # What the reader has

    def take(self, call: Call) -> None:
        if self._ended:
            return
        if self._busy or self._blocked or self._queue:
            self._queue.append(call)
        else:
            self._answer(call)

    def tell_to_go_on(self) -> None:
        self._channel.write(CONTINUE)

    def refuse(self, reason: str, answer: Answer) -> None:
        """End it, with a word, that is not to stand where the answer of another call is waited for."""
        if self._queue:
            self._queue.append(LastWord(reason, answer))
        elif not self._ended:
            self._part(LastWord(reason, answer))

    def _part(self, last: LastWord) -> None:
        self._port.cut(last.reason)
        self._channel.write(last.answer.encoded(close=True))
        self._end()

    def _answer(self, call: Call) -> None:
        self._busy = True
        deadline = self._deadline
        deadline.reason, deadline.at = "idle", monotonic() + self._port.limits.keep_alive
        answer = self._turned_away(call) if self._over else self._port.app.answer(call)
        close = answer.close or call.last or self._port.stopping
        self._channel.write(answer.encoded(close=close, only_head=call.method == b"HEAD"))
        if close:
            self._end()
        elif self._unproven and answer.status == 200:
            self._unproven = False
            self._port.proven(self)

    def _turned_away(self, call: Call) -> Answer:
        self._port.cut("crowded")
        if call.waits:
            self._port.app.lost(call)
        return TOO_MANY

    def _next(self) -> None:
        """The next of the calls that wait."""
        if self._queue and self._goes_on() and not self._blocked:
            call = self._queue.popleft()
            if isinstance(call, LastWord):
                self._part(call)
            else:
                self._answer(call)
        if self._blocked or not self._goes_on():
            return
        if self._queue:
            self._port.loop.call_soon(self._next)
        else:
            self._be_patient()
            self._channel.resume()

    def _goes_on(self) -> bool:
        return not self._ended

    # The end

    def say_goodbye(self) -> None:
        """To a caller that does not wait for an answer, as far as can be seen from here. It may have sent a call this very moment,
        which would be lost: the API server never sends one twice. So it gets an answer all the same: to a call that is on its way it
        says to try again, and Go's client drops an answer to nothing together with its connection."""
        self._channel.write(GOODBYE_ANSWER)
        self._end()

    def evict(self) -> None:
        """To make room."""
        self._port.cut("crowded")
        self.end_now()

    def end_now(self) -> None:
        """By force."""
        self._ended = True
        self._channel.abort()

    def _end(self) -> None:
        """Nothing follows what was written. What the caller is still sending is read for a while: an end by force would take the
        answer along."""
        self._ended = True
        self._forsake()
        self._deadline.set("goodbye", self._port.limits.unread if self._blocked else GOODBYE)
        self._channel.close()

    def _forsake(self) -> None:
        """The calls that have no answer get none."""
        if self._reader is not None:
            self._reader.forsake()
        for call in self._queue:
            if isinstance(call, Call) and call.waits:
                self._port.app.lost(call)
        self._queue.clear()

    def _stumble(self, error: Exception) -> None:
        """The parser will not go on."""
        if self._ended:
            return  # as it should: something follows the last call
        if not isinstance(error, httptools.HttpParserCallbackError):
            self.refuse("garbled", said(400, f"this is not HTTP/1.1 as Berth reads it: {error}", close=True))
            return
        cause = error.__context__
        logs.write("failed", "error", phase="connection", error=logs.trace(cause if isinstance(cause, Exception) else error))
        self._port.cut("garbled")
        self.end_now()

    def _be_patient(self) -> None:
        limits = self._port.limits
        if self._reader is not None and self._reader.begun:
            self._deadline.set("slow", limits.request_deadline)
        else:
            self._deadline.set("idle", limits.keep_alive)

    def _missed(self, reason: str) -> None:
        """A deadline."""
        if reason in LAST_WORDS and not self._queue:
            self.refuse(reason, LAST_WORDS[reason])
        elif reason == "idle":
            self._port.cut("idle")
            self._end()
        else:
            if reason != "goodbye":
                self._port.cut(reason)
            self.end_now()
