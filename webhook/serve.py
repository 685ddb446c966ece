"""The composition root of ``berth serve``: ports, certificates, two servers on one event loop, policies; start and stop.

In this order: both ports are taken and the certificate is read, or one line says why not; the ports answer (not ready, 503);
the policies are read, or every error is listed and the server ends; from then on policies and certificates are followed.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import uvloop

from certs.authority import CertificateError
from certs.following import FollowedFiles, SelfSigned
from certs.serving import LiveContext, Serving
from webhook import logs
from webhook.app import Replica, make_app
from webhook.following import FollowedSources
from webhook.health import Condition, make_health
from webhook.log_stream import LogStream
from webhook.metrics import Metrics
from webhook.servers import Server, StartError, listen, make_room
from webhook.settings import Settings, url
from webhook.sources import Loaded, SourcesError

BAD_INPUT = 2
LOOK = 1.0
"""Seconds between two looks at files: the certificate is read whole in 30 us, a hundred policy files are asked for their stat."""
MOST_TOLD = 100
"""errors of one refused set of policies that are logged"""


def run(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit code: 0, or 2 with one line per reason when it cannot start."""
    try:
        process = Process(settings)
    except (StartError, CertificateError) as error:
        return _cannot_start(str(error))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stream = LogStream(sys.stderr.fileno(), runner.get_loop(), process.told_less)
        logs.to(stream.write)
        try:
            return runner.run(process.serve())
        finally:
            stream.close()


def _cannot_start(reasons: str) -> int:
    for line in reasons.splitlines():
        print(line if line.startswith("berth: ") else f"berth: {line}", file=sys.stderr)
    return BAD_INPUT


