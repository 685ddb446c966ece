"""The composition root of ``berth serve``: ports, certificates, two servers on one event loop, policies; start and stop.

In this order: both ports are taken and the certificate is read, or one line says why not; the ports answer (not ready, 503);
the policies are read, or every error is listed and the server ends; from then on policies and certificates are kept up.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

import uvloop

from certs.authority import CertificateError
from certs.following import FollowedFiles, SelfSigned
from cluster.failures import AccessError
from policies.snapshot import Snapshot
from webhook import logs
from webhook.app import App, Replica
from webhook.health import Condition, Health
from webhook.limits import GOODBYE, HEALTH_CONNECTIONS
from webhook.log_stream import LogStream
from webhook.metrics import Metrics
from webhook.servers import Server, StartError, listen, make_room
from webhook.settings import Settings, url
from webhook.sources import SourcesError
from webhook.upkeep import CertificateUpkeep, PolicyUpkeep, every_second

BAD_INPUT = 2
SWITCH = 0.0005
"""Seconds after which a thread that reads policies lets the event loop go on. A call waits for that up to four times; with Python's own
5 ms it took up to 22 ms longer."""


def run(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit code: 0, or 2 with one line per reason when it cannot start."""
    try:
        process = Process(settings)
    except (StartError, CertificateError) as error:
        return _cannot_start(str(error))
    sys.setswitchinterval(SWITCH)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, process.logging(runner.get_loop()):
        return runner.run(process.serve())


def _cannot_start(reasons: str) -> int:
    for line in reasons.splitlines():
        print(line if line.startswith("berth: ") else f"berth: {line}", file=sys.stderr)
    return BAD_INPUT


class Process:
    """One replica: what it serves, from what, and how it ends. Raises StartError and CertificateError before it serves."""

    def __init__(self, settings: Settings) -> None:
        self._limits = settings.limits
        make_room(settings.limits.connections)
        self._listener = listen("--listen", settings.host, settings.port)
        self._health_listener = listen("--health", *settings.health)
        self._metrics = Metrics(settings.version)
        self._replica = Replica(limits=settings.limits, metrics=self._metrics)
        self._condition = Condition(replica=self._replica)
        source = _certificates(settings)
        self._certificate = CertificateUpkeep(source, self._condition)
        self._from_files = settings.cluster is None
        self._policies = _policies(settings, self._condition)
        self._addresses = {  # taken now: a closed listener has none
            "url": url("https", settings.host, self._listener.getsockname()[1]),
            "health": url("http", settings.health[0], self._health_listener.getsockname()[1]),
            "listen": _bound(self._listener),
            "listenHealth": _bound(self._health_listener),
            "ca": str(source.ca or ""),
        }

    async def serve(self) -> int:
        """Answer on both ports until a signal comes. 2 where the first policies can't be used."""
        stop, at_once = asyncio.Event(), asyncio.Event()
        _on_signals(stop, at_once)
        calls, health = await self._answer()
        logs.write("listening", **self._addresses)
        policies = asyncio.create_task(self._follow_policies())
        others: list[asyncio.Task[Any]] = [asyncio.create_task(stop.wait()), asyncio.create_task(every_second(self._certificate.look))]
        await asyncio.wait([policies, *others], return_when=asyncio.FIRST_COMPLETED)
        code = policies.result() if policies.done() else await self._be_a_lame_duck(at_once)
        await calls.stop(self._limits.drain)
        await health.stop(GOODBYE)  # last: a kubelet asks until the end
        for task in (policies, *others):
            task.cancel()
        await self._policies.close()
        logs.write("stopped", "error" if code else "info", code=code)
        return code

    async def _answer(self) -> tuple[Server, Server]:
        """Both ports, from now on."""
        app = App(self._replica)
        app.overload.watch(asyncio.get_running_loop())
        calls = Server(app, self._certificate.live.context, self._limits, self._metrics.cut)
        await calls.start(self._listener)
        health = Server(Health(self._condition), None, replace(self._limits, connections=HEALTH_CONNECTIONS), self._metrics.cut)
        await health.start(self._health_listener)
        return calls, health

    @contextlib.contextmanager
    def logging(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Within it no line of the log holds up a call, wherever standard error leads."""
        logs.take_from_libraries()
        if sys.stderr is None:
            yield
            return
        stream = LogStream(sys.stderr.fileno(), loop, self._metrics.log_line_dropped, _tell_loss)
        logs.to(stream.write)
        try:
            yield
        finally:
            stream.close()

    async def _follow_policies(self) -> int:
        """Read the policies, then follow them. Ends only where the first ones are wrong."""
        try:
            snapshot = await self._policies.first()
        except (SourcesError, AccessError) as error:
            return _cannot_start(str(error))
        self._tell_ready(snapshot)
        gc.collect()
        gc.freeze()  # what is loaded stays: without it a full collection pauses every call behind it by tens of milliseconds
        await self._policies.follow()
        return 0

    async def _be_a_lame_duck(self, at_once: asyncio.Event) -> int:
        """Answer on, each answer closing its connection, until nobody sends calls here any more."""
        self._replica.draining = True
        logs.write("stopping", lameDuckSeconds=0 if at_once.is_set() else self._limits.lame_duck)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(at_once.wait(), self._limits.lame_duck)
        return 0

    def _tell_ready(self, snapshot: Snapshot) -> None:
        """One event; and a line for a person, where one looks."""
        number = len(snapshot.policies)
        logs.write("serving", **self._addresses, policies=number, maxMode=snapshot.max_mode)
        if not snapshot.placed:
            why = "no --platforms" if self._from_files else "no node or NodePool tells who makes GPU nodes here; --platforms can"
            logs.write("policies_warning", "warning", text=f"{why}: placement is judged for contradictions, not written")
        if sys.stdout is not None and sys.stdout.isatty():
            at = self._addresses
            print(f"serving {at['url']} (/mutate, /validate, /advise), {number} policies", flush=True)
            print(f"        {at['health']} (/livez, /readyz, /metrics)", flush=True)


def _tell_loss(lines: int) -> None:
    logs.write("log_dropped", "error", lines=lines)


class Policies(Protocol):
    """Where policies come from: files, or a cluster."""

    async def first(self) -> Snapshot:
        """In force from then on. Raises SourcesError and AccessError with all that is wrong."""

    async def follow(self) -> None:
        """Puts into force what is new, for ever."""

    async def close(self) -> None:
        """Lets go of everything."""


def _policies(settings: Settings, condition: Condition) -> Policies:
    if settings.cluster is None:
        return PolicyUpkeep(settings.sources, condition)
    from webhook.live import ClusterUpkeep  # with the client of Kubernetes, which takes 40 MB and half a second

    return ClusterUpkeep(settings.cluster, settings.sources, condition)


def _certificates(settings: Settings) -> FollowedFiles | SelfSigned:
    if settings.tls_files:
        return FollowedFiles(*settings.tls_files)
    assert settings.self_signed is not None, "Settings has one of the two"
    return SelfSigned(settings.self_signed, settings.names)


def _bound(listener: socket.socket) -> str:
    """``0.0.0.0:8443`` tells what a URL does not: whether others can reach it."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


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
    if sys.stdin is None or not sys.stdin.isatty():  # a terminal that is closed ends what runs in it
        loop.add_signal_handler(signal.SIGHUP, lambda: logs.write("reload", text="nothing to do: policies and certificates are followed"))
