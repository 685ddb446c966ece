"""The admission endpoints: a request in, an answer out, without a socket. ``starlette_of`` makes the
application of the first port.

Berth never allows a pod unjudged because it is not ready: without a snapshot the answer is 503 with
``Retry-After`` (the API server then tries again within its own timeout, on another connection), never
"allowed".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple

from starlette.applications import Starlette

from policies.state.snapshot import Snapshot
from webhook.admission import handlers, unread_reviews
from webhook.admission.awaited_claims import AwaitedClaims
from webhook.admission.decision_cache import Decisions, none_decided
from webhook.admission.namespace_shares import DEAR, NamespaceShares
from webhook.admission.review import ReviewError
from webhook.server.http import JSON, Answer, Call, Refusal, come_back, start, text_answer
from webhook.server.limits import UID_BYTES, Limits
from webhook.server.load_shedding import LoadShedding
from webhook.server.routes import CallRoute, starlette
from webhook.telemetry import log
from webhook.telemetry.metrics import Metrics

LARGEST_REVIEW = 40 * 2**20
"""The most bytes of a review. A client may send the API server 3 MiB; an update's review contains the pod
twice, and Go writes ``<`` in six bytes."""

Judge = Callable[[bytes, Snapshot, Metrics, AwaitedClaims, Decisions], tuple[str, bytes]]
"""Judges a body: returns the decision in one word, and the AdmissionReview to send, as JSON.

