"""The composition root of ``berth serve``: ports, certificates, two servers on one event loop, policies;
start and stop.

The order at the start: both ports are bound and the certificate is read, or one line gives the reason why
not; the ports answer (not ready, 503); the policies are read, or every error is listed and the server ends.
From then on policies and certificates are followed.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import uvloop

from certs.authority import CertificateError
from certs.following import FollowedFiles, SelfSigned
from certs.serving import read_callers
from cluster.background import background
from cluster.client.errors import AccessError
from policies.state.snapshot import Snapshot
from server.limits import GOODBYE, HEALTH_CONNECTIONS
from server.listener import StartError, listen, make_room
from server.server import Server
from sources.sources import SourcesError
from telemetry import log
from telemetry.metrics import Metrics
from webhook import health, memory
from webhook.admission.app import AdmissionState, App, starlette_of
from webhook.process import Background, bound, cannot_start, logging, on_signals, yield_often
from webhook.reload.file_watcher import CertificateWatcher, PolicyFileWatcher, every_second
from webhook.reload.reload_results import ReloadResults, collect_file_checks
from webhook.reload.shared_certificate import SharedCertificate, keep_rules
from webhook.settings import ServeSettings, url


def run(settings: ServeSettings) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit code: 0, 2 with one line per reason when it cannot
    start, or 1 where a background task has ended by itself."""
    try:
        process = Process(settings)
    except (StartError, CertificateError) as error:
        return cannot_start(str(error))
    yield_often()
    memory.return_large_blocks()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, logging(runner.get_loop(), process.log_line_dropped):
        return runner.run(process.serve())


