"""A reflector for one kind of object: it lists, then watches, and lists again after any irregularity.

It works like client-go's reflector (k8s.io/client-go/tools/cache/reflector.go), but is stricter: a watch is resumed from its
resourceVersion only if it ended at its timeout. After anything else the kind is listed again.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Iterator
from typing import Any

from cluster import full_collections
from cluster.background import background
from cluster.client.api_client import Client
from cluster.client.errors import GIVE_RIGHTS, Failure, Garbled, Rejected, Unreachable
from cluster.client.line_stream import Lines
from cluster.client.new_errors import NewErrors
from cluster.watch.backoff import Backoff, jittered
from cluster.watch.connectivity import Connectivity, unauthorized
from cluster.watch.decoder import Event, event
from cluster.watch.kinds import Watched
from cluster.watch.listing import Listing
from cluster.watch.store import Store, StoreCounts, Tell

ABSENT = 30.0
"""Seconds before a kind that the server does not have is requested again."""
LATE = 5.0
"""Seconds that the end of a watch may be late; for short watches a quarter of their length."""
EARLY = 0.5
"""Seconds that a watch may end early: the difference between the server's clock and ours."""
FORBIDDEN = 3
"""Consecutive 403 answers after which an optional kind counts as forbidden: a starting API server answers 403 to everybody."""
BROKEN, LONG_BROKEN = 2, 4
"""Consecutive failed lists after which an optional kind counts as unknown: one that others define, and any other."""
OVERLOADED = (429, 503, 504)
"""The statuses of an API server that starts or has too much to do: it is waited for."""
PATIENCE, LONG_PATIENCE = 5.0, 120.0
"""Seconds that a first decision waits for the list of an optional kind that others define (a webhook may hang), and of any other."""
FORBIDDEN_AGAIN = 120.0
"""Seconds before a custom workload that may not be read is requested again: an older role may lack dozens of kinds."""
AT_ONCE, AT_ONCE_BYTES = 100, 2**18
"""Events, and bytes of them, that are passed on in one iteration of the event loop: about 2 ms. A single larger one is too."""


