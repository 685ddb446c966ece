"""The computation of findings beside reviews: in small slices, and only when one of their inputs has
changed; and the ResourceQuotas that statuses need: listed once a minute by the elected replica, not watched by all replicas."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

from analysis.conditions import ObjectStatus, in_steps
from cluster.client.api_client import Client
from cluster.client.errors import Failure
from cluster.watch.kinds import RESOURCE_QUOTAS
from cluster.watch.listing import Listing
from kube.labels import LabelSelector, selector_of
from kube.tree import map_at, maps_in
from policies.policy import REGISTRATION, Policy
from policies.state.objects import Key, ObjectEntry
from policies.state.snapshot import Snapshot

QUOTAS = 60.0
"""Seconds between two lists of quotas, and two reads of the registration."""
CONFIGURATION = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{REGISTRATION}"
SLICE, PAUSE = 0.002, 0.006
"""Seconds of work, and of leaving the event loop to reviews: at most a quarter of the time is used."""


class WorkSlice:
    """A slice of work on the event loop."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + SLICE

    async def over(self) -> None:
        """Yield to the event loop if the slice is used up; await this after each piece of work."""
        if time.perf_counter() > self._until:
            await asyncio.sleep(PAUSE)
            self._until = time.perf_counter() + SLICE


@dataclass(slots=True)
class WriterState:
    """The state that the writer was given last."""

    snapshot: Snapshot
    entries: Mapping[Key, ObjectEntry]


@dataclass(slots=True)
class _Basis:
    """All inputs of findings.

    Most are compared by identity: unchanged parts are taken over from one snapshot to the next.
    """

    policies: object
    templates: object
    tables: list[int]
    placed: bool
    namespaces: object
    advertised: object
    quotas: object
    registered: LabelSelector | None
    forms: object
    snapshot: Snapshot = field(compare=False)
    """Keeps the snapshot's tables alive, so that no other table gets the ``id`` of one of them."""

    @classmethod
    def of(cls, known: WriterState, quotas: object, registered: LabelSelector | None) -> _Basis:
        snapshot = known.snapshot
        return cls(
            policies=snapshot.policies,
            templates=snapshot.templates,
            tables=[id(table) for table in snapshot.tables.values()],
            placed=snapshot.placed,
            namespaces=snapshot.cluster.namespaces,
            advertised=snapshot.advertised.twice,
            quotas=quotas,
            registered=registered,
            forms={key: (e.uid, e.generation, e.understood, e.acting) for key, e in known.entries.items()},
            snapshot=snapshot,
        )


class QuotaSearch:
    """The latest findings. ``failed`` is called with the error when quotas can't be listed."""

    def __init__(self, client: Client, failed: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._client = client
        self._failed = failed
        self._clock = clock
        self._found: dict[Key, ObjectStatus] = {}
        self._basis: _Basis | None = None
        self._quotas: Mapping[str, list[dict[str, str]]] = {}
        self._quotas_at: float | None = None
        self._registered: LabelSelector | None = None
        self._registered_at: float | None = None
        self.done = 0
        """The number of times that findings were computed."""

    async def _list_quotas(self, known: WriterState) -> None:
        """List quotas, but only while they matter: while a policy sets MIG slices by default."""
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

    async def _read_registered(self) -> None:
        """Read the namespaces of which the API server sends pods. Without a registration that may be read, the last ones stay."""
        now = self._clock()
        if self._registered_at is not None and now - self._registered_at < QUOTAS:
            return
        self._registered_at = now
        try:
            reply = await self._client.call("GET", CONFIGURATION)
        except Failure as error:
            self._failed(str(error))
            return
        first = next(maps_in(map_at(reply.body).get("webhooks")), None) if reply.ok else None
        if first is not None:  # all have the same
            self._registered = selector_of(map_at(first, "namespaceSelector"))

    async def found(self, known: WriterState) -> dict[Key, ObjectStatus]:
        """Return the findings.

        They are not computed again if only statuses, which come back by the watch after each write, or facts
        that are no input of findings have changed.
        """
        await self._list_quotas(known)
        await self._read_registered()
        basis = _Basis.of(known, self._quotas, self._registered)
        if basis != self._basis:
            self._found = await self._sliced(in_steps(known.snapshot, known.entries, self._quotas, self._registered))
            self._basis = basis
            self.done += 1
        return self._found

    async def _sliced(self, steps: Generator[None, None, dict[Key, ObjectStatus]]) -> dict[Key, ObjectStatus]:
        turn = WorkSlice()
        while True:
            try:
                next(steps)
            except StopIteration as done:
                found: dict[Key, ObjectStatus] = done.value
                return found
            await turn.over()


async def quotas(client: Client) -> dict[str, list[dict[str, str]]]:
    """Return namespace -> ``spec.hard`` of each of its ResourceQuotas. Raises Failure."""
    amounts: dict[str, list[dict[str, str]]] = {}
    for quota in (await Listing(client, RESOURCE_QUOTAS).all())[0]:
        if quota["spec"] is not None:
            amounts.setdefault(quota["metadata"]["namespace"], []).append(quota["spec"]["hard"])
    return amounts
