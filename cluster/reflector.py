"""One kind of object as the API server has it: listed, then watched, and listed again after anything odd.

As client-go's reflector does it (k8s.io/client-go/tools/cache/reflector.go), but stricter: a watch goes on from where it was only
when it has ended at its own time. After a broken connection, an error or a word that is not understood the kind is listed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from typing import Any

from cluster.backoff import Backoff, jittered
from cluster.client import Client
from cluster.failures import Failure, Garbled, Refused, Unreachable
from cluster.gate import Gate, unauthorized
from cluster.kinds import Watched
from cluster.lines import Lines
from cluster.listing import Listing
from cluster.reading import Event, event
from cluster.sink import Counts, Sink, Tell

__all__ = ["Reflector", "Sink", "Tell"]
ABSENT = 30.0
"""Seconds before a kind that the server does not have is asked for again"""
LATE = 5.0
"""Seconds that the end of a watch may be late; a quarter of the whole for short ones"""
EARLY = 0.5
"""seconds of difference between the server's clock and ours"""
FORBIDDEN = 3
"""Answers in a row by which a kind that Berth can do without counts as closed to it: an API server that has just started gives the first
ones to everybody, before it knows its roles"""
AT_ONCE = 100
"""events that are passed on in one turn of the event loop: about 2 ms"""


class Held(Failure):
    """The definition of our kind is gone: what disappeared with it is not taken for deleted."""


class Reflector:
    """Follows one kind. ``run`` is a task of its own; everything else can be read at any time."""

    def __init__(self, client: Client, watched: Watched, sink: Sink, gate: Gate, tell: Tell, watch_seconds: float = 60.0) -> None:
        self._client = client
        self._watched = watched
        self._sink = sink
        self._gate = gate
        self._tell = tell
        self._watch_seconds = watch_seconds
        self._listing = Listing(client, watched)
        self._version = 0
        self._backoff = Backoff()
        self._outages = gate.outages
        self._forbidden = 0
        self.kind = watched.kind
        self.counts = Counts()
        self.synced = False
        """whether the sink has what the server had once, or need not have it"""
        self.absent = False
        """whether the server has no such kind"""
        self.healthy = False
        self.error = ""
        """why it is not healthy, in one sentence"""
        self.heard_at = 0.0
        """when the server last said anything of this kind, of ``time.monotonic``"""

    async def run(self) -> None:
        """For ever."""
        while True:
            try:
                await self._pass_gate()
                pause = await self._followed()
            except Exception as error:  # noqa: BLE001 - the sink's, and what nobody foresaw: the kind is listed again
                pause = self._failed(error)
            await asyncio.sleep(pause)

    async def _pass_gate(self) -> None:
        """What failed before an outage is forgotten: the server that is back is asked soon."""
        await self._gate.passing()
        if self._outages != self._gate.outages:
            self._outages, self._backoff = self._gate.outages, Backoff()

    async def _followed(self) -> float:
        """Raises what ends it. Seconds to wait where the server has no such kind."""
        if not await self._list():
            return jittered(ABSENT)
        self._backoff.listed()
        while True:
            await self._watch()
            self._backoff.watched()

    async def _list(self) -> bool:
        """Whether the server has such a kind."""
        try:
            objects, version = await self._listing.all()
        except Refused as error:
            if error.reply.status != 404 or self._watched.required:
                raise
            self._missing()
            return False
        if self.synced and self._watched.ours:
            await self._check_definition()
        self.counts.lists += 1
        self._sink.replace(self.kind, objects)
        if version < self._version:
            self._say("store_went_back", before=str(self._version), now=str(version))
        self._version = version
        self._good(objects=len(objects))
        return True

    async def _watch(self) -> None:
        """Until it ends at its own time. Raises Failure for every other end."""
        asked = max(1, round(self._watch_seconds * random.uniform(0.85, 1.15)))
        late = min(LATE, self._watch_seconds / 4)
        query = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": str(self._version), "timeoutSeconds": str(asked)}
        path, begun = self._watched.path(self._listing.version), time.monotonic()
        async with self._client.stream(path, query, asked + late, self._watched.accept("watch")) as lines:
            self.counts.watches += 1
            await self._follow(lines)
        if (lasted := time.monotonic() - begun) < asked - EARLY:
            raise Garbled(f"the watch ended after {lasted:.1f} s of {asked}")

    async def _follow(self, lines: Lines) -> None:
        while batch := await lines.batch():
            self.heard_at = time.monotonic()
            for first in range(0, len(batch), AT_ONCE):
                await self._take(batch[first : first + AT_ONCE])
                await asyncio.sleep(0)

    async def _take(self, lines: list[bytes]) -> None:
        """What comes before a bad line is still passed on."""
        events, bad = self._read(lines)
        if self._watched.ours and any(one.change == "DELETED" for one in events):
            await self._check_definition()
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

    async def _check_definition(self) -> None:
        """With a CustomResourceDefinition all its objects are deleted. Raises Held while it is on its way out, or gone; where that can't
        be asked, deletions count."""
        path = self._watched.definition
        assert path is not None
        try:
            reply = await self._client.call("GET", path)
        except Unreachable:
            return
        metadata = reply.body.get("metadata") if isinstance(reply.body, dict) else None
        going = reply.ok and isinstance(metadata, dict) and metadata.get("deletionTimestamp") is not None
        if reply.status == 404 or going:
            raise Held(self._gone())

    def _gone(self) -> str:
        return (
            f"the API server no longer has the CustomResourceDefinition {self._watched.resource}: the last good objects stay in force; "
            "type: kubectl apply -f deploy/crds"
        )

    def _good(self, **fields: Any) -> None:
        self._say("kind_listed", **fields)
        if self.error:
            self._say("kind_healed")
        self.synced = self.healthy = True
        self.absent, self.error, self.heard_at = False, "", time.monotonic()

    def _failed(self, error: Exception) -> float:
        """Seconds to wait."""
        reply = error.reply if isinstance(error, Refused) else None
        status = reply.status if reply else 0
        if reply and status == 401:
            error = unauthorized(self._client, reply.message)
        if isinstance(error, Unreachable) and not isinstance(error, Garbled):
            self._gate.doubt()
        self._forbidden = self._forbidden + 1 if status == 403 else 0
        self.synced = self.synced or (self._forbidden >= FORBIDDEN and not self._watched.required)
        self._bad(self._sentence(error, status))
        return self._backoff.pause(reply.retry_after if reply else None)

    def _missing(self) -> None:
        """The server has no such kind, which is as good as none of them."""
        if not self.absent or self.error:
            self._sink.replace(self.kind, [])
            self._good(objects=0, absent=True)
        self.absent, self.heard_at = True, time.monotonic()

    def _bad(self, sentence: str) -> None:
        """Told once for each: it comes again every few seconds."""
        self.counts.errors += 1
        if sentence != self.error:
            self._say("kind_failed", error=sentence, synced=self.synced)
        self.healthy, self.error = False, sentence

    def _say(self, event: str, **fields: Any) -> None:
        with contextlib.suppress(Exception):  # a log that can't be written must not end what it tells of
            self._tell(event, kind=self.kind, **fields)

    def _sentence(self, error: Exception, status: int) -> str:
        if status == 404 and self._watched.ours:
            if self.synced:
                return self._gone()
            return f"the API server has no {self._watched.resource}; type: kubectl apply -f deploy/crds"
        if status == 403:
            return f"Berth may not read {self._watched.resource}: {error}; type: kubectl apply -f deploy/rbac.yaml"
        return str(error) if isinstance(error, Failure) else f"{self.kind} could not be taken in: {type(error).__name__}: {error}"
