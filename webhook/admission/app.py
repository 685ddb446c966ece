"""The admission endpoints: a request in, an answer out, without a socket. ``starlette_of`` makes the
application of the first port.

Berth never allows a pod unjudged because it is not ready: without a snapshot the answer is 503 with
``Retry-After`` (the API server then tries again within its own timeout, on another connection), never
"allowed".
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple, Protocol

from starlette.applications import Starlette

from analysis.reviews.review import ReviewError
from documents.printable import cut
from kube.review import Head, head_of
from policies.state.snapshot import Snapshot
from server.http import JSON, Answer, Call, Denial, Later, come_back, start, text_answer
from server.limits import UID_BYTES, Limits
from server.load_shedding import LoadShedding
from server.routes import CallRoute, starlette
from telemetry import log
from telemetry.metrics import Metrics
from webhook.admission import handlers, unread_reviews
from webhook.admission.decision_cache import Decisions, none_decided
from webhook.admission.namespace_shares import DEAR, NamespaceShares
from webhook.admission.parking import NotYet, Parking
from webhook.admission.unread_reviews import Unjudged, answer_unjudged

LARGEST_REVIEW = 40 * 2**20
"""The most bytes of a review. A client may send the API server 3 MiB; an update's review contains the pod
twice, and Go writes ``<`` in six bytes."""


class EvaluateBody(Protocol):
    """Judges a body: returns the decision in one word, and the AdmissionReview to send, as JSON. Raises ReviewError, and NotYet if it
    ``waits``."""

    def __call__(
        self, body: bytes, snapshot: Snapshot, metrics: Metrics, decisions: Decisions | None = None, *, waits: bool = False
    ) -> tuple[str, bytes]: ...


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
    parking: Parking = field(default_factory=Parking)
    shares: NamespaceShares = field(default_factory=NamespaceShares)
    draining: bool = False
    """True once the server is to stop: every answer then closes its connection, so that the next call goes
    elsewhere."""


class Route(NamedTuple):
    """The phase and the handler of one path."""

    phase: str
    judge: EvaluateBody
    passes: bool = False
    """True if the API server stores what it has no answer for (failurePolicy Ignore): then what a tenant can bring about is a denial."""


_MUTATE, _VALIDATE = functools.partial(handlers.handle_review, "mutate"), functools.partial(handlers.handle_review, "validate")
ROUTES: Mapping[bytes, Route] = {
    b"/mutate": Route("mutate", _MUTATE),
    b"/validate": Route("validate", _VALIDATE),
    b"/mutate/ignore": Route("mutate", _MUTATE, passes=True),
    b"/validate/ignore": Route("validate", _VALIDATE, passes=True),
    b"/advise": Route("advise", handlers.advise_workload),
    b"/label": Route("advise", handlers.handle_label),
}
OK_JSON = start(200, JSON)
NOT_FOUND = text_answer(404, "not found; the API server posts to /mutate, /validate, /advise and /label")
NOT_ALLOWED = text_answer(405, "send a review by POST", b"allow: POST\r\n")
NOT_JSON = Denial("rejected", text_answer(415, "send the review as application/json"))
COMPRESSED = Denial("rejected", text_answer(415, "send the review uncompressed, as the API server does"))
NO_REVIEW = Denial(
    "rejected", text_answer(413, f"the body is larger than {LARGEST_REVIEW} bytes; no review of a pod is that large", close=True)
)
NO_UID = Denial("rejected", text_answer(413, "the review is larger than the body cap", close=True))
NOT_LOADED = Denial("unavailable", come_back("no policies are loaded yet"))
BEHIND = Denial("shed", come_back("this replica is behind"))
FAILED = Denial("failed", text_answer(500, "Berth failed to evaluate this review; its log has the error (event=failed)"))


class App:
    """The application that answers the calls to each of ``routes``. See ``http.Application``."""

    most = LARGEST_REVIEW

    def __init__(self, replica: Replica, routes: Mapping[bytes, Route] = ROUTES) -> None:
        self.room = replica.limits.body
        self.overload = LoadShedding(replica.limits.shed_after / 1000)
        self._replica = replica
        self.routes = routes

    def begin(self, call: Call) -> Denial | None:
        """See ``http.Application``."""
        self._replica.metrics.in_flight.inc()
        return self._denial(call)

    def lost(self, call: Call) -> None:
        """Count a call whose caller hung up or was cut off."""
        self._replica.metrics.in_flight.dec()
        self._replica.metrics.answered(self.routes[call.path].phase, "rejected", monotonic() - call.arrived)

    def answer(self, call: Call, later: Later) -> Answer | None:
        """Answer one call in all cases, at once or later; the call is counted and timed."""
        route = self.routes[call.path]
        denial = call.denial or self._denial(call)
        try:
            decision, answer = self._judged(route, call, waits=True) if denial is None else self._kept_out(route, call, denial)
        except NotYet as wait:
            if self._replica.parking.takes(wait, call.size, lambda: self._resumed(route, call, later)):
                self._replica.metrics.in_flight.inc()
                return None
            decision, answer = self._judged(route, call)
        return self._told(route.phase, decision, answer, call)

    def turned_away(self, call: Call, answer: Answer) -> Answer:
        """See ``http.Application``."""
        return self._kept_out(self.routes[call.path], call, Denial("shed", answer)).answer

    def _resumed(self, route: Route, call: Call, later: Later) -> None:
        self._replica.metrics.in_flight.dec()
        later(call, self._told(route.phase, *self._judged(route, call), call))

    def _kept_out(self, route: Route, call: Call, denial: Denial) -> Denial:
        """Return the answer to a call that is not judged; a tenant can bring it about that one is shed."""
        snapshot = self._replica.snapshot
        if denial.decision != "shed" or not route.passes or snapshot is None:
            return denial
        answered = _answer_by_head(route.phase, call, snapshot, unread_reviews.not_now("behind"))
        return denial if answered is None else Denial("shed", answered[1])

    def _told(self, phase: str, decision: str, answer: Answer, call: Call) -> Answer:
        """Count and time a call, and return its answer."""
        metrics = self._replica.metrics
        if call.waits:
            metrics.in_flight.dec()
        if decision == "rejected":
            log.write("rejected", "warning", phase=phase, status=answer.status, reason=cut(answer.body.decode().strip()))
        metrics.answered(phase, decision, monotonic() - call.arrived)
        return answer._replace(close=True) if self._replica.draining else answer

    def _denial(self, call: Call) -> Denial | None:
        """Return the denial that needs no body, or None."""
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

    def _judged(self, route: Route, call: Call, *, waits: bool = False) -> tuple[str, Answer]:
        replica = self._replica
        assert replica.snapshot is not None, "a call without it is denied; it never goes away again"
        now = monotonic()
        if self.overload.sheds(now):
            return self._kept_out(route, call, BEHIND)
        if call.size > self.room:
            return self._unjudged(route.phase, call, replica.snapshot)
        if replica.shares.tight(now) and (turned := self._over_share(route.phase, call, replica.snapshot, now, waits=waits)) is not None:
            return turned
        try:
            return self._decided(route, call, replica.snapshot, waits=waits)
        finally:
            if (until := monotonic()) - now > DEAR:
                replica.shares.spent(_namespace(head_of(call.body[:UID_BYTES])), until - now, until)

    def _over_share(self, phase: str, call: Call, snapshot: Snapshot, now: float, *, waits: bool) -> tuple[str, Answer] | None:
        """Return the answer to a review of a namespace over its share; None if it is to be judged. Raises NotYet if it waits."""
        head, shares = head_of(call.body[:UID_BYTES]), self._replica.shares
        if head is None or not shares.over(_namespace(head), now):
            return None
        if shares.tells(_namespace(head), now):
            log.write(
                "over_share",
                "warning",
                namespace=head.namespace,
                text="the namespace is over its share, so its reviews wait for those of other namespaces",
            )
        if waits and phase != "advise":
            raise NotYet(_namespace(head), lambda _: False)
        return _answer_by_head(phase, call, snapshot, unread_reviews.OVER_SHARE)

    def _decided(self, route: Route, call: Call, snapshot: Snapshot, *, waits: bool) -> tuple[str, Answer]:
        replica = self._replica
        try:
            # by the current snapshot: it may have changed while the body arrived
            decision, answer = route.judge(call.body, snapshot, replica.metrics, replica.decisions, waits=waits)
        except NotYet:
            raise
        except ReviewError as error:
            return "rejected", text_answer(error.status, error.sentence)
        except Exception as error:  # noqa: BLE001 - whatever it was, the caller gets a sentence and the log gets the rest
            log.write("failed", "error", phase=route.phase, error=log.trace(error))
            answered = _answer_by_head(route.phase, call, snapshot, unread_reviews.FAILED)
            return FAILED if answered is None else ("failed", answered[1])
        return decision, Answer(OK_JSON, answer)

    def _unjudged(self, phase: str, call: Call, snapshot: Snapshot) -> tuple[str, Answer]:
        """Answer a review over the cap, by its head."""
        head = head_of(call.body[:UID_BYTES])
        if head is None:
            return NO_UID
        decision, answer = handlers.handle_too_large(phase, head, call.size, self.room, snapshot)
        return decision, Answer(OK_JSON, answer)


def starlette_of(app: App) -> Starlette:
    """Return the application of the first port: a route for each path, and a sentence for all others."""
    return starlette([CallRoute(path.decode(), app) for path in app.routes], {404: NOT_FOUND, 405: NOT_ALLOWED})


def _answer_by_head(phase: str, call: Call, snapshot: Snapshot, cause: Unjudged) -> tuple[str, Answer] | None:
    """Answer a call that is not judged; None if the head of its review can't be read."""
    head = head_of(call.body[:UID_BYTES])
    if head is None:
        return None
    decision, answer = answer_unjudged(phase, head, snapshot, cause)
    return decision, Answer(OK_JSON, answer)


def _namespace(head: Head | None) -> str:
    """Return the namespace, "" if unknown: reviews of unknown namespaces share one share."""
    return head.namespace or "" if head is not None else ""


def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"
