"""The reconciler: it brings objects in the cluster to their desired state, at a bounded rate, on the replica that may write.

A subclass names what it writes:

- ``collect`` adds the keys to the queue whose desired or stored state may have changed;
- ``correction`` compares both states of one key, and returns the call that brings the stored one to the desired one;
- ``Correction.answered`` is called with the answer, and returns the state that the API server stored;
- ``forget`` drops what the subclass remembers, as another replica may write meanwhile.

All else is the same for statuses, reports and counts, and is here:

- **Leadership**: nothing is written without the Lease, which is checked right before each call. All is forgotten when it is lost.
- **Pace**: at most ``rate`` calls per second, of which ``at_once`` may be under way. States are compared only once a call may be made,
  so that a call is never older than the wait for its turn.
- **Conflicts**: an answer in ``overtaken`` says that another writer was faster. The key comes back with the newer object.
- **Repetition**: the same desired state is written once in ``fought`` seconds, however often another writer reverts it, and never again
  while what is stored is what the API server made of it.
- **Denials**: a key whose write was denied is tried again after ``again`` seconds, doubled each time up to ``fought``.
- **Backoff**: while the API server fails or has too much to do, the turn ends, and all keys wait.
- **Deletion**: a change with the method DELETE removes what is no longer desired. Nothing is remembered of its key.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from cluster.background import background
from cluster.client.api_client import MERGE, Client
from cluster.client.errors import Failure, Reply
from cluster.client.new_errors import NewErrors
from cluster.watch.store import Tell
from kube.tree import Raw

TURN = 10.0
"""Most seconds of writing before changes are collected again."""
ANSWER = 5.0
"""Timeout in seconds of one call: as long as no other replica can hold the Lease after it was given up."""
FOUGHT = 60.0
"""Seconds before the same state is written to the same object again."""
LONGEST, MOST_ASKED = 30.0, 60.0
"""Most seconds of backoff while the API server fails: Berth's own, and of the server's Retry-After."""
REPEAT_AFTER = 600.0
"""Seconds before the same error is logged again."""
MOST_ERRORS = 256
"""Most logged errors that are remembered."""
SLICE, PAUSE = 0.002, 0.006
"""Seconds of work, and of leaving the event loop to reviews: at most a quarter of the time is used."""
Key = TypeVar("Key", bound=Hashable)


class WorkSlice:
    """A slice of work on the event loop."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + SLICE

    async def over(self) -> None:
        """Yield to the event loop if the slice is used up; await this after each piece of work."""
        if time.perf_counter() > self._until:
            await asyncio.sleep(PAUSE)
            self._until = time.perf_counter() + SLICE


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """One call that brings a stored object to its desired state."""

    subject: str
    """The object, as errors name it."""
    desired: object
    """The desired state, or a digest of it; compared with ``==``."""
    stored: object
    """The stored state, in the form that ``answered`` returns; compared with ``==``."""
    answered: Callable[[Reply], object]
    """Is called with the answer, unless the API server has too much to do or another writer was faster. Returns the stored state."""
    path: str
    method: str = "PATCH"
    body: Raw | None = None
    content: str = MERGE
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Attempt:
    """The last write of one object."""

    desired: object
    until: float
    """The time before which the same is not written again."""
    stored: object = field(default_factory=object)
    """The state that the API server stored; equal to no other where it stored none."""
    pause: float = 0.0
    """Seconds between this write and the next one, if it was denied."""


@dataclass(slots=True)
class WriteCounts:
    """Totals since the start."""

    written: int = 0
    deleted: int = 0
    lost: int = 0
    """Writes that came too late: another writer was faster, or the object is gone."""
    failed: int = 0
    """Writes that failed, or that the API server denied."""


