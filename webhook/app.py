"""The routes, and one handler for both phases: bytes off the wire in, an answer out.

Berth is never wrong in silence: without a snapshot the answer is 503 with ``Retry-After`` (the API server then tries
again inside its own timeout, on another connection), never "allowed".
"""

from __future__ import annotations

import functools
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from policies.engine import evaluate
from policies.pod import PodError
from policies.snapshot import Snapshot
from webhook import logs, review
from webhook.review import Phase, ReviewError

RETRY = {"Retry-After": "1", "Connection": "close"}
"""The API server tries a 503 again up to 10 times when it is told after how many whole seconds; a closed connection
lets the next try reach another replica."""


def make_app(snapshot: Snapshot | None, *, body_limit: int) -> Starlette:
    """The application. ``body_limit`` in bytes."""
    routes = [
        Route("/mutate", functools.partial(_handle, phase="mutate"), methods=["POST"]),
        Route("/validate", functools.partial(_handle, phase="validate"), methods=["POST"]),
    ]
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False  # a 307 would send the body to another path, which the API server follows
    app.state.body_limit = body_limit
    swap(app, snapshot)
    return app


def swap(app: Starlette, snapshot: Snapshot | None) -> None:
    """From the next review on, this snapshot decides. A review reads the reference once and takes no lock."""
    app.state.snapshot = snapshot


def decide(body: bytes, phase: Phase, snapshot: Snapshot) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer to a review's bytes, and the fields to log. Raises ReviewError."""
    asked = review.parse(body)
    try:
        verdict = evaluate(asked.request(phase), snapshot.facts_for(asked.namespace))
    except PodError as error:
        raise ReviewError(400, f"request.object is not shaped like a pod: {error}") from None
    return review.answer(asked, verdict, phase=phase), logs.decision(asked, verdict, phase)


async def _handle(request: Request, *, phase: Phase) -> Response:
    snapshot: Snapshot | None = request.app.state.snapshot
    if snapshot is None:
        return _said(503, "the policies are not loaded yet", RETRY)
    try:
        body = await _body(request, request.app.state.body_limit)
        answer, fields = decide(body, phase, snapshot)
    except ReviewError as error:
        logs.write("rejected", phase=phase, status=error.status, reason=logs.cut(error.sentence))
        return _said(error.status, error.sentence, {"Connection": "close"} if error.status == 413 else {})
    except ClientDisconnect:
        return Response(status_code=400)  # nobody reads it
    except Exception as error:  # noqa: BLE001 - whatever it was, the caller gets a sentence and the log gets the rest
        logs.write("failed", phase=phase, error=_trace(error))
        return _said(500, "Berth failed to judge this review; its log says why (event=failed)")
    logs.write("decision", **fields)
    return Response(orjson.dumps(answer), media_type="application/json")


async def _body(request: Request, limit: int) -> bytes:
    """The whole body, refused before it is held when it is too large, compressed or not JSON by its own word."""
    headers = request.headers
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ReviewError(415, "send the review as application/json")
    if headers.get("content-encoding", "identity") != "identity":
        raise ReviewError(415, "send the review uncompressed, as the API server does")
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
    return b"".join(chunks)


def _too_large(limit: int) -> ReviewError:
    return ReviewError(413, f"the body is larger than {limit} bytes, which no review of a pod is")


def _said(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    return Response(f"{sentence}\n", status_code=status, headers=headers, media_type="text/plain")


def _trace(error: Exception) -> str:
    """Type, sentence and where it was raised, in one line."""
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    at = f" at {where.tb_frame.f_code.co_filename}:{where.tb_lineno}" if where else ""
    return logs.cut(f"{type(error).__name__}: {error}{at}")
