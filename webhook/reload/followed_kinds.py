"""What every process that follows a cluster does alike: it waits for the first lists, tells the state of each kind,
is a candidate for a Lease, and ends its tasks."""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cluster.client.api_client import Client
from cluster.status.events import Events
from cluster.status.leader_election import Lease
from cluster.watch.connectivity import Connectivity
from cluster.watch.delta_queue import DeltaQueue
from cluster.watch.reflector import Reflector
from policies.facts import admission_queues
from policies.state.objects import Key, ObjectEntry
from telemetry import log
from telemetry.watch_metrics import Watching

LOOK = 0.01
"""Seconds between two looks at what is not listed yet."""
WAITS = 5.0
"""Seconds between log lines about what is still missing for a first snapshot."""
ENDINGS, ENDING = 3, 4.0
"""The number of times that tasks are cancelled at the end, and the seconds that they get each time: releasing
the Lease takes three at most."""


async def synced(reflectors: Sequence[Reflector]) -> None:
    """Wait until every required kind is listed, and the others as far as they can be read.

    What is missing is logged at intervals.
    """
    logged_at = time.monotonic()
    while not all(one.settled for one in reflectors):
        await asyncio.sleep(LOOK)
        if time.monotonic() - logged_at > WAITS:
            logged_at = time.monotonic()
            missing = {one.kind: one.error or "not listed yet" for one in reflectors if not one.settled}
            log.write("cluster_waiting", "warning", missing=missing)


def knows_all_nodes(reflectors: Iterable[Reflector], facts: DeltaQueue) -> bool:
    """Return whether nodes and NodePools are known as the API server has them."""
    return all(one.healthy and not facts.unread(one.kind) for one in reflectors if one.kind in ("Node", "NodePool"))


def known_queues(reflectors: Iterable[Reflector], facts: DeltaQueue) -> dict[Key, Mapping[str, Any] | None]:
    """Return which of Kueue's kinds are known as the API server has them, as changes of facts."""
    return admission_queues.followed(one.kind for one in reflectors if one.healthy and not one.absent and not facts.unread(one.kind))


def watching(
    reflectors: Iterable[Reflector], facts: DeltaQueue, isolated: Callable[[str], Sequence[str]], others: Mapping[str, int] = {}
) -> Iterator[Watching]:
    """Yield the state of each kind, for ``/readyz`` and the metrics. ``isolated`` returns the ids of the objects of a kind that
    can't be applied; ``others``: kind -> number of known objects that are not among the facts."""
    sizes = {**facts.sizes(), **others}
    now = time.monotonic()
    for one in reflectors:
        yield Watching(
            kind=one.kind,
            synced=one.synced,
            healthy=one.healthy,
            error=one.error,
            without="" if one.counts.lists or one.absent else one.without,
            silent=now - one.heard_at if one.heard_at else None,
            objects=sizes.get(one.kind, 0),
            isolated=tuple(isolated(one.kind)),
            counts=asdict(one.counts),
            unread=facts.unread(one.kind),
            digest=lambda kind=one.kind: facts.digest(kind),  # type: ignore[misc]
        )


def count_rejected(entries: Iterable[ObjectEntry]) -> tuple[int, int]:
    """Return how many objects are not understood in their newest form: (those whose last good form is in force, the
    others)."""
    wrong = [entry for entry in entries if entry.understood.errors]
    return sum(entry.stale for entry in wrong), sum(not entry.stale for entry in wrong)


def candidate(client: Client, name: tuple[str, str], gate: Connectivity) -> tuple[Lease, Events]:
    """Return this process's candidacy for a Lease, given by namespace and name, and the Events that it sends while it holds it."""
    holder = f"{socket.gethostname()}_{secrets.token_hex(4)}"
    lease = Lease(client, namespace=name[0], name=name[1], holder=holder, tell=log.tell, reachable=lambda: gate.open)
    return lease, Events(client, instance=holder, held=lambda: lease.left > 0, tell=log.tell)


async def ended(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel the tasks and wait for them; again where a library took the first cancellation for its own
    timeout."""
    for _ in range(ENDINGS):
        pending = [task for task in tasks if not task.done()]
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=ENDING)
