"""Putting policies in force, wherever they come from: the one swap, what is told of it, and how the old ones go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from policies.compiled import Compiled
from policies.snapshot import Snapshot
from webhook import logs
from webhook.app import Replica
from webhook.health import Condition

AT_ONCE = 100
"""policies that are let go of in one turn of the event loop: 0.1 ms"""


def swap(condition: Condition, snapshot: Snapshot, warnings: Iterable[str] = ()) -> list[Compiled]:
    """From the next call on these policies decide. On the event loop, so no call is in the middle of the old ones, which are
    returned: but for what is remembered of some, nothing else holds those that the new ones have not taken over."""
    replica = condition.replica
    old, replica.snapshot = replica.snapshot, snapshot
    condition.loaded_at, condition.refused_at = time.time(), 0
    replica.metrics.snapshot_swapped(snapshot, condition.loaded_at)
    for warning in warnings:
        logs.write("policies_warning", "warning", text=warning)
    if old is None:
        return []
    old.forget(snapshot)
    return list(old.policies)


def swap_facts(replica: Replica, snapshot: Snapshot) -> None:
    """The same policies, under other namespaces, nodes or claims."""
    old, replica.snapshot = replica.snapshot, snapshot
    if old is not None:
        old.forget(snapshot)


async def dissolve(policies: list[Compiled]) -> None:
    """Ten thousand policies that end at once hold up the event loop for 12 ms, and a few at a time nobody."""
    while policies:
        del policies[-AT_ONCE:]
        await asyncio.sleep(0)
