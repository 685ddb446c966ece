"""Worlds: of a cluster that is read again and again, with the rights of whoever runs the console, or of files read once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic

from analysis.audit.stored_report import stored_report
from analysis.why.surroundings import Surroundings
from analysis.world.builder import WorldBuilder
from analysis.world.happenings import newest, read_events
from analysis.world.world import World
from catalog import Catalog
from cluster.client.api_client import Client
from cluster.client.errors import AccessError, Rejected, Unreachable
from cluster.watch.kinds import BERTH_EVENTS, POD_EVENTS, QUEUES, REPORTS, SLICES, key_of, with_offers
from cluster.watch.listing import Survey, survey
from documents.files import read_policies
from documents.printable import cut
from kube.tree import Raw
from policies.objects import definition
from sources.scanned_cluster import cluster_of, of_objects, scan_dump, scanned_kinds
from sources.sources import DEFAULT_POLICIES, SourcesError
from sources.state import FACTS, OURS, is_installed, keyed, of_values, unread, values_of
from sources.surroundings import Kinds, dumped_key, near
from telemetry import log

SHARE = 10
"""A reading that takes a second is begun at most every ten: lists of 10,000 pods are a load on an API server."""


def _report(value: Raw, api_version: str, kind: str) -> Raw:
    return {"metadata": {"name": value["metadata"]["name"]}, "report": stored_report(value)}


_REPORTS = tuple(replace(kind, trim=_report) for kind in REPORTS)


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
        self.client = client
        self._builder = builder
        self._catalog = catalog
        self._every = every
        self._namespace = namespace
        self._policies = policies
        self._kinds = (*OURS, *scanned_kinds(catalog), BERTH_EVENTS, POD_EVENTS, *_REPORTS)
        self._read = asyncio.Event()
        self.world: World | None = None
        self.stale = ""

    async def first(self) -> None:
        """Wait for the first reading, good or not."""
        await self._read.wait()

    async def near(self, namespace: str, type_: str, name: str, kinds: Kinds) -> Surroundings:
        """Read one object afresh with its owners, pods, events and Kueue's Workloads, and no node. ``kinds``: of those that the type may
        mean, the ones that are looked for. Raises InputError and Unreachable."""
        return await near(self.client, namespace, (type_, name), self._catalog, kinds)

    async def run(self) -> None:
        """Read, forever."""
        while True:
            began = monotonic()
            try:
                state = await survey(self.client, self._kinds, self._namespace)
                if "Pod" in state.unread:
                    self._failed(f"{state.unread['Pod']}; use --namespace NS with a namespace that you may read")
                else:
                    self.world = await asyncio.to_thread(self._built, state)
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

    def _built(self, state: Survey) -> World:
        objects = keyed(state, (*FACTS, SLICES, *(OURS if self._policies is None else ())))
        objects |= {key_of(value["kind"], value): value for value in self._policies or ()}
        return self._builder.build(
            objects,
            cluster_of(state, self._namespace),
            datetime.now(UTC),
            installed=self._policies is not None or is_installed(state),
            unread=unread(state),
            happenings=newest(value["event"] for value in state.objects["Event"]),
            reports=[value["report"] for kind in REPORTS for value in state.objects[kind.kind]],
        )


def read_world(builder: WorldBuilder, policies: Sequence[str], facts: Sequence[str], catalog: Catalog) -> World:
    """Read the files. ``facts``: dumps of ``kubectl get -o yaml`` or ``-o json``; none: a cluster without nodes and pods. Their policies
    are in force if ``policies`` names none.

    Raises SourcesError for policies that are wrong, and InputError for dumps that can't be read.
    """
    values = values_of(facts)
    dumped = [] if policies else list(keyed(of_values(values, OURS, None), OURS).values())
    ours = dumped or policies_of(policies or [str(DEFAULT_POLICIES)], catalog)
    return world_of(builder, ours, values, ", ".join(facts), catalog, datetime.now(UTC))


def world_of(builder: WorldBuilder, ours: Sequence[Raw], values: Sequence[Raw], file: str, catalog: Catalog, at: datetime) -> World:
    """Return the world of these policies and of a dump with these objects. Raises InputError where it has no pod and no node."""
    cluster = scan_dump(values, file, None, catalog) if values else of_objects((), None, catalog)
    dumped = {key: value for value in values if (key := dumped_key(value)) is not None}
    facts = tuple(with_offers((*FACTS, SLICES, *QUEUES)))
    objects = keyed(of_values(values, facts, None), facts) | {key_of(value["kind"], value): value for value in ours}
    missing = cluster.unread if values else {"Node": "no cluster data was given: use berth console --from dump.yaml"}
    events, reports = read_events(dumped.values())
    return builder.build(objects, cluster, at, unread=missing, dumped=dumped, happenings=events, reports=reports)


def policies_of(paths: Sequence[str], catalog: Catalog) -> list[Raw]:
    """Return the policies and node templates of files. Raises SourcesError with everything that is wrong."""
    _, errors, _ = read_policies(paths, catalog)
    if errors:
        raise SourcesError(errors)
    return [value for value in values_of(paths) if value.get("kind") in definition.KINDS]
