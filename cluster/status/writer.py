"""The writer of statuses: one replica writes the findings of ``analysis.conditions`` wherever a stored status
differs.

Every write is a merge patch with the resourceVersion that was read: if another writer was faster, it fails,
and the new object arrives by the watch. Writes are not repeated in vain: an object is compared again when it
or its finding has changed; a status that the API server stores differently is left alone; and one that
another writer reverts is written again once a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from analysis.conditions import ObjectStatus
from cluster.background import background
from cluster.client.api_client import Client
from cluster.client.errors import Failure, Reply
from cluster.client.new_errors import NewErrors
from cluster.status.computation import QuotaSearch, WriterState
from cluster.status.events import Events, EventSubject
from cluster.status.leader_election import Lease
from cluster.status.patch import differs, patch, stored_conditions
from cluster.status.write_history import History, WriteHistory
from cluster.watch.kinds import status_path
from cluster.watch.store import Tell
from kube.tree import Raw
from policies.state.objects import Key, ObjectEntry, id_of
from policies.state.snapshot import Snapshot

RATE = 20.0
"""Most writes per second: ten thousand objects take eight minutes, at no noticeable load of the API server."""
BATCH = 200
"""Writes after which findings are computed again: ten seconds' worth."""
ANSWER = 5.0
"""Timeout in seconds of one write: as long as no other replica can hold the Lease after it was given up."""
REST = 1.0
"""Seconds between two computations of findings: most of a burst of changes is covered by the next one."""
FOUGHT = 60.0
"""Seconds before the same status is written to the same object again."""
IDLE = 5.0
"""Seconds between two checks whether the Lease is held, or a write is due."""
LONGEST, MOST_ASKED = 30.0, 60.0
"""Most seconds of backoff while the API server fails: Berth's own, and of the server's Retry-After."""
REPEAT_AFTER = 600.0
"""Seconds before the same error is logged again."""
MOST_ERRORS = 256
"""Most logged errors that are remembered."""
PATCH = "application/merge-patch+json"


class HeldLease(Protocol):
    """The part of a Lease that the writer uses."""

    @property
    def left(self) -> float:
        """The seconds left for writing."""


@dataclass(slots=True)
class StatusCounts:
    """Totals since the start."""

    written: int = 0
    lost: int = 0
    """Answers 409 and 404: another writer was faster, or the object is gone."""
    failed: int = 0


