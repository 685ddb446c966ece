"""The admission endpoints: a request in, an answer out, without a socket. ``starlette_of`` makes the
application of the first port.

Berth never allows a pod unevaluated because it is not ready: without a snapshot the answer is 503 with
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
from server.http import JSON, Answer, Call, Later, Rejection, come_back, start, text_answer
from server.limits import UID_BYTES, Limits
from server.load_shedding import LoadShedding
from server.routes import CallRoute, starlette
from telemetry import log
from telemetry.metrics import Metrics
from webhook.admission import handlers, unevaluated_reviews
from webhook.admission.decision_cache import Decisions, empty_decisions
from webhook.admission.namespace_shares import DEAR, NamespaceShares
from webhook.admission.parking import NotYet, Parking
from webhook.admission.unevaluated_reviews import UnevaluatedCause, answer_unevaluated

LARGEST_REVIEW = 40 * 2**20
"""The most bytes of a review. A client may send the API server 3 MiB; an update's review contains the pod
twice, and Go writes ``<`` in six bytes."""


class HandleBody(Protocol):
    """Evaluates the review in a body: returns the decision in one word, and the AdmissionReview to send, as JSON.

    Raises ReviewError, and NotYet if it ``waits``.
    """

    def __call__(
        self, body: bytes, snapshot: Snapshot, metrics: Metrics, decisions: Decisions | None = None, *, waits: bool = False
    ) -> tuple[str, bytes]: ...


@dataclass(slots=True, kw_only=True)
class AdmissionState:
    """The state that a call reads besides its body.

    Changed only on the event loop, between calls: no call takes a lock.
    """

    limits: Limits
    metrics: Metrics
    snapshot: Snapshot | None = None
    """None until the first policies are loaded."""
    decisions: Decisions = field(default_factory=empty_decisions)
    """Decisions made under this snapshot, or under an earlier one if they hold under this one too."""
    parking: Parking = field(default_factory=Parking)
    shares: NamespaceShares = field(default_factory=NamespaceShares)
    draining: bool = False
    """True once the server is to stop: every answer then closes its connection, so that the next call goes
    elsewhere."""


class Route(NamedTuple):
    """The phase and the handler of one path."""

    phase: str
    handle: HandleBody
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
NOT_JSON = Rejection("rejected", text_answer(415, "send the review as application/json"))
COMPRESSED = Rejection("rejected", text_answer(415, "send the review uncompressed, as the API server does"))
NO_REVIEW = Rejection(
    "rejected", text_answer(413, f"the body is larger than {LARGEST_REVIEW} bytes; no review of a pod is that large", close=True)
)
NO_UID = Rejection("rejected", text_answer(413, "the review is larger than the body cap", close=True))
NOT_LOADED = Rejection("unavailable", come_back("no policies are loaded yet"))
BEHIND = Rejection("shed", come_back("this replica is behind"))
FAILED = Rejection("failed", text_answer(500, "Berth failed to evaluate this review; its log has the error (event=failed)"))


class App:
    """The application that answers the calls to each of ``routes``. See ``http.Application``."""

    most = LARGEST_REVIEW

    def __init__(self, admission: AdmissionState, routes: Mapping[bytes, Route] = ROUTES) -> None:
        self.room = admission.limits.body
        self.overload = LoadShedding(admission.limits.shed_after / 1000)
        self._admission = admission
        self.routes = routes

    def begin(self, call: Call) -> Rejection | None:
        """See ``http.Application``."""
        self._admission.metrics.in_flight.inc()
        return self._check_headers(call)

    def lost(self, call: Call) -> None:
        """Count a call whose caller hung up or was cut off."""
        self._admission.metrics.in_flight.dec()
        self._admission.metrics.answered(self.routes[call.path].phase, "rejected", monotonic() - call.arrived)

    def answer(self, call: Call, later: Later) -> Answer | None:
        """Answer one call in all cases, at once or later; the call is counted and timed."""
        route = self.routes[call.path]
        rejection = call.rejection or self._check_headers(call)
        if rejection is not None:
            return self._record(route.phase, *self._answer_rejected(route, call, rejection), call)
        try:
            decision, answer = self._evaluate(route, call, waits=True)
        except NotYet as wait:
            if self._admission.parking.park(wait, call.size, lambda: self._resume(route, call, later)):
                self._admission.metrics.in_flight.inc()
                return None
            decision, answer = self._evaluate(route, call)
        return self._record(route.phase, decision, answer, call)

    def turned_away(self, call: Call, answer: Answer) -> Answer:
        """See ``http.Application``."""
        return self._answer_rejected(self.routes[call.path], call, Rejection("shed", answer))[1]

    def _resume(self, route: Route, call: Call, later: Later) -> None:
        """Send the answer to a call that was parked."""
        self._admission.metrics.in_flight.dec()
        later(call, self._record(route.phase, *self._evaluate(route, call), call))

    def _answer_rejected(self, route: Route, call: Call, rejection: Rejection) -> tuple[str, Answer]:
        """Return the decision and the answer to a rejected call. One that is shed is answered by its review's head where the API server
        would store the object without an answer: a tenant can bring that about."""
        snapshot = self._admission.snapshot
        if rejection.decision != "shed" or not route.passes or snapshot is None:
            return rejection
        return _answer_by_head(route.phase, call, snapshot, unevaluated_reviews.BEHIND, rejection)

    def _record(self, phase: str, decision: str, answer: Answer, call: Call) -> Answer:
        """Count and time a call, and return its answer."""
        metrics = self._admission.metrics
        if call.waits:
            metrics.in_flight.dec()
        if decision == "rejected":
            log.write("rejected", "warning", phase=phase, status=answer.status, reason=cut(answer.body.decode().strip()))
        metrics.answered(phase, decision, monotonic() - call.arrived)
        return answer._replace(close=True) if self._admission.draining else answer

    def _check_headers(self, call: Call) -> Rejection | None:
        """Return the rejection of a call by its headers, its size and the state, or None."""
        if self._admission.snapshot is None:
            return NOT_LOADED
        headers = call.headers
        if headers.get(b"content-type") != b"application/json" and not _is_json(headers.get(b"content-type", b"")):
            return NOT_JSON
        if headers.get(b"content-encoding", b"identity") != b"identity":
            return COMPRESSED
        if max(call.size, call.declared) > LARGEST_REVIEW:
            return NO_REVIEW
        return None

    def _evaluate(self, route: Route, call: Call, *, waits: bool = False) -> tuple[str, Answer]:
        """Return the decision and the answer to a call that is not rejected. Raises NotYet if it waits."""
        admission = self._admission
        assert admission.snapshot is not None, "a call without it is rejected; it never goes away again"
        now = monotonic()
        if self.overload.sheds(now):
            return self._answer_rejected(route, call, BEHIND)
        if call.size > self.room:
            return _answer_by_head(route.phase, call, admission.snapshot, unevaluated_reviews.too_large(call.size, self.room), NO_UID)
        if admission.shares.is_tight(now):
            answered = self._answer_over_share(route.phase, call, admission.snapshot, now, waits=waits)
            if answered is not None:
                return answered
        try:
            return self._run_handler(route, call, admission.snapshot, waits=waits)
        finally:
            if (until := monotonic()) - now > DEAR:
                admission.shares.charge(_namespace_of(head_of(call.body[:UID_BYTES])), until - now, until)

    def _answer_over_share(self, phase: str, call: Call, snapshot: Snapshot, now: float, *, waits: bool) -> tuple[str, Answer] | None:
        """Return the answer to a review of a namespace over its share; None if it is to be evaluated. Raises NotYet if it waits."""
        head, shares = head_of(call.body[:UID_BYTES]), self._admission.shares
        if head is None or not shares.is_over(_namespace_of(head), now):
            return None
        if shares.take_log_turn(_namespace_of(head), now):
            log.write(
                "over_share",
                "warning",
                namespace=head.namespace,
                text="the namespace is over its share, so its reviews wait for those of other namespaces",
            )
        if waits and phase != "advise":
            raise NotYet(_namespace_of(head), lambda _: False)
        return _answer_by_head(phase, call, snapshot, unevaluated_reviews.OVER_SHARE, NO_UID)

    def _run_handler(self, route: Route, call: Call, snapshot: Snapshot, *, waits: bool) -> tuple[str, Answer]:
        """Return the decision and the answer of the route\'s handler, or of its error. Raises NotYet if it waits."""
        admission = self._admission
        try:
            # by the current snapshot: it may have changed while the body arrived
            decision, answer = route.handle(call.body, snapshot, admission.metrics, admission.decisions, waits=waits)
        except NotYet:
            raise
        except ReviewError as error:
            return "rejected", text_answer(error.status, error.sentence)
        except Exception as error:  # noqa: BLE001 - whatever it was, the caller gets a sentence and the log gets the rest
            log.write("failed", "error", phase=route.phase, error=log.trace(error))
            return _answer_by_head(route.phase, call, snapshot, unevaluated_reviews.FAILED, FAILED)
        return decision, Answer(OK_JSON, answer)


def starlette_of(app: App) -> Starlette:
    """Return the application of the first port: a route for each path, and a sentence for all others."""
    return starlette([CallRoute(path.decode(), app) for path in app.routes], {404: NOT_FOUND, 405: NOT_ALLOWED})


def _answer_by_head(
    phase: str, call: Call, snapshot: Snapshot, cause: UnevaluatedCause, rejection: tuple[str, Answer]
) -> tuple[str, Answer]:
    """Answer a call whose review is not evaluated, by its head; with the rejection if that can't be read."""
    head = head_of(call.body[:UID_BYTES])
    if head is None:
        return rejection
    decision, answer = answer_unevaluated(phase, head, snapshot, cause)
    return decision, Answer(OK_JSON, answer)


def _namespace_of(head: Head | None) -> str:
    """Return the namespace, "" if unknown: reviews of unknown namespaces share one share."""
    return head.namespace or "" if head is not None else ""


def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"
