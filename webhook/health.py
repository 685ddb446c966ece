"""The second port, without TLS: ``/livez``, ``/readyz`` and ``/metrics``, for a kubelet and Prometheus.

Alive means that the event loop turns: nothing outside, no API server and no disk, can make a live process be restarted. Ready
means that a call would be judged: the first policies are in, the certificate has not expired, the server is not about to stop.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webhook.app import Replica


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


def make_health(condition: Condition) -> Starlette:
    """The application of the second port."""
    app = Starlette(
        routes=[
            Route("/livez", _alive, methods=["GET"]),
            Route("/readyz", functools.partial(_ready, condition), methods=["GET"]),
            Route("/metrics", functools.partial(_metrics, condition), methods=["GET"]),
        ]
    )
    app.router.redirect_slashes = False
    return app


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


async def _alive(request: Request) -> Response:
    return Response("alive\n", media_type="text/plain")


async def _ready(condition: Condition, request: Request) -> Response:
    found = list(checks(condition, time.time()))
    ready = all(check.ready for check in found)
    lines = [*map(str, found), "ready" if ready else "not ready"]
    return Response("\n".join(lines) + "\n", status_code=200 if ready else 503, media_type="text/plain")


async def _metrics(condition: Condition, request: Request) -> Response:
    body, content_type = condition.replica.metrics.exposition(request.headers.get("accept", ""))
    return Response(body, headers={"Content-Type": content_type})
