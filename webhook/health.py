"""The second port, without TLS: ``/livez``, ``/readyz`` and ``/metrics``, for a kubelet and Prometheus.

Alive means that the event loop turns: nothing outside, no API server and no disk, can make a live process be restarted. Ready
means that a call would be judged: the first policies are in, the certificate has not expired, the server is not about to stop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from webhook.app import Replica
from webhook.http import Answer, Call, Refusal, said, start


@dataclass(slots=True, kw_only=True)
class Condition:
    """What ``/readyz`` tells beside the snapshot. Times are Unix seconds."""

    replica: Replica
    certificate_expires: float = 0
    certificate_refused_at: float = 0
    """when what is on disk was found wrong; 0: it is what is served"""
    loaded_at: float = 0
    """when the policies in force were read"""
    refused_at: float = 0
    """when a newer set was refused; 0: the policies in force are the newest"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of ``/readyz``."""

    name: str
    ready: bool
    text: str

    def __str__(self) -> str:
        return f"[{'+' if self.ready else '-'}] {self.name}: {self.text}"


NOT_FOUND = said(404, "ask for /livez, /readyz or /metrics")
NOT_ALLOWED = said(405, "ask by GET", b"allow: GET, HEAD\r\n")
TOO_LONG = said(413, "send no body", close=True)


class Health:
    """What is behind the second port. See ``http.Application``."""

    room = 0
    most = 2**16

    def __init__(self, condition: Condition) -> None:
        self._condition = condition
        self._pages: dict[bytes, Callable[[Call], Answer]] = {b"/livez": _alive, b"/readyz": self._ready, b"/metrics": self._metrics}

    def begin(self, call: Call) -> Refusal | None:
        """A body changes nothing here."""
        return None

    def lost(self, call: Call) -> None:
        """Nobody counts these."""

    def answer(self, call: Call) -> Answer:
        """A page, of the moment."""
        page = self._pages.get(call.path)
        if page is None:
            return NOT_FOUND
        if call.method not in (b"GET", b"HEAD"):
            return NOT_ALLOWED
        return TOO_LONG if max(call.size, call.declared) > self.most else page(call)

    def _ready(self, call: Call) -> Answer:
        found = list(checks(self._condition, time.time()))
        ready = all(check.ready for check in found)
        return said(200 if ready else 503, "\n".join([*map(str, found), "ready" if ready else "not ready"]))

    def _metrics(self, call: Call) -> Answer:
        body, content_type = self._condition.replica.metrics.exposition(call.headers.get(b"accept", b"").decode("latin-1"))
        return Answer(start(200, b"content-type: %b\r\n" % content_type.encode()), body)


def checks(condition: Condition, now: float) -> Iterator[Check]:
    """Each check, ready or not, with what an engineer on call wants to know of it."""
    yield _policies(condition, now)
    yield _certificate(condition, now)
    if condition.replica.draining:
        yield Check(name="stopping", ready=False, text="calls are still answered; new ones should go elsewhere")


def _certificate(condition: Condition, now: float) -> Check:
    expires, refused_at = condition.certificate_expires, condition.certificate_refused_at
    until = f"{datetime.fromtimestamp(expires, UTC):%Y-%m-%d %H:%M:%S}Z"
    text = f"valid until {until}" if now < expires else f"expired on {until}"
    if refused_at:
        text += f"; what is on disk was refused {now - refused_at:.0f} s ago (log: event=certificate_refused)"
    return Check(name="certificate", ready=now < expires, text=text)


def _policies(condition: Condition, now: float) -> Check:
    snapshot = condition.replica.snapshot
    if snapshot is None:
        return Check(name="policies", ready=False, text="not loaded yet; calls get 503 with Retry-After")
    number = len(snapshot.policies)
    text = f"{number} in force, {snapshot.max_mode} at most, loaded {now - condition.loaded_at:.0f} s ago"
    if condition.refused_at:
        text += f"; a change {now - condition.refused_at:.0f} s ago was refused: the last good set acts (log: event=policies_refused)"
    return Check(name="policies", ready=True, text=text)


def _alive(call: Call) -> Answer:
    return said(200, "alive")
