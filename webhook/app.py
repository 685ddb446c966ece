"""The routes of the calls: bytes off the wire in, an answer out. One handler for pods in both phases, one for workloads.

Berth is never wrong in silence: without a snapshot the answer is 503 with ``Retry-After`` (the API server then tries
again inside its own timeout, on another connection), never "allowed".
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import orjson
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from policies.snapshot import Snapshot
from webhook import judged, logs, review
from webhook.limits import Limits
from webhook.metrics import Metrics
from webhook.review import ReviewError

CLOSE = {"Connection": "close"}
RETRY = {"Retry-After": "1", **CLOSE}
"""The API server tries a 503 again up to 10 times when it is told after how many whole seconds; a closed connection
lets the next try reach another replica."""


LARGEST_REVIEW = 40 * 2**20
"""Bytes. A client may send the API server 3 MiB; an update's review holds the pod twice, and Go writes ``<`` in six bytes."""
HEAD = 4096
"""Bytes of a review that tell its uid: it is the first field of the request, after 90 bytes."""


@dataclass(slots=True, kw_only=True)
class Replica:
    """What a call reads besides its body. Changed only on the event loop, between calls: no call takes a lock."""

    limits: Limits
    metrics: Metrics
    snapshot: Snapshot | None = None
    """None until the first policies are in"""
    draining: bool = False
    """True once the server is to stop: every answer then closes its connection, so that the next call goes elsewhere"""


Judge = Callable[[bytes, Snapshot, Metrics], tuple[str, bytes]]
"""A body judged: the decision in one word, and the AdmissionReview to send, as JSON. Raises ReviewError."""


def make_app(replica: Replica) -> Starlette:
    """The application over ``replica``."""
    judges: dict[str, Judge] = {
        "mutate": functools.partial(judged.pod, "mutate"),
        "validate": functools.partial(judged.pod, "validate"),
        "advise": judged.workload,
    }
    routes = [Route(f"/{phase}", functools.partial(_answered, replica, phase, judge), methods=["POST"]) for phase, judge in judges.items()]
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False  # a 307 would send the body to another path, which the API server follows
    return app


async def _answered(replica: Replica, phase: str, judge: Judge, request: Request) -> Response:
    """An answer to one call, whatever becomes of it; counted and timed."""
    started = perf_counter()
    replica.metrics.in_flight.inc()
    try:
        decision, response = await _response(replica, phase, judge, request)
    finally:
        replica.metrics.in_flight.dec()
    if replica.draining:
        response.headers["connection"] = "close"
    replica.metrics.answered(phase, decision, perf_counter() - started)
    return response


async def _response(replica: Replica, phase: str, judge: Judge, request: Request) -> tuple[str, Response]:
    """How the call ended, in one word, and the answer to it."""
    if replica.snapshot is None:
        return "unavailable", _said(503, "the policies are not loaded yet", RETRY)
    try:
        body = await _body(request, replica.limits.body)
        decision, answer = judge(body, replica.snapshot, replica.metrics)  # the one of now: it may have changed while the body came
    except TooLarge as error:
        return _unjudged(phase, error, replica)
    except ReviewError as error:
        logs.write("rejected", "warning", phase=phase, status=error.status, reason=logs.cut(error.sentence))
        return "rejected", _said(error.status, error.sentence, CLOSE if error.status == 413 else {})
    except ClientDisconnect:
        return "rejected", Response(status_code=400)  # nobody reads it
    except Exception as error:  # noqa: BLE001 - whatever it was, the caller gets a sentence and the log gets the rest
        logs.write("failed", "error", phase=phase, error=logs.trace(error))
        return "failed", _said(500, "Berth failed to judge this review; its log says why (event=failed)")
    return decision, _json(answer)


_OVER_THE_CAP = "the review is larger than the body cap"


class TooLarge(ReviewError):
    """A review over the body cap that was read to its end: nothing of it is known but its uid and its bytes."""

    def __init__(self, uid: str, size: int) -> None:
        super().__init__(413, _OVER_THE_CAP)
        self.uid = uid
        self.size = size


def _unjudged(phase: str, error: TooLarge, replica: Replica) -> tuple[str, Response]:
    """An answer all the same: an error would let a pod pass where the entry's failurePolicy is Ignore, so that whoever makes
    one large enough would escape. Where nothing may refuse (advice, no policy in Enforce), it is allowed."""
    enforced = replica.snapshot is not None and any(compiled.mode == "Enforce" for compiled in replica.snapshot.policies)
    refused = enforced and phase != "advise"
    logs.write("too_large", "warning", phase=phase, uid=logs.cut(error.uid), bytes=error.size, refused=refused)
    answer = orjson.dumps(review.unjudged(error.uid, size=error.size, limit=replica.limits.body, refused=refused))
    return "refused" if refused else "advised" if phase == "advise" else "unmatched", _json(answer)


async def _body(request: Request, limit: int) -> bytes:
    """The whole body. What is compressed or not JSON by its own word is not read; of what is over the cap nothing is held but
    its head, and what is larger than any review is not read on. Raises ReviewError."""
    headers = request.headers
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ReviewError(415, "send the review as application/json")
    if headers.get("content-encoding", "identity") != "identity":
        raise ReviewError(415, "send the review uncompressed, as the API server does")
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > LARGEST_REVIEW:
        raise _no_review()
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > LARGEST_REVIEW:
            raise _no_review()
        chunks.append(chunk)
        if size > limit:
            chunks = [b"".join(chunks)[:HEAD]]
    if size > limit:
        uid = review.uid_at(chunks[0])
        raise ReviewError(413, _OVER_THE_CAP) if uid is None else TooLarge(uid, size)
    return b"".join(chunks)


def _no_review() -> ReviewError:
    return ReviewError(413, f"the body is larger than {LARGEST_REVIEW} bytes, which no review of a pod is")


def _json(answer: bytes) -> Response:
    return Response(answer, media_type="application/json")


def _said(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    return Response(f"{sentence}\n", status_code=status, headers=headers, media_type="text/plain")
