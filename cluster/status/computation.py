"""The computation of findings beside reviews: in small slices, and only when one of their inputs has
changed; and the ResourceQuotas that statuses need: listed once a minute by the elected replica, not watched by all replicas."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping

from analysis.conditions import ObjectStatus, in_steps
from cluster.client.api_client import Client
from cluster.client.errors import Failure
from cluster.reconciler import WorkSlice
from cluster.watch.kinds import RESOURCE_QUOTAS
from cluster.watch.listing import Listing
from kube.labels import LabelSelector, selector_of
from kube.tree import map_at, maps_in
from policies.policy import REGISTRATION, Policy
from policies.state.objects import Key
from policies.state.snapshot import Snapshot
from policies.state.updater import Update

QUOTAS = 60.0
"""Seconds between two lists of quotas, and two reads of the registration."""
CONFIGURATION = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{REGISTRATION}"


def _inputs(known: Update, quotas: object, registered: LabelSelector | None) -> tuple[object, ...]:
    """Return all inputs of findings, to be compared with those of the last computation.

    Most are the same objects as before: unchanged parts are taken over from one snapshot to the next. The snapshot of the tables
    has to be kept, so that no other table gets the ``id`` of one of them.
    """
    snapshot = known.snapshot
    return (
        snapshot.policies,
        snapshot.templates,
        [id(table) for table in snapshot.tables.values()],
        snapshot.placed,
        snapshot.cluster.namespaces,
        snapshot.advertised.twice,
        quotas,
        registered,
        {key: (entry.uid, entry.generation, entry.understood, entry.acting) for key, entry in known.entries.items()},
    )


class StatusComputation:
    """The latest statuses. ``failed`` is called with the error when quotas can't be listed."""

    def __init__(self, client: Client, failed: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._client = client
        self._failed = failed
        self._clock = clock
        self._statuses: dict[Key, ObjectStatus] = {}
        self._inputs: tuple[object, ...] = ()
        self._snapshot: Snapshot | None = None
        """The snapshot of the inputs."""
        self._quotas: Mapping[str, list[dict[str, str]]] = {}
        self._quotas_at: float | None = None
        self._registered: LabelSelector | None = None
        self._registered_at: float | None = None
        self.done = 0
        """The number of times that findings were computed."""

    async def _list_quotas(self, known: Update) -> None:
        """List quotas, but only while they matter: while a policy sets MIG slices by default."""
        if not any(isinstance(e.acting, Policy) and e.acting.default.mig is not None for e in known.entries.values()):
            self._quotas, self._quotas_at = {}, None
            return
        now = self._clock()
        if self._quotas_at is None or now - self._quotas_at >= QUOTAS:
            self._quotas_at = now
            try:
                listed = await list_quotas(self._client)
            except Failure as error:
                self._failed(str(error))
            else:
                self._quotas = listed if listed != self._quotas else self._quotas

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

    async def compute(self, known: Update) -> dict[Key, ObjectStatus]:
        """Return the statuses of all objects.

        They are not computed again if only statuses, which come back by the watch after each write, or facts
        that are no input of findings have changed.
        """
        await self._list_quotas(known)
        await self._read_registered()
        inputs = _inputs(known, self._quotas, self._registered)
        if inputs != self._inputs:
            self._statuses = await self._run_in_slices(in_steps(known.snapshot, known.entries, self._quotas, self._registered))
            self._inputs, self._snapshot = inputs, known.snapshot
            self.done += 1
        return self._statuses

    async def _run_in_slices(self, steps: Generator[None, None, dict[Key, ObjectStatus]]) -> dict[Key, ObjectStatus]:
        work = WorkSlice()
        while True:
            try:
                next(steps)
            except StopIteration as done:
                statuses: dict[Key, ObjectStatus] = done.value
                return statuses
            await work.over()


async def list_quotas(client: Client) -> dict[str, list[dict[str, str]]]:
    """Return namespace -> ``spec.hard`` of each of its ResourceQuotas. Raises Failure."""
    by_namespace: dict[str, list[dict[str, str]]] = {}
    for quota in (await Listing(client, RESOURCE_QUOTAS).all())[0]:
        if quota["spec"] is not None:  # else it is larger than the row allows
            by_namespace.setdefault(quota["metadata"]["namespace"], []).append(quota["spec"]["hard"])
    return by_namespace
