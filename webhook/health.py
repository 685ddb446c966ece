"""The second port, without TLS: ``/livez``, ``/readyz`` and ``/metrics``, for a kubelet and Prometheus;
``/policies`` for a person.

Alive means that the event loop turns: nothing outside, no API server and no disk, can cause a restart of a
live process. Ready means that a call would be judged: the first policies are loaded, the certificate has not
expired, the server is not about to stop.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from catalog.nearest import list_known
from policies.offers.constraints import Compiled
from policies.state.objects import id_of
from server.http import JSON, Answer, start, text_answer
from server.routes import response_of, starlette
from telemetry import device_modes
from telemetry.watch_metrics import Watching
from webhook.reload.reload_results import ReloadResults


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessCheck:
    """One line of ``/readyz``."""

    name: str
    ready: bool
    text: str
    is_well: bool = True
    """False for what a person should look at though the replica is ready."""

    def __str__(self) -> str:
        return f"[{('+' if self.is_well else '!') if self.ready else '-'}] {self.name}: {self.text}"


HANGS = 30.0
"""Seconds without a finished check of files after which a mount probably hangs: a check takes a millisecond, and reading 10,000
policies again some seconds."""
NOT_ALLOWED = text_answer(405, "method not allowed; use GET", b"allow: GET, HEAD\r\n")
MOST_NAMED = 5
"""Objects that a line of ``/readyz`` names."""
ALIVE, READY = "/livez", "/readyz"
PROBES = frozenset({ALIVE.encode(), READY.encode()})
"""A kubelet that gets no answer ends the process, so these are answered however many others call."""


def starlette_of(results: ReloadResults) -> Starlette:
    """Return the application of the second port."""

    async def policies(request: Request) -> Response:
        return response_of(Answer(start(200, JSON), orjson.dumps(known(results), option=orjson.OPT_INDENT_2)))

    return starlette_of_pages(lambda: checks(results, time.time()), results.admission.metrics.exposition, {"/policies": policies})


def starlette_of_pages(
    checks: Callable[[], Iterable[ReadinessCheck]],
    exposition: Callable[[str], tuple[bytes, str]],
    pages: Mapping[str, Callable[[Request], Awaitable[Response]]] = {},
) -> Starlette:
    """Return an application with the pages for a kubelet and Prometheus, and others. ``exposition`` returns body and content type of
    the metrics for an Accept header."""

    async def alive(request: Request) -> Response:
        return response_of(text_answer(200, "alive"))

    async def ready(request: Request) -> Response:
        lines = list(checks())
        good = all(check.ready for check in lines)
        return response_of(text_answer(200 if good else 503, "\n".join([*map(str, lines), "ready" if good else "not ready"])))

    async def metrics(request: Request) -> Response:
        body, content_type = exposition(request.headers.get("accept", ""))
        return response_of(Answer(start(200, b"content-type: %b\r\n" % content_type.encode()), body))

    every = {ALIVE: alive, READY: ready, "/metrics": metrics, **pages}
    *paths, last = every
    not_found = text_answer(404, f"not found; use {', '.join(paths)} or {last}")
    return starlette([Route(path, page) for path, page in every.items()], {404: not_found, 405: NOT_ALLOWED})


def checks(results: ReloadResults, now: float) -> Iterator[ReadinessCheck]:
    """Yield each check, ready or not, with the details that an engineer on call needs."""
    yield _policies(results, now)
    yield from _cluster(results)
    if text := "; ".join(results.registered.sentences()):
        yield ReadinessCheck(name="registration", ready=True, text=text, is_well=results.registered.is_well)
    if results.admission.snapshot is not None and (told := "; ".join(device_modes.sentences(results.admission.snapshot))):
        yield ReadinessCheck(name="nodes", ready=True, text=told)
    if hanging := [name for name, at in results.files_checked_at.items() if now - at > HANGS]:
        text = "; ".join(f"{name} last checked {now - results.files_checked_at[name]:.0f} s ago" for name in hanging)
        yield ReadinessCheck(
            name="files", ready=True, text=f"{text}: a file or mount does not respond, so changes have no effect", is_well=False
        )
    yield _certificate(results, now)
    if results.admission.draining:
        yield ReadinessCheck(name="stopping", ready=False, text="calls are still answered, new ones go to other replicas")


def _certificate(results: ReloadResults, now: float) -> ReadinessCheck:
    expires, rejected_at, ahead = results.certificate_expires, results.certificate_rejected_at, results.verifiers_ahead()
    valid = now + ahead < expires
    text = f"{'valid until' if valid else 'expired on'} {datetime.fromtimestamp(expires, UTC):%Y-%m-%d %H:%M:%S}Z"
    if ahead:
        text += f" by the API server's clock, which is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this node's"
    if rejected_at:
        text += f"; the certificate on disk was rejected {now - rejected_at:.0f} s ago (log: event=certificate_rejected)"
    if waiting := results.certificate_waiting():
        return ReadinessCheck(name="certificate", ready=False, text=waiting)
    return ReadinessCheck(name="certificate", ready=valid, text=text, is_well=not rejected_at)


def _policies(results: ReloadResults, now: float) -> ReadinessCheck:
    snapshot = results.admission.snapshot
    if snapshot is None:
        return ReadinessCheck(name="policies", ready=False, text="not loaded yet; calls are answered with 503, and the API server retries")
    number = len(snapshot.policies)
    text = f"{number} active, max mode {snapshot.max_mode}, loaded {now - results.loaded_at:.0f} s ago"
    if results.rejected_at:
        text += (
            f"; a change was rejected {now - results.rejected_at:.0f} s ago, the last valid set is active (log: event=policies_rejected)"
        )
    return ReadinessCheck(name="policies", ready=True, text=text, is_well=not results.rejected_at)


def _cluster(results: ReloadResults) -> Iterator[ReadinessCheck]:
    """Yield one check; it is ready once every kind has been known: what was learned stays in force, however
    old."""
    watching = list(results.watching())
    if not watching:
        return
    wrong = [one for one in watching if not (one.synced and one.healthy)]
    text = f"{len(watching)} kinds watched"
    if wrong:
        kinds: dict[tuple[str, str], list[Watching]] = {}
        for watched in wrong:
            kinds.setdefault((watched.error or "not listed yet", watched.without), []).append(watched)
        text = "; ".join(_unheard(error, without, same) for (error, without), same in kinds.items())
        if results.admission.snapshot is not None and any(not one.without for one in wrong):
            text += "; the last known objects are used"
    if isolated := [name for one in watching for name in one.isolated]:
        text += f"; objects that can't be applied (log: event=object_isolated): {list_known(isolated, MOST_NAMED)}"
    yield ReadinessCheck(name="cluster", ready=results.admission.snapshot is not None, text=text, is_well=not (wrong or isolated))


def _unheard(error: str, without: str, kinds: Sequence[Watching]) -> str:
    """Describe kinds that have one error and one consequence, of which an outage has many."""
    longest = max((watched.silent for watched in kinds if watched.silent is not None), default=None)
    since = "" if longest is None else f" (last message {longest:.0f} s ago)"
    meanwhile = f"; meanwhile {without}" if without else ""
    return f"{', '.join(watched.kind for watched in kinds)}: {error}{since}{meanwhile}"


def known(results: ReloadResults) -> dict[str, Any]:
    """Return the state that this replica decides by, for ``/policies``: to be compared with the cluster's own
    objects, and between replicas."""
    snapshot = results.admission.snapshot
    return {
        "loadedAt": results.loaded_at or None,
        "writesStatuses": results.leading(),
        "maxMode": snapshot.max_mode if snapshot else None,
        "platforms": list(snapshot.tables) if snapshot and snapshot.placed else [],
        "migStrategy": snapshot.mig_strategy if snapshot else None,
        "policies": {c.id: {"mode": c.mode, **_stored(results, c)} for c in snapshot.policies} if snapshot else {},
        "overlooked": list(results.registered.overlooked),
        "rejected": {id_of(key): list(one.understood.errors) for key, one in results.entries.items() if one.understood.errors},
        "kinds": {one.kind: {"objects": one.objects, "digest": one.digest(), **one.counts} for one in results.watching()},
    }


def _stored(results: ReloadResults, compiled: Compiled) -> dict[str, Any]:
    policy = compiled.policy
    kind = "ClusterGPUPolicy" if policy.namespace is None else "GPUPolicy"
    entry = results.entries.get((kind, policy.namespace or "", policy.name))
    if entry is None:
        return {}
    acting = entry.last_good.get("generation") if entry.last_good else None
    return {"generation": entry.generation, "acting": acting}
