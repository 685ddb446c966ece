"""The status of our objects, written by one replica: what ``policies.findings`` says of them, where it is not there yet.

Every write is a merge patch with the resourceVersion that was read: whoever was faster wins, and the object comes back by the watch.
Nothing is written twice in vain: an object is looked at again when it, or what is found of it, has changed; what the API server makes
something else of is left; and what another writer puts back is put right once a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from cluster.client import Client
from cluster.events import Events, Subject
from cluster.failures import Failure, Reply
from cluster.kinds import KINDS, Raw
from cluster.lease import Lease
from cluster.searching import Known, Search, Turn
from cluster.sink import Tell
from cluster.status import differs, patch, written
from policies.findings import Finding
from policies.snapshot import Snapshot
from policies.stored import Entry, Key, id_of

RATE = 20.0
"""Writes a second at most: ten thousand objects take eight minutes, and the API server does not feel it"""
BATCH = 200
"""Writes after which what is found is looked at anew: ten seconds' worth"""
ANSWER = 5.0
"""Seconds for one write: as many as the Lease is still safe for after it is given up"""
REST = 1.0
"""Seconds between two searches: of a burst of changes most are in the next one"""
FOUGHT = 60.0
"""Seconds before the same is written to the same object again"""
IDLE = 5.0
"""Seconds after which it is looked whether the Lease is held by now, or a write is due"""
LONGEST, MOST_ASKED = 30.0, 60.0
"""Seconds of backing off while the API server fails, at most: of our own, and of its Retry-After"""
TOLD_AGAIN = 600.0
"""Seconds before the same error is told again"""
MOST_TOLD = 256
"""errors that are remembered as told"""
PATCH = "application/merge-patch+json"
_PATHS = {watched.kind: watched for watched in KINDS if watched.ours}


class Held(Protocol):
    """What is asked of a Lease."""

    @property
    def left(self) -> float:
        """Seconds in which to write."""


@dataclass(slots=True)
class _Memory:
    """What was done about one object."""

    uid: str
    looked_at: tuple[str, Finding | None] = ("", None)
    """(resourceVersion, finding) for which nothing is to be done: a write that changes nothing leaves the version as it is"""
    wrote: Finding | None = None
    at: float = 0.0
    """when"""
    since: float = 0.0
    """when it was first seen to differ; 0: it does not"""


@dataclass(slots=True)
class Counts:
    """Since the start."""

    written: int = 0
    lost: int = 0
    """409 and 404: another was faster, or it is gone"""
    failed: int = 0


