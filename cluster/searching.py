"""Findings worked out beside reviews: a little at a time, and not again while nothing has changed that they rest on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

from cluster.client import Client
from cluster.failures import Failure
from cluster.quotas import quotas
from policies.findings import Finding, in_steps
from policies.policy import Policy
from policies.snapshot import Snapshot
from policies.stored import Entry, Key

QUOTAS = 60.0
"""Seconds between two lists of quotas"""
SLICE, PAUSE = 0.002, 0.006
"""Seconds of work, and of leaving the event loop to reviews: a quarter of it at most"""


class Turn:
    """Of work on the event loop."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + SLICE

    async def over(self) -> None:
        """Asked after each piece: others have theirs when it is over."""
        if time.perf_counter() > self._until:
            await asyncio.sleep(PAUSE)
            self._until = time.perf_counter() + SLICE


@dataclass(slots=True)
class Known:
    """What the writer was given last."""

    snapshot: Snapshot
    entries: Mapping[Key, Entry]


@dataclass(slots=True)
class _Basis:
    """All that findings rest on. Most of it is compared by identity: what has not changed is taken over from snapshot to snapshot."""

    policies: object
    templates: object
    tables: list[int]
    placed: bool
    namespaces: object
    quotas: object
    forms: object
    snapshot: Snapshot = field(compare=False)
    """keeps its tables, so that no other has the number of one of them"""

    @classmethod
    def of(cls, known: Known, quotas: object) -> _Basis:
        snapshot = known.snapshot
        return cls(
            policies=snapshot.policies,
            templates=snapshot.templates,
            tables=[id(table) for table in snapshot.tables.values()],
            placed=snapshot.placed,
            namespaces=snapshot.cluster.namespaces,
            quotas=quotas,
            forms={key: (e.uid, e.generation, e.understood, e.acting) for key, e in known.entries.items()},
            snapshot=snapshot,
        )


class Search:
    """``failed`` is told why quotas can't be listed."""

    def __init__(self, client: Client, failed: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._client = client
        self._failed = failed
        self._clock = clock
        self._found: dict[Key, Finding] = {}
        self._basis: _Basis | None = None
        self._quotas: Mapping[str, list[dict[str, str]]] = {}
        self._quotas_at: float | None = None
        self.done = 0
        """how often"""

    async def _list_quotas(self, known: Known) -> None:
        """Only while they matter: a policy gives slices by default."""
        if not any(isinstance(e.acting, Policy) and e.acting.default.mig is not None for e in known.entries.values()):
            self._quotas, self._quotas_at = {}, None
            return
        now = self._clock()
        if self._quotas_at is None or now - self._quotas_at >= QUOTAS:
            self._quotas_at = now
            try:
                found = await quotas(self._client)
            except Failure as error:
                self._failed(str(error))
            else:
                self._quotas = found if found != self._quotas else self._quotas

    async def found(self, known: Known) -> dict[Key, Finding]:
        """The same as the last time when only statuses, or facts that none speaks of, have changed: what is written comes back by the
        watch."""
        await self._list_quotas(known)
        basis = _Basis.of(known, self._quotas)
        if basis != self._basis:
            self._found = await self._sliced(in_steps(known.snapshot, known.entries, self._quotas))
            self._basis = basis
            self.done += 1
        return self._found

    async def _sliced(self, steps: Generator[None, None, dict[Key, Finding]]) -> dict[Key, Finding]:
        turn = Turn()
        while True:
            try:
                next(steps)
            except StopIteration as done:
                found: dict[Key, Finding] = done.value
                return found
            await turn.over()