def _parts(lines: list[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines, as many at a time as are passed on in one iteration."""
    part, size = list[bytes](), 0
    for line in lines:
        if part and (len(part) == AT_ONCE or size + len(line) > AT_ONCE_BYTES):
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line)
    yield part


class Reflector:
    """The reflector of one kind. ``run`` is a task of its own; the public attributes can be read at any time."""

    def __init__(self, client: Client, watched: Watched, sink: Store, gate: Connectivity, tell: Tell, watch_seconds: float = 60.0) -> None:
        self._client = client
        self._watched = watched
        self._sink = sink
        self._gate = gate
        self._tell = tell
        self._watch_seconds = watch_seconds
        self._listing = Listing(client, watched, streams=True)
        self._version = 0
        self._backoff = Backoff()
        self._outages = gate.outages
        self._forbidden = 0
        self._failures = 0
        self._listing_since = 0.0
        self.kind = watched.title
        self.without = watched.without
        self.counts = StoreCounts()
        self.synced = False
        """True once the store had a full list from the server, or does not need one: see ``settled``."""
        self.absent = False
        """True if the server does not have the kind."""
        self.healthy = False
        self._errors = NewErrors()
        self.error = ""
        """The last failure, in one sentence; "" before the first one, and after a list that worked."""
        self.heard_at = 0.0
        """The ``time.monotonic`` of the server's last answer or event for this kind."""

    @property
    def settled(self) -> bool:
        """True if a first decision need not wait for the kind: it is synced, or only advice rests on it, or its list hangs
        though the server answers."""
        if self.synced or self._watched.required:
            return self.synced
        begun = time.monotonic() - (PATIENCE if self._watched.converted else LONG_PATIENCE)
        return self._watched.need == "advice" or (self._gate.open and 0 < self._listing_since < begun)

    @background("watch")
    async def run(self) -> None:
        """Follow the kind forever."""
        while True:
            try:
                await self._pass_gate()
                self._listing_since = self._listing_since or time.monotonic()
                pause = await self._followed()
            except Exception as error:  # noqa: BLE001 - of the store, or unforeseen: the kind is listed again
                pause = self._failed(error)
            await asyncio.sleep(pause)

    async def _pass_gate(self) -> None:
        """Wait until the server can be reached; after an outage, reset the backoff so that the kind is listed soon."""
        await self._gate.passing()
        if self._outages != self._gate.outages:
            self._outages, self._backoff, self._failures, self._listing_since = self._gate.outages, Backoff(), 0, 0.0

    async def _followed(self) -> float:
        """List, then watch until a failure, which is raised. Return the seconds to wait if the server lacks the kind."""
        with full_collections.postponed():  # a list makes many objects that last
            is_served = await self._list()
        if not is_served:
            return jittered(ABSENT)
        self._backoff.listed()
        while True:
            await self._watch()
            self._backoff.watched()

    async def _list(self) -> bool:
        """List the kind into the store and return True; return False if the server does not have the kind."""
        try:
            objects, version = await self._listing.all()
        except Rejected as error:
            if error.reply.status != 404 or self._watched.required:
                raise
            await self._missing()
            return False
        if self.synced and self._watched.ours:
            await check_definition(self._client, self._watched)
        self.counts.lists += 1
        await self._sink.replace(self.kind, objects)
        if version < self._version:
            self._say("store_went_back", before=str(self._version), now=str(version))
        self._version = version
        self._good(objects=len(objects))
        return True

    async def _watch(self) -> None:
        """Watch until the watch ends at its timeout. Raises Failure for every other end."""
        asked = max(1, round(self._watch_seconds * random.uniform(0.85, 1.15)))
        late = min(LATE, self._watch_seconds / 4)
        query = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": str(self._version), "timeoutSeconds": str(asked)}
        query |= dict(self._watched.selectors)
        path, begun = self._watched.path(self._listing.version), time.monotonic()
        async with self._client.stream(path, query, asked + late, self._watched.accept("watch")) as lines:
            self.counts.watches += 1
            await self._follow(lines)
        if (lasted := time.monotonic() - begun) < asked - EARLY:
            raise Garbled(f"the watch ended after {lasted:.1f} s of {asked}")

    async def _follow(self, lines: Lines) -> None:
        while batch := await lines.batch():
            self.heard_at = time.monotonic()
            for lines_at_once in _parts(batch):
                await self._take(lines_at_once)
                await asyncio.sleep(0)

    async def _take(self, lines: list[bytes]) -> None:
        """Pass events on to the store. Events before a line that can't be parsed are still passed on."""
        events, bad = self._read(lines)
        if self._watched.ours and any(one.change == "DELETED" for one in events):
            await check_definition(self._client, self._watched)
        for one in events:
            self._version = one.version
            if one.value is not None:
                self.counts.events += 1
                (self._sink.remove if one.change == "DELETED" else self._sink.put)(self.kind, one.value)
        if bad is not None:
            raise bad

    def _read(self, lines: list[bytes]) -> tuple[list[Event], Failure | None]:
        events: list[Event] = []
        latest = self._version
        for line in lines:
            if not line.strip():
                continue
            try:
                one = event(line, self._watched, self._listing.version)
            except Failure as error:
                return events, error
            if one.version < latest:
                return events, Garbled(f"the watch went back from resourceVersion {latest} to {one.version}")
            latest = one.version
            events.append(one)
        return events, None

    def _good(self, **fields: Any) -> None:
        self._say("kind_listed", **fields)
        if self.error:
            self._say("kind_healed")
        self._errors.forget()
        self._failures, self.synced, self.healthy = 0, True, True
        self.absent, self.error, self.heard_at = False, "", time.monotonic()

    def _failed(self, error: Exception) -> float:
        """Record a failure and return the seconds to wait."""
        reply = error.reply if isinstance(error, Rejected) else None
        status = reply.status if reply else 0
        if reply and status == 401:
            error = unauthorized(self._client, reply.message)
        if unreachable := isinstance(error, Unreachable) and not isinstance(error, Garbled):
            self._gate.doubt()
        self._forbidden = self._forbidden + 1 if status == 403 else 0
        converted = self._watched.converted
        self._failures += not (unreachable or status in ((403, 429) if converted else (403, *OVERLOADED)))
        given_up = self._forbidden >= FORBIDDEN or self._failures >= (BROKEN if converted else LONG_BROKEN)
        self.synced = self.synced or (given_up and not self._watched.required)
        self._bad(self._sentence(error, status))
        if self._watched.custom and self._forbidden >= FORBIDDEN:
            return jittered(FORBIDDEN_AGAIN)
        return self._backoff.pause(reply.retry_after if reply else None)

    async def _missing(self) -> None:
        """Record that the server does not have the kind, which counts as an empty list."""
        if not self.absent or self.error:
            await self._sink.replace(self.kind, [])
            self._good(objects=0, absent=True)
        self.absent, self.heard_at = True, time.monotonic()

    def _bad(self, sentence: str) -> None:
        """Record an error, and log it only if it is new: it recurs every few seconds."""
        self.counts.errors += 1
        if self._errors.is_new(sentence):
            without = {"without": self._watched.without} if self._watched.without else {}
            self._say("kind_failed", error=sentence, synced=self.synced, **without)
        self.healthy, self.error = False, sentence

    def _say(self, event: str, **fields: Any) -> None:
        with contextlib.suppress(Exception):  # a log that can't be written must not stop the reflector
            self._tell(event, kind=self.kind, **fields)

    def _sentence(self, error: Exception, status: int) -> str:
        if status == 404 and self._watched.ours:
            missing = f"the API server has no {self._watched.resource}; type: berth crds | kubectl apply -f -"
            return gone(self._watched) if self.synced else missing
        if status == 403:
            return f"Berth may not read {self._watched.resource}: {error}; {GIVE_RIGHTS}"
        return str(error) if isinstance(error, Failure) else f"{self.kind} can't be processed: {type(error).__name__}: {error}"


class HeldDeletions(Failure):
    """The CustomResourceDefinition of the kind is gone: objects deleted with it are not removed from the
    store."""


async def check_definition(client: Client, watched: Watched) -> None:
    """Check that the definition of one of Berth's kinds exists.

    Raises HeldDeletions if it is being deleted, or gone. If the server can't be reached, deletions are accepted.
    """
    path = watched.definition
    assert path is not None, "one of Berth's kinds"
    try:
        reply = await client.call("GET", path)
    except Unreachable:
        return
    metadata = reply.body.get("metadata") if isinstance(reply.body, dict) else None
    is_deleted = reply.ok and isinstance(metadata, dict) and metadata.get("deletionTimestamp") is not None
    if reply.status == 404 or is_deleted:
        raise HeldDeletions(gone(watched))


def gone(watched: Watched) -> str:
    """Return the sentence about a definition that was there before."""
    return (
        f"the API server no longer has the CustomResourceDefinition {watched.resource}: the last valid objects stay active; "
        "type: berth crds | kubectl apply -f -"
    )
