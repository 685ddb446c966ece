"""A world of a cluster that is read again and again, with the rights of whoever runs the console."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic

from analysis.audit.stored_pod import widest
from analysis.audit.stored_report import stored_report
from analysis.why.surroundings import Surroundings
from analysis.world.builder import WorldBuilder
from analysis.world.happenings import NOT_CREATED, happening, newest
from analysis.world.world import World
from catalog import Catalog
from cluster.client.api_client import Client
from cluster.client.errors import AccessError, Rejected, Unreachable
from cluster.reports.stored_reports import FORMS
from cluster.survey.owners import OWNERS
from cluster.survey.scanned import kinds
from cluster.survey.survey import Survey, survey
from cluster.watch.kinds import SLICES, Watched, key_of
from documents.printable import cut
from kube.tree import Raw
from policies.policy import CONTROLLER
from sources.scanned_cluster import cluster_of
from sources.state import FACTS, OURS, keyed, unread
from sources.surroundings import Kinds, near
from telemetry import log

SHARE = 10
"""A reading that takes a second is begun at most every ten: lists of 10,000 pods are a load on an API server."""


def _event(value: Raw, api_version: str, kind: str) -> Raw:
    return {"metadata": {"name": value["metadata"]["name"]}, "event": happening(value)}


def _report(value: Raw, api_version: str, kind: str) -> Raw:
    return {"metadata": {"name": value["metadata"]["name"]}, "report": stored_report(value)}


def _events(selector: str) -> Watched:
    chosen = (("fieldSelector", selector),)
    return Watched(kind="Event", plural="events", group="", versions=("v1",), namespaced=True, selectors=chosen, trim=_event)


OF_BERTH = _events(f"reportingComponent={CONTROLLER}")
OF_PODS = _events(f"reason={NOT_CREATED}")
"""What is read of Events: the API server chooses by these fields, one at a time (pkg/registry/core/event/strategy.go)."""
REPORTS = tuple(replace(form, trim=_report) for form in FORMS)


class WorldFollower:
    """Reads all namespaces, or one, every so many seconds. ``policies``: those of files, in place of the cluster's."""

    def __init__(
        self,
        client: Client,
        builder: WorldBuilder,
        catalog: Catalog,
        every: float,
        namespace: str = "",
        policies: Sequence[Raw] | None = None,
    ) -> None:
        self._client = client
        self._builder = builder
        self._catalog = catalog
        self._every = every
        self._namespace = namespace
        self._policies = policies
        self._kinds = (*OURS, *kinds(catalog, widest(catalog)), *OWNERS, OF_BERTH, *REPORTS)
        self._read = asyncio.Event()
        self.world: World | None = None
        self.stale = ""

    async def first(self) -> None:
        """Wait for the first reading, good or not."""
        await self._read.wait()

    async def near(self, namespace: str, type_: str, name: str, kinds: Kinds) -> Surroundings:
        """Read one object afresh with its owners, pods, events and Kueue's Workloads, and no node. ``kinds``: of those that the type may
        mean, the ones that are looked for. Raises InputError and Unreachable."""
        return await near(self._client, namespace, (type_, name), self._catalog, kinds)

    async def run(self) -> None:
        """Read, forever."""
        while True:
            began = monotonic()
            try:
                found = await survey(self._client, self._kinds, self._namespace)
                denied = await survey(self._client, (OF_PODS,), self._namespace)
                if "Pod" in found.unread:
                    self._failed(f"{found.unread['Pod']}; use --namespace NS with a namespace that you may read")
                else:
                    self.world = await asyncio.to_thread(self._built, found, denied)
                    self.stale = ""
            except (Unreachable, AccessError, Rejected) as error:
                self._failed(str(error))
            except Exception as error:  # noqa: BLE001 - one bad reading must not end the next ones
                log.write("failed", "error", phase="read", error=log.trace(error))
                self.stale = "the data could not be processed; see the console's log"
            self._read.set()
            await asyncio.sleep(max(self._every, SHARE * (monotonic() - began)))

    def _failed(self, reason: str) -> None:
        if reason != self.stale:
            log.write("unread", "warning", reason=cut(reason))
        self.stale = reason

    def _built(self, found: Survey, denied: Survey) -> World:
        objects = keyed(found, (*FACTS, SLICES, *(OURS if self._policies is None else ())))
        objects |= {key_of(one["kind"], one): one for one in self._policies or ()}
        missing = unread(found)
        return self._builder.build(
            objects,
            cluster_of(found.objects, missing, everything=not self._namespace),
            datetime.now(UTC),
            installed=self._policies is not None or not any(kind.kind in found.absent for kind in OURS),
            unread=missing,
            happenings=newest(one["event"] for events in (found, denied) for one in events.objects["Event"]),
            reports=[one["report"] for kind in REPORTS for one in found.objects[kind.kind]],
        )
