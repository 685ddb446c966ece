"""The changes of a cluster, taken from the delta queue and applied so that an exception loses none of them, and one object
holds up no other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from cluster.watch.backoff import doubled_pause
from cluster.watch.delta_queue import DeltaQueue
from kube.tree import Raw
from policies.state.objects import Key, id_of
from policies.state.updater import Update
from telemetry import log

FIRST = 0.05
"""Seconds before a batch that failed is applied again: doubled with each failure, up to AGAIN."""
AGAIN, SELDOM = 15.0, 300.0
"""Seconds before an isolated object is applied again: doubled with each failure from the first to the second."""
Changes = Mapping[Key, Raw | None]


def pause(failures: int) -> float:
    """Return the seconds before changes are taken again after so many failures in a row."""
    return doubled_pause(failures, FIRST, AGAIN)


class Applied(NamedTuple):
    """Changes, and what became of them together."""

    keys: frozenset[Key]
    update: Update


class Isolated(NamedTuple):
    """An object whose newest form can't be applied: its last good form acts."""

    error: str
    failures: int
    again: asyncio.TimerHandle


class Batches:
    """Takes changes from a queue, on the event loop."""

    def __init__(self, queue: DeltaQueue, apply: Callable[[Changes], Awaitable[Update]]) -> None:
        """``apply`` leaves everything as it was where it raises."""
        self._queue = queue
        self._apply = apply
        self._has_failed = False
        self.isolated: dict[Key, Isolated] = {}

    async def next(self) -> Applied:
        """Apply all changes of the queue, or none: an update comes from an empty batch too.

        The first failure of a batch is raised, and its changes are back in the queue. When it fails again, the objects that
        make it fail are isolated, and tried again later by themselves. A failure that no object causes is always raised.
        """
        taken = self._queue.take()
        suspects = {key: taken.pop(key) for key in self.isolated if key in taken}
        for key in suspects:
            self.isolated[key].again.cancel()  # else an older form comes back while this one is applied
        try:
            updates = await self._whole_or_parts(taken)
        except Exception:
            self._has_failed = True
            self._queue.put_back({**taken, **suspects})
            raise
        self._has_failed = False
        for key, change in suspects.items():
            updates += await self._parts({key: change})
        keys = (taken.keys() | suspects.keys()) - self.isolated.keys()
        return Applied(frozenset(keys), merge_updates(updates))

    def names(self, kind: str) -> list[str]:
        """Return the ids of the isolated objects of the kind."""
        return [id_of(key) for key in self.isolated if key[0] == kind]

    async def _whole_or_parts(self, batch: Changes) -> list[Update]:
        try:
            return [await self._apply(batch)]
        except Exception:
            if not self._has_failed:
                raise
        return [await self._apply({}), *await self._parts(batch)]

    async def _parts(self, batch: Changes) -> list[Update]:
        """Apply a batch in ever smaller parts, down to the objects that fail."""
        if not batch:
            return []
        try:
            update = await self._apply(batch)
        except Exception as error:  # noqa: BLE001 - of one object, whatever it is
            if len(batch) == 1:
                self._isolate(*next(iter(batch.items())), error)
                return []
        else:
            for key in batch:
                self._release(key)
            return [update]
        items = list(batch.items())
        middle = len(items) // 2
        return [*await self._parts(dict(items[:middle])), *await self._parts(dict(items[middle:]))]

    def _isolate(self, key: Key, change: Raw | None, error: Exception) -> None:
        before = self._take_out(key)
        failures = before.failures + 1 if before else 1
        text = f"{type(error).__name__}: {error}"
        if before is None or before.error != text:
            log.write("object_isolated", "error", object=id_of(key), error=log.trace(error))
        pause = min(AGAIN * 2.0 ** (failures - 1), SELDOM)
        again = asyncio.get_running_loop().call_later(pause, self._queue.put_back, {key: change})
        self.isolated[key] = Isolated(text, failures, again)

    def _release(self, key: Key) -> None:
        if self._take_out(key) is not None:
            log.write("object_applied", object=id_of(key))

    def _take_out(self, key: Key) -> Isolated | None:
        before = self.isolated.pop(key, None)
        if before is not None:
            before.again.cancel()
        return before


def merge_updates(updates: Sequence[Update]) -> Update:
    """Return several updates, one after the other, as one."""
    return replace(
        updates[-1],
        changed=any(update.changed for update in updates),
        policies_changed=any(update.policies_changed for update in updates),
        decisions_hold=all(update.decisions_hold for update in updates),
        added=_each(update.added for update in updates),
        modified=_each(update.modified for update in updates),
        removed=_each(update.removed for update in updates),
        denied=tuple(entry for update in updates for entry in update.denied),
    )


def _each(names: Iterator[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for some in names for name in some))
