"""The composition root of `berth console`: one port with its certificate, one source of worlds, one gate; start and stop."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import uvloop
from starlette.applications import Starlette

from analysis.world.builder import WorldBuilder
from analysis.world.recorded import Recorded
from analysis.world.world import World
from catalog import Catalog
from catalog.prices import prices
from certs.authority import CertificateError
from certs.following import CertificateSource, FollowedFiles, SelfSigned
from certs.serving import LiveContext
from cluster.background import background
from cluster.client.api_client import Access, Client
from cluster.client.errors import AccessError
from cluster.client.new_errors import NewErrors
from console.access.api_server import ApiServer
from console.access.entrance import Entrance
from console.access.hosts import Hosts
from console.access.one_time import FIELD, OneTimeToken
from console.access.people import People
from console.access.rights import Rights
from console.access.sessions import Sessions
from console.access.sign_in import SignIn
from console.screens import SCREENS
from console.server.app import WorldSource, application
from console.server.query import MOST_FORM
from console.server.rendering import environment
from console.settings import ConsoleSettings, settings
from documents.prices import read_prices
from policies.document import InputError
from server.limits import GOODBYE, Limits
from server.listener import StartError, listen, make_room
from server.server import Server
from sources.sources import Sources, SourcesError, of_a_cluster, options
from sources.state import access_of
from sources.worlds import WorldFollower, policies_of, read_world
from telemetry import log
from webhook import memory
from webhook.process import Background, bound, cannot_start, logging, on_signals, yield_often
from webhook.reload.changed_files import beside
from webhook.reload.file_watcher import every_second
from webhook.settings import SettingsError, url

LIMITS = Limits(connections=256, head=32 * 2**10, body_memory=64 * 2**20, request_deadline=15, unread=30, keep_alive=60)
"""256 connections are twice those of 20 people with six each. A head holds an address of 8 KiB and a bearer token of 16. A phone on a
poor line sends the largest form in ten seconds. Pages ask for news every 15 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What answers on the port, and what tells people how to come in."""

    app: Starlette
    announce: Callable[[], None]


def run(args: argparse.Namespace, sources: Sources, say: Say, access: Access | None = None) -> int:
    """Serve until SIGTERM or SIGINT. ``say``: prints a sentence for whoever started it. ``access``: address and credentials of the cluster,
    where they are not those that the options name.

    Returns the exit code: 0, 2 with one line per reason when it cannot start, or 1 where a background task has ended by itself.
    """
    yield_often()
    memory.return_large_blocks()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, logging(runner.get_loop(), lambda: None):
        try:
            return runner.run(_serve(args, sources, say, access))
        except (AccessError, CertificateError, SourcesError, InputError, SettingsError, StartError, OSError) as error:
            return cannot_start(str(error))


async def _serve(args: argparse.Namespace, sources: Sources, say: Say, access: Access | None) -> int:
    stop, at_once = asyncio.Event(), asyncio.Event()
    on_signals(stop, at_once)
    background_tasks = Background(stop)
    chosen = settings(args)
    with contextlib.suppress(StartError):  # where fewer files may be open, connections wait
        make_room(LIMITS.connections)
    listener = listen("--listen", chosen.host, chosen.port)
    certificate = Certificate(_certificates(chosen)) if chosen.tls else None
    source = await open_source(args, sources, say, access)
    follower = source if isinstance(source, WorldFollower) else None
    door = _with_sessions(chosen, follower, listener) if chosen.signs_in else _of_this_machine(source, listener, chosen, say)
    server = Server(door.app, certificate.context if certificate else None, LIMITS, lambda _: None, form=MOST_FORM)
    await server.start(listener)
    tasks: list[asyncio.Task[Any]] = []
    if follower is not None:
        tasks.append(asyncio.create_task(background("reading")(follower.run)()))
    if certificate is not None:
        tasks.append(asyncio.create_task(background("certificate")(certificate.follow)()))
    door.announce()
    await stop.wait()
    await server.stop(GOODBYE)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    if follower is not None:
        await follower.client.close()
    code = background_tasks.code
    if chosen.signs_in:
        log.write("stopped", "error" if code else "info", code=code)
    return code


def _certificates(chosen: ConsoleSettings) -> FollowedFiles | SelfSigned:
    if chosen.tls_files is not None:
        return FollowedFiles(*chosen.tls_files)
    assert chosen.self_signed is not None, "Settings has one of the two"
    return SelfSigned(chosen.self_signed, chosen.certificate_names)


def _with_sessions(chosen: ConsoleSettings, follower: WorldFollower | None, listener: socket.socket) -> Door:
    """Return the door of a console where people sign in."""
    assert follower is not None, "a cluster is read"
    server = ApiServer(follower.client)
    hosts = Hosts((*chosen.names, listener.getsockname()[0]), chosen.url)
    paths = [screen.path for screen in SCREENS if screen.section]
    gate = SignIn(People(server, chosen.audiences), Rights(server), Sessions(chosen.session), hosts, paths)
    routes = Entrance(gate, environment()).routes()
    scheme, port = "https" if chosen.tls else "http", listener.getsockname()[1]
    address, at = chosen.url or url(scheme, chosen.host, port), bound(listener)

    def announce() -> None:
        log.write("listening", url=address, listen=at, tls=chosen.tls, sessionSeconds=chosen.session)

    return Door(app=application(follower, gate, SCREENS, routes, hosts.origins), announce=announce)


def _of_this_machine(source: WorldSource, listener: socket.socket, chosen: ConsoleSettings, say: Say) -> Door:
    """Return the door of a console whose printed address opens it."""
    port, at = listener.getsockname()[1], bound(listener)
    gate = OneTimeToken(frozenset({at, f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"}))
    scheme = "https" if chosen.tls else "http"

    def tell() -> None:
        say("the console, for this machine only; the address opens once, press Enter for another one:")
        print(f"{scheme}://{at}/?{FIELD}={gate.token()}", flush=True)

    def typed() -> None:
        if os.read(sys.stdin.fileno(), 1024):
            tell()
        else:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())

    def announce() -> None:
        """Print the address with its token, alone on a line of standard output, and another one for each line that somebody types: no
        token is ever logged."""
        tell()
        if sys.stdin is not None and sys.stdin.isatty():
            asyncio.get_running_loop().add_reader(sys.stdin.fileno(), typed)

    return Door(app=application(source, gate, SCREENS), announce=announce)


class Certificate:
    """Serves what the source has. Raises CertificateError where it has none at the start."""

    def __init__(self, source: CertificateSource) -> None:
        self._source = source
        self._errors = NewErrors()
        first = source.refresh(datetime.now(UTC))
        assert first is not None, "the first look finds something new, or raises"
        self._live = LiveContext(first)
        self.context = self._live.context
        self._tell()

    async def follow(self) -> None:
        """Look once a second, for ever. What is wrong is logged once, and the last good pair served on."""
        await every_second(self.look)

    async def look(self) -> None:
        """Look once."""
        try:
            found = await beside(lambda: self._source.refresh(datetime.now(UTC)))
        except CertificateError as error:
            if self._errors.is_new(str(error)):
                log.write("certificate_rejected", "error", error=str(error), inForce="the last good certificate")
            return
        if found is not None:
            self._live.replace(found)
            self._errors.forget()
            self._tell()

    def _tell(self) -> None:
        for note in self._source.notes:
            log.write("certificate", note=note)


Say = Callable[[str], None]


class Fixed:
    """The source of one world."""

    stale = ""
    near = None

    def __init__(self, world: World) -> None:
        self.world = world

    async def first(self) -> None:
        """Return at once."""


async def open_source(args: argparse.Namespace, sources: Sources, say: Say, access: Access | None = None) -> WorldFollower | Fixed:
    """Return the source that the options name. A follower is to be run, and its client closed.

    ``say``: prints a sentence. ``access``: address and credentials of the cluster, where the options do not name them.
    Raises AccessError, InputError and SourcesError.
    """
    reads_files = bool(args.files or args.dumps)
    catalog, chosen = options(sources if reads_files and not sources.facts else of_a_cluster(sources))
    cost = prices(catalog, read_prices(args.prices, catalog) if args.prices else None)
    client = None if reads_files else await Client.connect(access or _access(args))
    policies = policies_of(sources.policies, catalog) if sources.policies and client else None
    builder = WorldBuilder(catalog, chosen, cost, _recorded(args, catalog, say), _pause)
    if client is None:
        return Fixed(await asyncio.to_thread(read_world, builder, sources.policies, sources.facts, catalog))
    return WorldFollower(client, builder, catalog, args.every, args.namespace or "", policies)


def _access(args: argparse.Namespace) -> Access:
    return Access(None) if args.in_cluster else access_of(args.kubeconfig, args.context)


def _pause() -> None:
    """Leave the interpreter to pages for a moment: Python hands it over every 5 ms at best."""
    time.sleep(0.002)


def _recorded(args: argparse.Namespace, catalog: Catalog, say: Say) -> Recorded | None:
    if not args.recordings:
        return None
    found = Recorded(args.recordings, catalog)
    if found.unread or found.left_out:
        say(f"recordings: {found.unread} entries cannot be read; {found.left_out} creations are left out (too many or too large)")
    return found
