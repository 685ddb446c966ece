"""Activation of policies and facts, from any source: the one swap, its log lines, and the release of the old
ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from policies.offers.constraints import Compiled
from policies.state.updater import Update
from telemetry import device_modes, log
from webhook.admission.decision_cache import empty_decisions
from webhook.reload.reload_results import ReloadResults

AT_ONCE = 100
"""Policies that are released in one turn of the event loop: 0.1 ms."""
MOST_NAMED = 100
"""Policies of each kind of change that one log line names."""


async def activate(results: ReloadResults, update: Update) -> None:
    """Activate a snapshot from the next call on.

    Changed policies are logged; other changes, of namespaces, nodes or claims, are not.
    """
    results.entries = update.entries
    if update.policies_changed:
        await activate_update(results, update)
    elif update.changed:
        _swap(results, update)


async def activate_update(results: ReloadResults, update: Update, warnings: Iterable[str] = ()) -> None:
    """Activate policies that were read or have changed; logged even if they are the same as before."""
    replaced = _swap(results, update)
    results.loaded_at, results.rejected_at = time.time(), 0
    results.admission.metrics.snapshot_swapped(update.snapshot, results.loaded_at)
    for warning in warnings:
        log.write("policies_warning", "warning", text=warning)
    log.write(
        "policies_loaded",
        policies=len(update.snapshot.policies),
        maxMode=update.snapshot.max_mode,
        platforms=list(update.snapshot.tables) if update.snapshot.placed else [],
        added=update.added[:MOST_NAMED],
        removed=update.removed[:MOST_NAMED],
        changed=update.modified[:MOST_NAMED],
    )
    await dissolve(replaced)


def _swap(results: ReloadResults, update: Update) -> list[Compiled]:
    """Swap the snapshot, and return the old policies.

    This runs on the event loop, so no call is in the middle of the old policies. Nothing else refers to those
    that the new snapshot has not taken over, once the decisions that rest on them are gone.
    """
    admission = results.admission
    old, admission.snapshot = admission.snapshot, update.snapshot
    device_modes.tell(old, update.snapshot)
    admission.parking.resume_arrived(update.snapshot)
    if not update.decisions_hold:
        admission.decisions = empty_decisions()
    if old is None or old is update.snapshot:
        return []
    admission.metrics.devices.keep(update.snapshot)
    old.forget()
    return list(old.policies)


async def dissolve(policies: list[Compiled]) -> None:
    """Release the policies a few at a time, which delays nobody: releasing ten thousand at once holds up the
    event loop for 12 ms."""
    while policies:
        del policies[-AT_ONCE:]
        await asyncio.sleep(0)