class Process:
    """One replica: what it serves, from what, and how it ends. Raises StartError and CertificateError before it serves."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        make_room(settings.limits.connections)
        self._listener = listen("--listen", settings.host, settings.port)
        self._health_listener = listen("--health", *settings.health)
        self._certificates = _certificates(settings)
        self._policies = FollowedSources(settings.sources)
        self._metrics = Metrics(settings.version)
        self._replica = Replica(limits=settings.limits, metrics=self._metrics)
        self._condition = Condition(replica=self._replica)
        first = self._certificates.refresh(datetime.now(UTC))
        assert first is not None, "the first look finds something new, or raises"
        self._live = LiveContext(first)
        self._certificate_fault = ""
        self._certified(first)
        self._addresses = {  # taken now: a closed listener has none
            "url": url("https", settings.host, self._listener.getsockname()[1]),
            "health": url("http", settings.health[0], self._health_listener.getsockname()[1]),
            "ca": str(self._certificates.ca or ""),
        }

    async def serve(self) -> int:
        """Answer on both ports until a signal comes. 2 where the first policies can't be used."""
        stop, at_once = asyncio.Event(), asyncio.Event()
        _on_signals(stop, at_once)
        health = Server(make_health(self._condition), None, self._settings.limits, self._metrics.cut)
        calls = Server(make_app(self._replica), self._live.context, self._settings.limits, self._metrics.cut)
        answering = [
            asyncio.create_task(calls.serve(sockets=[self._listener])),
            asyncio.create_task(health.serve(sockets=[self._health_listener])),
        ]
        logs.write("listening", **self._addresses)
        policies = asyncio.create_task(self._follow_policies())
        others: list[asyncio.Task[Any]] = [asyncio.create_task(stop.wait()), asyncio.create_task(_every_second(self._look_at_certificate))]
        await asyncio.wait([policies, *others, *answering], return_when=asyncio.FIRST_COMPLETED)
        code = policies.result() if policies.done() else await self._be_a_lame_duck(at_once)
        for server, task in zip((calls, health), answering, strict=True):  # health last: a kubelet asks until the end
            server.should_exit = True
            await task
        for task in (policies, *others):
            task.cancel()
        logs.write("stopped", code=code)
        return code

    def told_less(self, lines: int) -> None:
        """Lines of the log were dropped, as nobody took them."""
        self._metrics.log_lines_dropped(lines)
        logs.write("log_dropped", "error", lines=lines)

    async def _be_a_lame_duck(self, at_once: asyncio.Event) -> int:
        """Answer on, each answer closing its connection, until nobody sends calls here any more."""
        self._replica.draining = True
        logs.write("stopping", lameDuckSeconds=0 if at_once.is_set() else self._settings.limits.lame_duck)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(at_once.wait(), self._settings.limits.lame_duck)
        return 0

    async def _follow_policies(self) -> int:
        """Read the policies, then follow them. Ends only where the first ones are wrong."""
        try:
            loaded = await self._policies.first()
        except SourcesError as error:
            return _cannot_start(str(error))
        self._swap(loaded)
        self._tell_ready(loaded)
        gc.collect()
        gc.freeze()  # what is loaded stays: without it a full collection pauses every call behind it by tens of milliseconds
        await _every_second(self._look_at_policies)
        return 0

    def _swap(self, loaded: Loaded) -> None:
        """From the next call on these policies decide. On the event loop, so no call is in the middle of the old ones."""
        old, self._replica.snapshot = self._replica.snapshot, loaded.snapshot
        self._condition.loaded_at, self._condition.refused_at = time.time(), 0
        self._metrics.snapshot_swapped(loaded.snapshot, self._condition.loaded_at)
        for warning in loaded.warnings:
            logs.write("policies_warning", "warning", text=warning)
        if old is not None:
            old.forget()

    async def _look_at_policies(self) -> None:
        try:
            loaded = await self._policies.changed()
        except SourcesError as error:
            self._condition.refused_at = time.time()
            self._metrics.snapshot_refused()
            told = [str(one) for one in error.errors[:MOST_TOLD]]
            logs.write("policies_refused", "error", errors=told, more=len(error.errors) - len(told), acting="the last good set")
            return
        if loaded is not None:
            self._swap(loaded)
            logs.write("policies_loaded", policies=len(loaded.snapshot.policies))

    async def _look_at_certificate(self) -> None:
        try:
            found = self._certificates.refresh(datetime.now(UTC))
        except CertificateError as error:
            self._tell_certificate(str(error))
            return
        self._certificate_fault = ""
        if found is not None:
            self._live.replace(found)
            self._certified(found)

    def _tell_certificate(self, fault: str) -> None:
        """Once for each fault: it is found again every second."""
        if fault != self._certificate_fault:
            self._certificate_fault = fault
            logs.write("certificate_refused", "error", error=fault, acting="the last good certificate")

    def _certified(self, found: Serving) -> None:
        self._condition.certificate_expires = found.expires.timestamp()
        self._metrics.certificate(self._condition.certificate_expires)
        for note in self._certificates.notes:
            logs.write("certificate", note=note)

    def _tell_ready(self, loaded: Loaded) -> None:
        """One event; and a line for a person, where one looks."""
        number = len(loaded.snapshot.policies)
        logs.write("serving", **self._addresses, policies=number, maxMode=loaded.snapshot.max_mode)
        if not loaded.snapshot.placed:
            logs.write("policies_warning", "warning", text="no --platforms: placement is judged for contradictions, not written")
        if sys.stdout.isatty():
            at = self._addresses
            print(f"serving {at['url']} (/mutate, /validate, /advise), {number} policies", flush=True)
            print(f"        {at['health']} (/livez, /readyz, /metrics)", flush=True)


def _certificates(settings: Settings) -> FollowedFiles | SelfSigned:
    if settings.tls_files:
        return FollowedFiles(*settings.tls_files)
    assert settings.self_signed is not None, "Settings has one of the two"
    return SelfSigned(settings.self_signed, settings.names)


def _on_signals(stop: asyncio.Event, at_once: asyncio.Event) -> None:
    """SIGTERM stops after the lame duck, a second one or Ctrl-C at once; calls in flight are answered either way."""

    def terminate() -> None:
        (at_once if stop.is_set() else stop).set()

    def interrupt() -> None:
        at_once.set()
        stop.set()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, terminate)
    loop.add_signal_handler(signal.SIGINT, interrupt)


async def _every_second(look: Callable[[], Awaitable[None]]) -> None:
    """For ever. Policies and certificate have one each: a mount that hangs must not hold up a renewal."""
    while True:
        await asyncio.sleep(LOOK)
        try:
            await look()
        except Exception as error:  # noqa: BLE001 - one bad look must not end the following
            logs.write("failed", "error", phase="following", error=logs.trace(error))
