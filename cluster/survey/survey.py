"""Lists of several kinds, read once. A kind that may not be read, or that the server lacks, is named with the
reason; all else is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cluster.client.api_client import Client
from cluster.client.errors import Rejected
from cluster.watch.kinds import Watched
from cluster.watch.listing import Listing
from kube.tree import Raw

AT_ONCE = 4
"""Lists at a time: kube-apiserver's share for one user is a few seats (API priority and fairness)."""
ATTEMPTS = 3
"""Lists of one kind before it is given up: its pages expire after five minutes (410), and a server that is busy
says when to come again (429)."""
AGAIN = (410, 429, 500, 503, 504)
"""Statuses after which a list is tried again."""
LONGEST = 10.0
"""Most seconds of a server's Retry-After that are waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What was read. ``objects``: kind -> its objects, trimmed; empty for what is in ``unread``."""

    objects: Mapping[str, Sequence[Raw]]
    unread: Mapping[str, str] = field(default_factory=dict)
    """Kind -> why it was not read, in one sentence."""
    absent: frozenset[str] = frozenset()
    """Those of ``unread`` that the server does not have."""


Progress = Callable[[str, int], None]
"""Called with a kind and the number of its objects, once it is read."""


async def survey(client: Client, kinds: Sequence[Watched], namespace: str = "", progress: Progress | None = None) -> Survey:
    """Read these kinds; of namespaced ones the objects of one namespace, or of all.

    Raises Unreachable: without an answer from the server there is nothing to report.
    """
    turns, found, unread, absent = asyncio.Semaphore(AT_ONCE), {}, {}, set()

    async def read(kind: Watched) -> None:
        async with turns:
            try:
                found[kind.kind] = await _listed(client, kind, namespace if kind.namespaced else "")
            except Rejected as error:
                found[kind.kind] = []
                unread[kind.kind] = _reason(kind, namespace, error)
                if error.reply.status == 404:
                    absent.add(kind.kind)
            if progress is not None:
                progress(kind.kind, len(found[kind.kind]))

    try:
        async with asyncio.TaskGroup() as group:
            for kind in kinds:
                group.create_task(read(kind))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return Survey(objects=found, unread=unread, absent=frozenset(absent))


async def _listed(client: Client, kind: Watched, namespace: str) -> list[Raw]:
    listing = Listing(client, replace(kind, most=0), namespace)
    for left in reversed(range(ATTEMPTS)):
        try:
            return (await listing.all())[0]
        except Rejected as error:
            if error.reply.status not in AGAIN or not left:
                raise
            await asyncio.sleep(min(LONGEST, error.reply.retry_after or 1.0))
    raise AssertionError("the last attempt returns or raises")


def _reason(kind: Watched, namespace: str, error: Rejected) -> str:
    if error.reply.status == 404:
        return f"the API server has no {kind.resource}"
    if error.reply.status == 403:
        where = f" in namespace {namespace}" if namespace and kind.namespaced else ""
        return f"you may not list {kind.resource}{where}"
    return str(error)