@dataclass(kw_only=True)
class Statuses:
    """``take`` what is known, ``run`` for ever. On the event loop alone."""

    client: Client
    lease: Held
    tell: Tell
    events: Events | None = None
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    rate: float = RATE
    fought: float = FOUGHT
    rest: float = REST
    reachable: Callable[[], bool] = lambda: True
    """whether the API server can be called, as far as is known"""
    idle: float = IDLE
    counts: Counts = field(default_factory=Counts)
    _known: Known | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _found: dict[Key, Finding] = field(default_factory=dict)
    _memory: dict[Key, _Memory] = field(default_factory=dict)
    _failures: int = 0
    _asked: float = 0.0
    _told: dict[str, float] = field(default_factory=dict)
    """error -> when it was told"""

    def __post_init__(self) -> None:
        self._search = Search(self.client, self._failed, self.clock)

    @property
    def searched(self) -> int:
        """How often findings were worked out."""
        return self._search.done

    def take(self, snapshot: Snapshot, entries: Mapping[Key, Entry]) -> None:
        """What is known by now. ``entries`` is not changed afterwards."""
        self._known = Known(snapshot, entries)
        self._changed.set()

    async def run(self) -> None:
        """Writes while the Lease is held. No answer of the API server ends it."""
        while True:
            due = self.idle
            if self.lease.left <= 0:
                self._forget()
            elif self.reachable() and self._known is not None:
                self._changed.clear()
                due = await self._turn_or_tell()
            await asyncio.sleep(self.rest)
            await self._wait(due - self.rest)

    async def _turn_or_tell(self) -> float:
        try:
            return await self._turn()
        except Exception as error:  # noqa: BLE001 - statuses must not end because of one object
            self.counts.failed += 1
            self._failed(f"{type(error).__name__}: {error}"[:500])
            return self._back_off()

    async def _wait(self, seconds: float) -> None:
        """Until something has changed, at most; while calls fail, until it is time."""
        if seconds <= 0:
            return
        if self._failures:
            await asyncio.sleep(seconds)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    def _forget(self) -> None:
        """Whoever holds next may have written other things since."""
        self._memory.clear()

    async def _turn(self) -> float:
        """Searches if anything has changed, and writes some. Seconds until there is something to do."""
        known = self._known
        assert known is not None
        self._found = await self._search.found(known)
        for key in self._memory.keys() - self._found.keys():
            del self._memory[key]
        due = await self._due(known.entries)
        for key in due[:BATCH]:
            if not await self._write(key):
                return self._back_off()
        self._failures = 0
        return 0.0 if len(due) > BATCH else self.idle

    def _back_off(self) -> float:
        """Seconds, jittered; longer where the API server asks for it."""
        self._failures += 1
        own = min(LONGEST, 0.5 * 2.0 ** min(self._failures, 10)) * (0.75 + 0.5 * self.chance())
        asked, self._asked = self._asked, 0.0
        return max(own, min(asked, MOST_ASKED))

    async def _due(self, entries: Mapping[Key, Entry]) -> list[Key]:
        """Objects that are to be written, those that wait longest first."""
        due: list[tuple[float, Key]] = []
        turn = Turn()
        for key, finding in self._found.items():
            entry = entries.get(key)
            if entry is not None and entry.uid == finding.uid and entry.generation == finding.generation and self._is_due(entry, finding):
                due.append((self._memory[key].since, key))
            await turn.over()
        return [key for _, key in sorted(due)]

    def _is_due(self, entry: Entry, finding: Finding) -> bool:
        memory = self._memory.get(entry.key)
        if memory is None or memory.uid != entry.uid:
            memory = self._memory[entry.key] = _Memory(entry.uid)
        version, looked_at = memory.looked_at
        if version == entry.resource_version and finding == looked_at:
            return False
        if not differs(finding, entry.status):
            memory.looked_at, memory.since = (entry.resource_version, finding), 0.0
            return False
        memory.since = memory.since or self.clock()
        return not (finding == memory.wrote and self.clock() - memory.at < self.fought)

    # --- what is written ---

    async def _write(self, key: Key) -> bool:
        """One status. False: the API server fails, or the Lease is not held: not now."""
        known, finding, memory = self._known, self._found[key], self._memory[key]
        entry = known.entries.get(key) if known is not None else None
        if entry is None or entry.uid != finding.uid or entry.generation != finding.generation or not self._is_due(entry, finding):
            return True
        begun = self.clock()
        change = patch(finding, entry.status, entry.resource_version)
        try:
            left = self.lease.left
            if left <= 0 or not self.reachable():
                return False
            async with asyncio.timeout(min(ANSWER, left)):
                reply = await self.client.call("PATCH", _path(key), body=change, content=PATCH)
        except (Failure, TimeoutError) as error:
            self.counts.failed += 1
            self._failed(str(error) or "the API server does not answer in time")
            return False
        memory.looked_at = entry.resource_version, finding
        going_on = self._answered(entry, finding, memory, reply)
        await asyncio.sleep(max(0.0, begun + 1 / self.rate - self.clock()))
        return going_on

    def _answered(self, entry: Entry, finding: Finding, memory: _Memory, reply: Reply) -> bool:
        if reply.ok and isinstance(reply.body, dict):
            self._done(entry, finding, memory, reply.body)
        elif reply.status in (404, 409):
            self.counts.lost += 1
        elif reply.status == 429 or reply.status >= 500:
            # the same again in a minute: the next turn begins with another, or one object could keep all others from being written
            memory.wrote, memory.at, memory.looked_at = finding, self.clock(), ("", None)
            self.counts.failed += 1
            self._asked = reply.retry_after or 0.0
            self._failed(f"{reply.status} {reply.message}")
            return False
        else:
            self._refused(entry, finding, memory, reply)
        return True

    def _done(self, entry: Entry, finding: Finding, memory: _Memory, body: Raw) -> None:
        self.counts.written += 1
        memory.wrote, memory.at, memory.since = finding, self.clock(), 0.0
        stored = body.get("status")
        if differs(finding, stored if isinstance(stored, dict) else {}):
            self._failed(f"{id_of(entry.key)}: the API server keeps another status than the one that was written")
        if self.events is not None:
            subject = Subject(key=entry.key, uid=entry.uid, resource_version=entry.resource_version)
            before = written(entry.status)
            for condition in finding.conditions:
                self.events.changed(subject, before, condition)

    def _refused(self, entry: Entry, finding: Finding, memory: _Memory, reply: Reply) -> None:
        """By its content, or by RBAC: the same again in a minute."""
        memory.wrote, memory.at, memory.looked_at = finding, self.clock(), ("", None)
        self.counts.failed += 1
        self._failed(f"{id_of(entry.key)}: {reply.status} {reply.message}")

    def _failed(self, error: str) -> None:
        """Told once in ten minutes: what is refused is tried again each minute."""
        now = self.clock()
        if now - self._told.get(error, -TOLD_AGAIN) < TOLD_AGAIN:
            return
        self.tell("status_failed", error=error)
        if len(self._told) >= MOST_TOLD:
            self._told.clear()
        self._told[error] = now


def _path(key: Key) -> str:
    kind, namespace, name = key
    watched = _PATHS[kind]
    return f"{watched.path(watched.versions[0], namespace, name)}/status"


def writer(client: Client, lease: Lease, tell: Tell, reachable: Callable[[], bool] = lambda: True) -> tuple[Statuses, Events]:
    """Both write while the lease is held and the API server can be reached; run both."""
    events = Events(client, instance=lease.holder, held=lambda: lease.held and reachable(), tell=tell)
    return Statuses(client=client, lease=lease, tell=tell, events=events, reachable=reachable), events
