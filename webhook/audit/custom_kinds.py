"""The custom workloads of a cluster: which of the catalog's kinds it has is asked in one call for all of them, and each that
it has is followed, in the versions that it serves, until it has it no more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from catalog import Catalog
from cluster.background import background
from cluster.client.api_client import Client
from cluster.client.errors import Garbled, Rejected, Unreachable
from cluster.client.new_errors import NewErrors
from cluster.reports.queues import Bases, WorkloadQueue
from cluster.watch.backoff import Backoff, jittered
from cluster.watch.connectivity import Connectivity
from cluster.watch.discovery import Discovery, Served
from cluster.watch.kinds import Watched
from cluster.watch.reflector import FORBIDDEN, Reflector
from cluster.watch.store import Store, Tell
from cluster.watch.workload_kinds import as_served, base_kinds, custom_workloads, resting
from documents.yaml_reader import one_value
from policies.pods.projection import Reads
from policies.workloads.pods import Around
from webhook.reload.followed_kinds import LOOK as WAITS
from webhook.reload.followed_kinds import ended

LOOK = 30.0
"""Seconds before the server is asked again which kinds it has: as long as an absent kind waits elsewhere
(``cluster.watch.reflector.ABSENT``), in one call of a few bytes instead of one for each kind."""
SETTLES = 1.0
"""Seconds that a change of what others rest on waits for more of them. After that, these are listed again at most once in LOOK
seconds: a team that changes its runtime all the time must not have all TrainJobs read as often."""
LONGER = 5
"""Times the length of other watches: of thirty kinds that are followed, each would renew its own every minute."""
Following = Callable[[Watched, Store], Reflector]


class _FollowedKind(NamedTuple):
    kind: Watched
    store: Store
    reflector: Reflector
    task: asyncio.Task[None]


class CustomKinds:
    """Follows them into one queue. ``run`` is a task of its own; ``asked`` is set once it is known what there is."""

    def __init__(
        self, client: Client, gate: Connectivity, tell: Tell, following: Following, catalog: Catalog, wide: Reads, workloads: WorkloadQueue
    ) -> None:
        self._gate, self._tell, self._following = gate, tell, following
        self._discovery = Discovery(client)
        self._rest, self._listed_at = asyncio.Event(), time.monotonic() - LOOK
        self._bases = Bases(self._rest)
        around = Around(find=self._bases.find, texts=one_value)
        self._kinds: Sequence[tuple[Store, Sequence[Watched]]] = (
            (self._bases, base_kinds(catalog)),
            (workloads, custom_workloads(catalog, wide, around, self._failed)),
        )
        self._resting = resting(catalog)
        self._followed: dict[str, _FollowedKind] = {}
        self._errors, self._backoff, self._rejections = NewErrors(), Backoff(), 0
        self._wrong: dict[str, NewErrors] = {}
        self.asked = asyncio.Event()

    @property
    def reflectors(self) -> list[Reflector]:
        """Those of the kinds that the cluster has."""
        return [one.reflector for one in self._followed.values()]

    async def tried(self) -> None:
        """Wait until each of them is listed, or can't be: a definition whose conversion is broken must not hold up the rest."""
        while not all(one.settled for one in self.reflectors):
            await asyncio.sleep(WAITS)

    @background("custom workloads")
    async def run(self) -> None:
        """Look and follow, forever."""
        try:
            while True:
                await self._gate.passing()
                pause = await self._looked()
                try:
                    async with asyncio.timeout(pause):
                        await self._rest.wait()
                except TimeoutError:
                    continue
                await asyncio.sleep(max(SETTLES, LOOK - (time.monotonic() - self._listed_at)))
                await self._again()
        finally:
            await ended([one.task for one in self._followed.values()])

    async def _looked(self) -> float:
        """Look once; return the seconds until the next look."""
        try:
            await self._take(await self._discovery.served())
        except Exception as error:  # noqa: BLE001 - an unforeseen one counts as a rejection
            reply = error.reply if isinstance(error, Rejected) else None
            if isinstance(error, Unreachable) and not isinstance(error, Garbled):
                self._gate.doubt()
                return self._backoff.pause(None)
            self._rejections += 1
            if self._errors.is_new(str(error)):
                self._tell("discovery_failed", error=f"custom workloads are not audited: {error}")
            if self._rejections < FORBIDDEN:
                return self._backoff.pause(reply.retry_after if reply else None)
            self.asked.set()  # the rest goes on without
            return jittered(LOOK)
        if self._errors.forget():
            self._tell("discovery_healed")
        self._backoff, self._rejections = Backoff(), 0
        self.asked.set()
        return jittered(LOOK)

    async def _take(self, served: Served) -> None:
        """Follow what the server has: first what others rest on, then those."""
        for store, kinds in self._kinds:
            for kind in kinds:
                await self._follow(kind, store, served.get((kind.group, kind.plural), ()))
            if store is self._bases:
                await self.tried()
        if not self.asked.is_set():
            self._rest.clear()

    async def _follow(self, kind: Watched, store: Store, versions: tuple[str, ...]) -> None:
        """Begin, go on or end. A kind that the server has no more is let go once its own list says so too: a server that has
        just started has not heard of all of them."""
        followed, wanted = self._followed.get(kind.title), as_served(kind, versions)
        if versions and (followed is None or followed.kind.versions != wanted.versions):
            await self._end([followed] if followed else [])
            self._start(wanted, store)
        elif followed is not None and not versions and followed.reflector.absent:
            await self._end([followed])
            await store.replace(kind.title, [])

    async def _again(self) -> None:
        """List again what rests on objects that have changed."""
        self._rest.clear()
        self._listed_at = time.monotonic()
        again = [one for one in self._followed.values() if (one.kind.group, one.kind.kind) in self._resting]
        await self._end(again)
        for one in again:
            self._start(one.kind, one.store)

    def _start(self, kind: Watched, store: Store) -> None:
        reflector = self._following(kind, store)
        task = asyncio.create_task(reflector.run(), name=f"watch {reflector.kind}")
        self._followed[kind.title] = _FollowedKind(kind, store, reflector, task)

    async def _end(self, some: Iterable[_FollowedKind]) -> None:
        for one in some:
            del self._followed[one.kind.title]
            await ended([one.task])

    def _failed(self, kind: str, error: Exception) -> None:
        if self._wrong.setdefault(kind, NewErrors()).is_new(type(error).__name__):
            self._tell("template_failed", kind=kind, error=f"{type(error).__name__}: {error}")
