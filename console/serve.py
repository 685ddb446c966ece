"""The composition root of `berth console`: one port, one source, one gate; start and stop."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import uvloop
from starlette.applications import Starlette

from certs.authority import CertificateError
from certs.following import FollowedFiles, SelfSigned
from cluster.background import background
from cluster.client.api_client import Access
from cluster.client.errors import AccessError
from console.access.api_server import ApiServer
from console.access.entrance import Entrance
from console.access.hosts import Hosts
from console.access.one_time import FIELD, OneTimeToken
from console.access.people import People
from console.access.rights import Rights
from console.access.sessions import Sessions
from console.access.sign_in import SignIn
from console.certificate import Certificate
from console.reading import Say, open_source
from console.screens import SCREENS
from console.server.app import WorldSource, application
from console.server.forms import MOST_FORM
from console.server.rendering import environment
from console.settings import ConsoleSettings, settings
from policies.document import InputError
from server.limits import GOODBYE, Limits
from server.listener import StartError, listen, make_room
from server.server import Server
from sources.sources import Sources, SourcesError
from sources.worlds import WorldFollower
from telemetry import log
from webhook import memory
from webhook.process import Background, bound, cannot_start, logging, on_signals, yield_often
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
