"""The calls: a request in, an answer out, without a socket. ``App`` is what is behind the first port.

Berth is never wrong in silence: without a snapshot the answer is 503 with ``Retry-After`` (the API server then tries
again inside its own timeout, on another connection), never "allowed".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple

from policies.snapshot import Snapshot
from webhook import judged, logs, unread
from webhook.awaited import Awaited
from webhook.http import JSON, Answer, Call, Refusal, come_back, said, start
from webhook.limits import UID_BYTES, Limits
from webhook.metrics import Metrics
from webhook.overload import Overload
from webhook.review import ReviewError
from webhook.shares import DEAR, Shares

LARGEST_REVIEW = 40 * 2**20
"""Bytes. A client may send the API server 3 MiB; an update's review holds the pod twice, and Go writes ``<`` in six bytes."""

Judge = Callable[[bytes, Snapshot, Metrics, Awaited], tuple[str, bytes]]
"""A body judged: the decision in one word, and the AdmissionReview to send, as JSON. Raises ReviewError and judged.NotYet."""


@dataclass(slots=True, kw_only=True)
class Replica:
    """What a call reads besides its body. Changed only on the event loop, between calls: no call takes a lock."""

    limits: Limits
    metrics: Metrics
    snapshot: Snapshot | None = None
    """None until the first policies are in"""
    awaited: Awaited = field(default_factory=Awaited)
    shares: Shares = field(default_factory=Shares)
    draining: bool = False
    """True once the server is to stop: every answer then closes its connection, so that the next call goes elsewhere"""


class Route(NamedTuple):
    """One path."""

    phase: str
    judge: Judge


ROUTES: Mapping[bytes, Route] = {
    b"/mutate": Route("mutate", functools.partial(judged.pod, "mutate")),
    b"/validate": Route("validate", judged.validated),
    b"/advise": Route("advise", judged.workload),
}
OK_JSON = start(200, JSON)
NOT_FOUND = said(404, "nothing is here: the API server posts to /mutate, /validate and /advise")
NOT_ALLOWED = Refusal("", said(405, "send a review by POST", b"allow: POST\r\n"))
NOT_JSON = Refusal("rejected", said(415, "send the review as application/json"))
COMPRESSED = Refusal("rejected", said(415, "send the review uncompressed, as the API server does"))
NO_REVIEW = Refusal("rejected", said(413, f"the body is larger than {LARGEST_REVIEW} bytes, which no review of a pod is", close=True))
NO_UID = Refusal("rejected", said(413, "the review is larger than the body cap", close=True))
NOT_LOADED = Refusal("unavailable", come_back("the policies are not loaded yet"))
NOT_YET = Refusal("unavailable", come_back("a namespace or a resource claim on which the decision rests is not known yet"))
OVER_SHARE = Refusal("shed", come_back("the reviews of this namespace take more than its share of this replica's time"))
BEHIND = Refusal("shed", come_back("this replica is behind"))
FAILED = Refusal("failed", said(500, "Berth failed to judge this review; its log says why (event=failed)"))