@dataclass(kw_only=True)
class Reconciler(ABC, Generic[Key]):
    """The writer of one sort of object: ``run`` runs forever. Used on the event loop only."""

    task: ClassVar[str]
    """The name of the background task."""
    event: ClassVar[str] = "status_failed"
    """The event under which failures are logged."""
    overtaken: ClassVar[tuple[int, ...]] = (404, 409)
    """Statuses of answers which say that the object was changed or deleted meanwhile."""

    client: Client
    left: Callable[[], float]
    """Returns the seconds left for writing; 0 without the Lease, or while the API server can't be reached."""
    tell: Tell
    ready: Callable[[], bool] = lambda: True
    """Returns whether it is known what is desired: nothing is written or deleted before."""
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    rate: float = 20.0
    """Most calls per second."""
    at_once: int = 1
    """Most calls under way."""
    rest: float = 1.0
    """Seconds between two turns: most of a burst of changes is covered by the next one."""
    idle: float = 5.0
    """Seconds between two turns if nothing changes."""
    again: float = FOUGHT
    """Seconds after which a write that was denied is tried again, at first."""
    fought: float = FOUGHT
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a desired or stored state has changed."""
    counts: WriteCounts = field(default_factory=WriteCounts)
    _due: dict[Key, None] = field(default_factory=dict)
    """The keys to be compared, those that wait longest first."""
    _later: dict[Key, float] = field(default_factory=dict)
    """The keys that wait until a time."""
    _attempts: dict[Key, Attempt] = field(default_factory=dict)
    _failures: int = 0
    """Turns in a row that ended by a failure."""
    _asked: float = 0.0
    _slot: float = 0.0
    """The time of the event loop at which the next call may be made."""

    def __post_init__(self) -> None:
        self._errors = NewErrors(MOST_ERRORS, REPEAT_AFTER, self.clock)

    # --- what a subclass says ---

    @abstractmethod
    async def collect(self) -> bool:
        """Add the keys that may have changed. Return False if it is not known yet what is desired."""

    @abstractmethod
    def correction(self, key: Key) -> Correction | None:
        """Return the call that brings the object to its desired state; None if there is nothing to do."""

    def forget(self) -> None:
        """Forget all writes and keys: nothing is written now, and another replica may write."""
        self._due.clear()
        self._later.clear()
        self._attempts.clear()
        self._failures = 0

    # --- the queue ---

    @property
    def due(self) -> int:
        """The number of keys to be compared, now or later."""
        return len(self._due) + len(self._later)

    def add(self, keys: Iterable[Key]) -> None:
        """Add keys to those that are due."""
        self._due.update(dict.fromkeys(keys))

    def postpone(self, key: Key, seconds: float) -> None:
        """Add a key that is due after some seconds."""
        self._later[key] = self.clock() + seconds

    def drop(self, key: Key) -> None:
        """Forget a key: its object is gone."""
        self._due.pop(key, None)
        self._later.pop(key, None)
        self._attempts.pop(key, None)

    # --- the loop ---

    async def run(self) -> None:
        """Write while the Lease is held, forever. No answer of the API server ends it."""
        await background(self.task)(self._run)()

    async def _run(self) -> None:
        while True:
            pause = await self._turn()
            await asyncio.sleep(self.rest)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause - self.rest):
                    await (asyncio.sleep(pause) if self._failures else self.changed.wait())

    async def _turn(self) -> float:
        """Collect changes and write what is due. Return the seconds until the next turn."""
        if self.left() <= 0:
            self.forget()
            return self.idle
        self.changed.clear()
        try:
            if not self.ready() or not await self.collect():
                return self.idle
        except Exception as error:  # noqa: BLE001 - the loop must not end because of one object
            self.fail(_described(error))
            return self._back_off()
        now = self.clock()
        for key in [key for key, at in self._later.items() if at <= now]:
            del self._later[key]
            self._due[key] = None
        if not await self._write_due():
            return self._back_off()
        self._failures = 0
        return 0.0 if self._due else self.idle

    def _back_off(self) -> float:
        """Count a failed turn and return the seconds to wait, jittered; longer if the API server asks for it."""
        self._failures += 1
        asked, self._asked = self._asked, 0.0
        own = min(LONGEST, 0.5 * 2.0 ** min(self._failures, 10)) * (0.75 + 0.5 * self.chance())
        return max(own, min(asked, MOST_ASKED))

    async def _write_due(self) -> bool:
        """Bring the objects that are due to their desired states, several at once. Return False if the API server fails."""
        waiting, work, failed = iter(list(self._due)), WorkSlice(), False
        now = asyncio.get_running_loop().time
        until = now() + TURN

        async def write() -> None:
            nonlocal failed
            for key in waiting:
                await work.over()
                while (pause := self._slot - now()) > 0:
                    await asyncio.sleep(pause)
                if failed or now() > until:
                    return
                self._due.pop(key, None)
                failed = not await self._bring(key) or failed

        async with asyncio.TaskGroup() as group:
            for _ in range(self.at_once):
                group.create_task(write())
        return not failed

    async def _bring(self, key: Key) -> bool:
        """Bring one object to its desired state. Return False if the API server fails, or nothing may be written any more."""
        try:
            correction = self.correction(key)
            if correction is None or self._is_repeated(key, correction):
                return True
            self._slot = asyncio.get_running_loop().time() + 1 / self.rate
            reply = await self._call(correction)
            if reply is None:
                self._due[key] = None
                return False
            return self._take_answer(key, correction, reply)
        except Exception as error:  # noqa: BLE001 - the others must not wait because of one object
            self.fail(_described(error))
            self.postpone(key, self.fought)
            return True

    def _is_repeated(self, key: Key, correction: Correction) -> bool:
        """Return whether the same was written lately, or the API server stores it as it is stored now."""
        attempt = self._attempts.get(key)
        if attempt is None or attempt.desired != correction.desired:
            return False
        if attempt.stored == correction.stored:
            return True
        left = attempt.until - self.clock()
        if left > 0:
            self.postpone(key, left)
        return left > 0

    async def _call(self, correction: Correction) -> Reply | None:
        """Make a call; None if there is no answer, or it may not be made any more."""
        left = self.left()
        if left <= 0:
            return None
        try:
            async with asyncio.timeout(min(ANSWER, left)):
                return await self.client.call(
                    correction.method, correction.path, body=correction.body, content=correction.content, query=correction.query
                )
        except (Failure, TimeoutError) as error:
            self.fail(str(error) or "the API server does not answer in time")
            return None

    def _take_answer(self, key: Key, correction: Correction, reply: Reply) -> bool:
        """Record what became of a write. Return False if the API server fails or has too much to do."""
        if correction.method == "DELETE" and (reply.ok or reply.status == 404):
            self.counts.deleted += reply.ok
            correction.answered(reply)
            self.drop(key)
        elif reply.ok:
            self.counts.written += 1
            self._attempts[key] = Attempt(correction.desired, self.clock() + self.fought, correction.answered(reply))
        elif reply.status in self.overtaken:
            self.counts.lost += 1
        else:
            return self._take_denial(key, correction, reply)
        return True

    def _take_denial(self, key: Key, correction: Correction, reply: Reply) -> bool:
        """Postpone a write that was denied, each time for longer: a right is missing, or a namespace is being deleted.

        The next turn begins with another object: otherwise one object could keep all others from being written.
        """
        before = self._attempts.get(key)
        pause = min(self.fought, 2 * before.pause if before is not None and before.pause else self.again)
        self._attempts[key] = Attempt(correction.desired, self.clock() + pause, pause=pause)
        self.postpone(key, pause)
        if reply.status == 429 or reply.status >= 500:
            self._asked = max(self._asked, reply.retry_after or 0.0)
            self.fail(f"{reply.status} {reply.message}")
            return False
        self.fail(f"{correction.subject}: {reply.status} {reply.message}")
        correction.answered(reply)
        return True

    def fail(self, error: str) -> None:
        """Count and log a failure."""
        self.counts.failed += 1
        self.log_error(error)

    def log_error(self, error: str) -> None:
        """Log an error once in ten minutes, however often it occurs."""
        if self._errors.is_new(error):
            self.tell(self.event, error=error)


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]
