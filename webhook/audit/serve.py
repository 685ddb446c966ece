"""The composition root of `berth audit --serve`: one port, one auditor; start and stop."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import uvloop

from catalog.prices import prices
from cluster.background import background
from cluster.client.api_client import Access, Client
from cluster.client.errors import AccessError
from documents.prices import read_prices
from policies.document import InputError
from server.limits import GOODBYE, HEALTH_CONNECTIONS, Limits
from server.listener import StartError, listen
from server.server import Server
from sources.sources import SourcesError, of_a_cluster, options
from telemetry import log
from webhook import health
from webhook.audit import pages
from webhook.audit.auditor import Auditor
from webhook.audit.settings import AuditSettings
from webhook.process import Background, bound, cannot_start, logging, on_signals


def run(settings: AuditSettings) -> int:
    """Audit until SIGTERM or SIGINT. Returns the exit code: 0, 2 with one line per reason when it cannot start, or 1 where a
    background task has ended by itself."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, logging(runner.get_loop(), _nothing):
        try:
            return runner.run(_serve(settings))
        except (StartError, SourcesError, AccessError, InputError) as error:
            return cannot_start(str(error))


def _nothing(*_: object) -> None:
    """A dropped log line, or a connection that was ended, is not counted here."""


async def _serve(settings: AuditSettings) -> int:
    stop, at_once = asyncio.Event(), asyncio.Event()
    on_signals(stop, at_once)
    background_tasks = Background(stop)
    catalog, chosen = options(of_a_cluster(settings.sources))
    cost = prices(catalog, read_prices(str(settings.prices), catalog) if settings.prices else None)
    listener = listen("--health", *settings.health)
    client = await Client.connect(Access(settings.cluster.kubeconfig, settings.cluster.context))
    auditor = Auditor(catalog, chosen, cost, settings.cluster, client)
    port = Server(pages.starlette_of(auditor), None, replace(Limits(), connections=HEALTH_CONNECTIONS), _nothing, always=health.PROBES)
    await port.start(listener)
    log.write("listening", listenHealth=bound(listener), version=settings.version)
    audit = asyncio.create_task(background("audit")(auditor.run)())
    await stop.wait()
    audit.cancel()
    await asyncio.wait([audit])
    await port.stop(GOODBYE)
    await client.close()
    code = background_tasks.code
    log.write("stopped", "error" if code else "info", code=code)
    return code