class App:
    """See ``http.Application``."""

    most = LARGEST_REVIEW

    def __init__(self, replica: Replica, routes: Mapping[bytes, Route] = ROUTES) -> None:
        self.room = replica.limits.body
        self.overload = Overload(replica.limits.shed_after / 1000)
        self._replica = replica
        self._routes = routes

    def begin(self, call: Call) -> Refusal | None:
        """See ``http.Application``."""
        if call.path in self._routes:
            self._replica.metrics.in_flight.inc()
        return self._refusal(call)

    def lost(self, call: Call) -> None:
        """The caller hung up, or was cut."""
        route = self._routes.get(call.path)
        if route is not None:
            self._replica.metrics.in_flight.dec()
            self._replica.metrics.answered(route.phase, "rejected", monotonic() - call.arrived)

    def answer(self, call: Call) -> Answer:
        """An answer to one call, whatever becomes of it; counted and timed."""
        route = self._routes.get(call.path)
        if route is None:
            answer = NOT_FOUND
        else:
            decision, answer = call.refusal or self._refusal(call) or self._judged(route, call)
            self._tell(route.phase, decision, answer, call)
        return answer._replace(close=True) if self._replica.draining else answer

    def _tell(self, phase: str, decision: str, answer: Answer, call: Call) -> None:
        metrics = self._replica.metrics
        if call.waits:
            metrics.in_flight.dec()
        if decision == "rejected":
            logs.write("rejected", "warning", phase=phase, status=answer.status, reason=logs.cut(answer.body.decode().strip()))
        if decision:
            metrics.answered(phase, decision, monotonic() - call.arrived)

    def _refusal(self, call: Call) -> Refusal | None:
        """What is settled without the body."""
        if call.path not in self._routes:
            return Refusal("", NOT_FOUND)
        if call.method != b"POST":
            return NOT_ALLOWED
        if self._replica.snapshot is None:
            return NOT_LOADED
        headers = call.headers
        if headers.get(b"content-type") != b"application/json" and not _is_json(headers.get(b"content-type", b"")):
            return NOT_JSON
        if headers.get(b"content-encoding", b"identity") != b"identity":
            return COMPRESSED
        if max(call.size, call.declared) > LARGEST_REVIEW:
            return NO_REVIEW
        return None

    def _judged(self, route: Route, call: Call) -> tuple[str, Answer]:
        replica = self._replica
        assert replica.snapshot is not None, "a call without it is refused; it never goes away again"
        now = monotonic()
        if self.overload.sheds(now):
            return BEHIND
        if call.size > self.room:
            return self._unjudged(route.phase, call, replica.snapshot)
        if replica.shares.tight(now) and (turned := self._over_share(route.phase, call, replica.snapshot, now)) is not None:
            return turned
        decided = self._decided(route, call, replica.snapshot)
        if (until := monotonic()) - now > DEAR:
            replica.shares.spent(_namespace(unread.head_of(call.body[:UID_BYTES])), until - now, until)
        return decided

    def _over_share(self, phase: str, call: Call, snapshot: Snapshot, now: float) -> tuple[str, Answer] | None:
        """None: it is judged."""
        head, shares = unread.head_of(call.body[:UID_BYTES]), self._replica.shares
        turn = shares.turn(_namespace(head), head.uid, now) if head is not None else "judge"
        if head is None or turn == "judge":
            return None
        if shares.tells(_namespace(head), now):
            logs.write("over_share", "warning", namespace=head.namespace, text="its reviews are dear to judge, and wait for others")
        if turn == "wait" and phase != "advise":
            return OVER_SHARE
        decision, answer = judged.over_share(phase, head, snapshot)
        return decision, Answer(OK_JSON, answer)

    def _decided(self, route: Route, call: Call, snapshot: Snapshot) -> tuple[str, Answer]:
        replica = self._replica
        try:
            # by the snapshot of now: it may have changed while the body came
            decision, answer = route.judge(call.body, snapshot, replica.metrics, replica.awaited)
        except judged.NotYet:
            return NOT_YET
        except ReviewError as error:
            return "rejected", said(error.status, error.sentence)
        except Exception as error:  # noqa: BLE001 - whatever it was, the caller gets a sentence and the log gets the rest
            logs.write("failed", "error", phase=route.phase, error=logs.trace(error))
            head = unread.head_of(call.body[:UID_BYTES])
            return FAILED if head is None else ("failed", Answer(OK_JSON, judged.failed(route.phase, head, snapshot)))
        return decision, Answer(OK_JSON, answer)

    def _unjudged(self, phase: str, call: Call, snapshot: Snapshot) -> tuple[str, Answer]:
        """A review over the cap is answered all the same, by its head."""
        head = unread.head_of(call.body[:UID_BYTES])
        if head is None:
            return NO_UID
        decision, answer = judged.too_large(phase, head, call.size, self.room, snapshot)
        return decision, Answer(OK_JSON, answer)


def _namespace(head: unread.Head | None) -> str:
    """Those of which it is not known share one share: nobody's call is of none."""
    return head.namespace or "" if head is not None else ""


def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"