Raises ReviewError and ``handlers.NotYet``.
"""


@dataclass(slots=True, kw_only=True)
class Replica:
    """The state that a call reads besides its body.

    Changed only on the event loop, between calls: no call takes a lock.
    """

    limits: Limits
    metrics: Metrics
    snapshot: Snapshot | None = None
    """None until the first policies are loaded."""
    decisions: Decisions = field(default_factory=none_decided)
    """Decisions made under this snapshot, or under an earlier one if they hold under this one too."""
    awaited: AwaitedClaims = field(default_factory=AwaitedClaims)
    shares: NamespaceShares = field(default_factory=NamespaceShares)
    draining: bool = False
    """True once the server is to stop: every answer then closes its connection, so that the next call goes
    elsewhere."""


class Route(NamedTuple):
    """The phase and the handler of one path."""

    phase: str
    judge: Judge


ROUTES: Mapping[bytes, Route] = {
    b"/mutate": Route("mutate", functools.partial(handlers.judged, "mutate")),
    b"/validate": Route("validate", functools.partial(handlers.judged, "validate")),
    b"/advise": Route("advise", handlers.workload),
    b"/label": Route("advise", handlers.labelled),
}
OK_JSON = start(200, JSON)
NOT_FOUND = text_answer(404, "nothing is here: the API server posts to /mutate, /validate, /advise and /label")
NOT_ALLOWED = text_answer(405, "send a review by POST", b"allow: POST\r\n")
NOT_JSON = Refusal("rejected", text_answer(415, "send the review as application/json"))
COMPRESSED = Refusal("rejected", text_answer(415, "send the review uncompressed, as the API server does"))
NO_REVIEW = Refusal(
    "rejected", text_answer(413, f"the body is larger than {LARGEST_REVIEW} bytes, which no review of a pod is", close=True)
)
NO_UID = Refusal("rejected", text_answer(413, "the review is larger than the body cap", close=True))
NOT_LOADED = Refusal("unavailable", come_back("the policies are not loaded yet"))
NOT_YET = Refusal("unavailable", come_back("a namespace or a resource claim on which the decision rests is not known yet"))
OVER_SHARE = Refusal("shed", come_back("the reviews of this namespace take more than its share of this replica's time"))
BEHIND = Refusal("shed", come_back("this replica is behind"))
FAILED = Refusal("failed", text_answer(500, "Berth failed to judge this review; its log says why (event=failed)"))


class App:
    """The application that answers the calls to each of ``routes``. See ``http.Application``."""

    most = LARGEST_REVIEW

    def __init__(self, replica: Replica, routes: Mapping[bytes, Route] = ROUTES) -> None:
        self.room = replica.limits.body
        self.overload = LoadShedding(replica.limits.shed_after / 1000)
        self._replica = replica
        self.routes = routes

    def begin(self, call: Call) -> Refusal | None:
        """See ``http.Application``."""
        self._replica.metrics.in_flight.inc()
        return self._refusal(call)

    def lost(self, call: Call) -> None:
        """Count a call whose caller hung up or was cut off."""
        self._replica.metrics.in_flight.dec()
        self._replica.metrics.answered(self.routes[call.path].phase, "rejected", monotonic() - call.arrived)

    def answer(self, call: Call) -> Answer:
        """Answer one call in all cases; the call is counted and timed."""
        route = self.routes[call.path]
        decision, answer = call.refusal or self._refusal(call) or self._judged(route, call)
        self._tell(route.phase, decision, answer, call)
        return answer._replace(close=True) if self._replica.draining else answer

    def _tell(self, phase: str, decision: str, answer: Answer, call: Call) -> None:
        metrics = self._replica.metrics
        if call.waits:
            metrics.in_flight.dec()
        if decision == "rejected":
            log.write("rejected", "warning", phase=phase, status=answer.status, reason=log.cut(answer.body.decode().strip()))
        metrics.answered(phase, decision, monotonic() - call.arrived)

    def _refusal(self, call: Call) -> Refusal | None:
        """Return the refusal that needs no body, or None."""
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
            replica.shares.spent(_namespace(unread_reviews.head_of(call.body[:UID_BYTES])), until - now, until)
        return decided

    def _over_share(self, phase: str, call: Call, snapshot: Snapshot, now: float) -> tuple[str, Answer] | None:
        """Return the answer to a review of a namespace over its share; None if it is to be judged."""
        head, shares = unread_reviews.head_of(call.body[:UID_BYTES]), self._replica.shares
        turn = shares.turn(_namespace(head), head.uid, now) if head is not None else "judge"
        if head is None or turn == "judge":
            return None
        if shares.tells(_namespace(head), now):
            log.write("over_share", "warning", namespace=head.namespace, text="its reviews are dear to judge, and wait for others")
        if turn == "wait" and phase != "advise":
            return OVER_SHARE
        decision, answer = handlers.over_share(phase, head, snapshot)
        return decision, Answer(OK_JSON, answer)

    def _decided(self, route: Route, call: Call, snapshot: Snapshot) -> tuple[str, Answer]:
        replica = self._replica
        try:
            # by the current snapshot: it may have changed while the body arrived
            decision, answer = route.judge(call.body, snapshot, replica.metrics, replica.awaited, replica.decisions)
        except handlers.NotYet:
            return NOT_YET
        except ReviewError as error:
            return "rejected", text_answer(error.status, error.sentence)
        except Exception as error:  # noqa: BLE001 - whatever it was, the caller gets a sentence and the log gets the rest
            log.write("failed", "error", phase=route.phase, error=log.trace(error))
            head = unread_reviews.head_of(call.body[:UID_BYTES])
            return FAILED if head is None else ("failed", Answer(OK_JSON, handlers.failed(route.phase, head, snapshot)))
        return decision, Answer(OK_JSON, answer)

    def _unjudged(self, phase: str, call: Call, snapshot: Snapshot) -> tuple[str, Answer]:
        """Answer a review over the cap, by its head."""
        head = unread_reviews.head_of(call.body[:UID_BYTES])
        if head is None:
            return NO_UID
        decision, answer = handlers.too_large(phase, head, call.size, self.room, snapshot)
        return decision, Answer(OK_JSON, answer)


def starlette_of(app: App) -> Starlette:
    """Return the application of the first port: a route for each path, and a sentence for all others."""
    return starlette([CallRoute(path.decode(), app) for path in app.routes], {404: NOT_FOUND, 405: NOT_ALLOWED})


def _namespace(head: unread_reviews.Head | None) -> str:
    """Return the namespace, "" if unknown: reviews of unknown namespaces share one share."""
    return head.namespace or "" if head is not None else ""


def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"