@dataclass(kw_only=True)
class StatusWriter:
    """The writer of statuses: ``take`` gives it the current state, ``run`` runs forever. Used on the event
    loop only."""

    client: Client
    lease: HeldLease
    tell: Tell
    events: Events | None = None
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    rate: float = RATE
    fought: float = FOUGHT
    rest: float = REST
    reachable: Callable[[], bool] = lambda: True
    """Returns whether the API server can be called, as far as is known."""
    idle: float = IDLE
    counts: StatusCounts = field(default_factory=StatusCounts)
    _known: WriterState | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _found: dict[Key, ObjectStatus] = field(default_factory=dict)
    _failures: int = 0
    _asked: float = 0.0

    def __post_init__(self) -> None:
        self._search = QuotaSearch(self.client, self._failed, self.clock)
        self._history = WriteHistory(self.clock, self.fought)
        self._errors = NewErrors(MOST_ERRORS, REPEAT_AFTER, self.clock)

    @property
    def searched(self) -> int:
        """The number of times that findings were computed."""
        return self._search.done

    def take(self, snapshot: Snapshot, entries: Mapping[Key, ObjectEntry]) -> None:
        """Set the current state. The caller must not change ``entries`` afterwards."""
        self._known = WriterState(snapshot, entries)
        self._changed.set()

    @background("statuses")
    async def run(self) -> None:
        """Write while the Lease is held, forever. No answer of the API server ends it."""
        while True:
            due = self.idle
            if self.lease.left <= 0:
                self._history.forget()
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
        """Wait for a change, at most so long; while calls fail, wait for the full time."""
        if seconds <= 0:
            return
        if self._failures:
            await asyncio.sleep(seconds)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    async def _turn(self) -> float:
        """Compute findings if anything has changed, and write a batch. Return the seconds until the next
        turn."""
        known = self._known
        assert known is not None
        self._found = await self._search.found(known)
        self._history.keep_only(self._found)
        due = await self._history.due(known.entries, self._found)
        for key in due[:BATCH]:
            if not await self._write(key):
                return self._back_off()
        self._failures = 0
        return 0.0 if len(due) > BATCH else self.idle

    def _back_off(self) -> float:
        """Count a failure and return the seconds to wait, jittered; longer if the API server asks for it."""
        self._failures += 1
        asked, self._asked = self._asked, 0.0
        return pause_after(self._failures, asked, self.chance())

    # --- what is written ---

    async def _write(self, key: Key) -> bool:
        """Write one status. Return False if the API server fails or the Lease is not held, so that the batch
        stops."""
        known, finding, history = self._known, self._found[key], self._history[key]
        entry = known.entries.get(key) if known is not None else None
        if entry is None or not self._history.is_due(entry, finding):
            return True
        begun = self.clock()
        change = patch(finding, entry.status, entry.resource_version)
        try:
            left = self.lease.left
            if left <= 0 or not self.reachable():
                return False
            async with asyncio.timeout(min(ANSWER, left)):
                reply = await self.client.call("PATCH", status_path(key), body=change, content=PATCH)
        except (Failure, TimeoutError) as error:
            self.counts.failed += 1
            self._failed(str(error) or "the API server does not answer in time")
            return False
        history.looked_at = entry.resource_version, finding
        going_on = self._answered(entry, finding, history, reply)
        await asyncio.sleep(max(0.0, begun + 1 / self.rate - self.clock()))
        return going_on

    def _answered(self, entry: ObjectEntry, finding: ObjectStatus, history: History, reply: Reply) -> bool:
        if reply.ok and isinstance(reply.body, dict):
            self._done(entry, finding, history, reply.body)
        elif reply.status in (404, 409):
            self.counts.lost += 1
        elif reply.status == 429 or reply.status >= 500:
            history.try_later(finding, self.clock())
            self.counts.failed += 1
            self._asked = reply.retry_after or 0.0
            self._failed(f"{reply.status} {reply.message}")
            return False
        else:
            self._denied(entry, finding, history, reply)
        return True

    def _done(self, entry: ObjectEntry, finding: ObjectStatus, history: History, body: Raw) -> None:
        self.counts.written += 1
        history.wrote, history.at, history.since = finding, self.clock(), 0.0
        stored = body.get("status")
        if differs(finding, stored if isinstance(stored, dict) else {}):
            self._failed(f"{id_of(entry.key)}: the API server stored another status than the one written")
        if self.events is not None:
            subject = EventSubject(key=entry.key, uid=entry.uid, resource_version=entry.resource_version)
            before = stored_conditions(entry.status)
            for condition in finding.conditions:
                self.events.changed(subject, before, condition)

    def _denied(self, entry: ObjectEntry, finding: ObjectStatus, history: History, reply: Reply) -> None:
        """Record a write that was denied for its content or by RBAC: it is tried again in a minute."""
        history.try_later(finding, self.clock())
        self.counts.failed += 1
        self._failed(f"{id_of(entry.key)}: {reply.status} {reply.message}")

    def _failed(self, error: str) -> None:
        """Log an error. A denied write is tried again each minute, and its error logged once in ten
        minutes."""
        if self._errors.is_new(error):
            self.tell("status_failed", error=error)


def pause_after(failures: int, asked: float, chance: float) -> float:
    """Return the seconds without writes after so many failures in a row. ``asked``: of the API server's Retry-After;
    ``chance``: 0 to 1."""
    own = min(LONGEST, 0.5 * 2.0 ** min(failures, 10)) * (0.75 + 0.5 * chance)
    return max(own, min(asked, MOST_ASKED))


def writer(client: Client, lease: Lease, tell: Tell, reachable: Callable[[], bool] = lambda: True) -> tuple[StatusWriter, Events]:
    """Return the status writer and the events, both to be run; they write while the Lease is held and the API
    server can be reached."""
    events = Events(client, instance=lease.holder, held=lambda: lease.held and reachable(), tell=tell)
    return StatusWriter(client=client, lease=lease, tell=tell, events=events, reachable=reachable), events