class Process:
    """One replica: its ports, its sources and its shutdown.

    Raises StartError and CertificateError before it serves.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self._limits = settings.limits
        make_room(settings.limits.connections)
        self._listener = listen("--listen", settings.host, settings.port)
        self._health_listener = listen("--health", *settings.health)
        self._metrics = Metrics(settings.version)
        self.log_line_dropped = self._metrics.log_line_dropped
        self._admission = AdmissionState(limits=settings.limits, metrics=self._metrics)
        self._results = ReloadResults(admission=self._admission)
        self._metrics.also(partial(collect_file_checks, self._results.files_checked_at))
        source = _certificates(settings)
        self._shared = source if isinstance(source, SharedCertificate) else None
        if self._shared is not None:
            self._results.certificate_waiting = self._shared.waiting
            self._results.verifiers_ahead = self._shared.verifiers_ahead
            self._metrics.also(self._shared.collect_metrics)
        callers = read_callers(settings.client_ca) if settings.client_ca else ""
        self._client_names = frozenset(settings.client_names)
        self._certificate = CertificateWatcher(source, self._results, callers)
        self._cluster = settings.cluster
        self._policies = _policies(settings, self._results)
        self._addresses = {  # taken now: a closed listener has none
            "url": url("https", settings.host, self._listener.getsockname()[1]),
            "health": url("http", settings.health[0], self._health_listener.getsockname()[1]),
            "listen": bound(self._listener),
            "listenHealth": bound(self._health_listener),
            "ca": str(source.ca or ""),
            "callers": "verified" if callers else "anyone",
        }

    async def serve(self) -> int:
        """Answer on both ports until a signal arrives. Return 0, 2 where the first policies cannot be used, or 1 where a
        background task has ended."""
        stop, at_once = asyncio.Event(), asyncio.Event()
        on_signals(stop, at_once)
        tasks = Background(stop)
        calls, pages = await self._answer()
        log.write("listening", **self._addresses)
        first, stopped = asyncio.create_task(self._first_policies()), asyncio.create_task(stop.wait())
        others: list[asyncio.Task[Any]] = [first, stopped, asyncio.create_task(self._follow_certificate())]
        if self._shared is not None and self._cluster is not None:
            others.append(asyncio.create_task(self._shared.run()))
            others.append(asyncio.create_task(background("registration rules")(keep_rules)(self._cluster, self._shared)))
        await asyncio.wait([first, stopped], return_when=asyncio.FIRST_COMPLETED)
        code = first.result() if first.done() else 0
        if not code:
            if first.done():
                others.append(asyncio.create_task(background("policies")(self._policies.follow)()))
            await stopped
            # now and not at the end: a replica that stops writes what was right before the rollout
            others.append(asyncio.create_task(self._policies.stop_writing()))
            await self._be_a_lame_duck(at_once)
            code = tasks.code
        await calls.stop(self._limits.drain)
        await pages.stop(GOODBYE)  # last: a kubelet asks until the end
        for task in others:
            task.cancel()
        await self._policies.close()
        log.write("stopped", "error" if code else "info", code=code)
        return code

    async def _answer(self) -> tuple[Server, Server]:
        """Start answering on both ports."""
        app = App(self._admission)
        app.overload.watch(asyncio.get_running_loop())
        calls = Server(starlette_of(app), self._certificate.live.context, self._limits, self._metrics.cut, names=self._client_names)
        await calls.start(self._listener)
        few = replace(self._limits, connections=HEALTH_CONNECTIONS)
        pages = Server(health.starlette_of(self._results), None, few, self._metrics.cut, always=health.PROBES)
        await pages.start(self._health_listener)
        return calls, pages

    async def _first_policies(self) -> int:
        """Read the policies. Return 2, with one line per reason, where they are wrong."""
        try:
            snapshot = await self._policies.first()
        except (SourcesError, AccessError) as error:
            return cannot_start(str(error))
        except Exception as error:  # noqa: BLE001 - unforeseen: as where a background task ends
            log.write("task_ended", "error", task="policies", error=log.trace(error))
            return 1
        self._tell_ready(snapshot)
        gc.collect()
        memory.trim()
        gc.freeze()  # what is loaded stays: else a full collection pauses every call behind it by tens of milliseconds
        return 0

    @background("certificate")
    async def _follow_certificate(self) -> None:
        await every_second(self._certificate.look)

    async def _be_a_lame_duck(self, at_once: asyncio.Event) -> None:
        """Go on answering, each answer closing its connection, until nobody sends calls here any more."""
        self._admission.draining = True
        log.write("stopping", lameDuckSeconds=0 if at_once.is_set() else self._limits.lame_duck)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.lame_duck):
                await at_once.wait()

    def _tell_ready(self, snapshot: Snapshot) -> None:
        """Log one event; print a line for a person if standard output is a terminal."""
        number = len(snapshot.policies)
        log.write("serving", **self._addresses, policies=number, maxMode=snapshot.max_mode)
        if not snapshot.placed:
            why = "no --platforms is given" if self._cluster is None else "no node or NodePool shows the platform; --platforms can name it"
            log.write("policies_warning", "warning", text=f"{why}: placement is checked for contradictions, but not written")
        if sys.stdout is not None and sys.stdout.isatty():
            at = self._addresses
            print(f"serving {at['url']} (/mutate, /validate, /advise), {number} policies", flush=True)
            print(f"        {at['health']} (/livez, /readyz, /metrics)", flush=True)


class Policies(Protocol):
    """A source of policies: files, or a cluster."""

    async def first(self) -> Snapshot:
        """Activate the first policies. Raises SourcesError and AccessError with all that is wrong."""

    async def follow(self) -> None:
        """Activate every change, for ever."""

    async def stop_writing(self) -> None:
        """Write no status from now on, and let another replica do it at once. Decisions go on."""

    async def close(self) -> None:
        """Release everything."""


def _policies(settings: ServeSettings, results: ReloadResults) -> Policies:
    if settings.cluster is None:
        return PolicyFileWatcher(settings.sources, results)
    from webhook.reload.cluster_watcher import ClusterWatcher  # with aiohttp, which takes 10 MB and a tenth of a second

    return ClusterWatcher(settings.cluster, settings.sources, results)


def _certificates(settings: ServeSettings) -> FollowedFiles | SelfSigned | SharedCertificate:
    if settings.tls_files:
        return FollowedFiles(*settings.tls_files)
    if settings.cert_secret is not None and settings.cluster is not None:
        return SharedCertificate(settings.cluster, settings.cert_secret, settings.names)
    assert settings.self_signed is not None, "Settings has one of the three"
    return SelfSigned(settings.self_signed, settings.names)
