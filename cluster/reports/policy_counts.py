"""The counts in the statuses of policies: to how many pods each applies, and what it says of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from analysis.audit.ledger import Ledger, PolicyTotals
from cluster.background import background
from cluster.reports.paced_calls import PacedCalls
from cluster.watch.kinds import status_path
from policies.objects.crd import AUDIT
from policies.state.objects import Key, ObjectEntry, id_of

REST = 10.0
"""Seconds between two writes of the counts of one policy: pods come and go all the time."""
PATCH = "application/merge-patch+json"


@dataclass(kw_only=True)
class PolicyCounts:
    """Writes ``status.audit`` of policies wherever it differs. Used on the event loop only."""

    calls: PacedCalls
    ledger: Ledger
    entries: Callable[[], Mapping[Key, ObjectEntry]]
    """Returns Berth's objects as they are stored."""
    settled: Callable[[], bool]
    """Returns whether all pods are known and judged."""
    rest: float = REST
    written: int = 0
    _wrote: dict[Key, tuple[str, PolicyTotals]] = field(default_factory=dict)
    """Policy -> (uid, counts) as written last, of which the watch may not have told yet."""

    @background("counts")
    async def run(self) -> None:
        """Write while the Lease is held, forever. No answer of the API server ends it."""
        while True:
            pause = self.rest
            if not self.calls.may_write:
                self._wrote.clear()
            elif self.settled():
                try:
                    await self._turn()
                    self.calls.failures = 0
                except _Overloaded:
                    pause = self.calls.back_off()
                except Exception as error:  # noqa: BLE001 - counts must not end because of one policy
                    self.calls.denied(f"{type(error).__name__}: {error}"[:500])
                    pause = self.calls.back_off()
            await asyncio.sleep(pause)

    async def _turn(self) -> None:
        totals, entries = self.ledger.totals(), self.entries()
        for key in [key for key in self._wrote if key not in entries]:
            del self._wrote[key]
        for key, entry in entries.items():
            if key[0] == "GPUNodeTemplate":
                continue
            wanted = totals.get(id_of(key), PolicyTotals())
            if entry.status.get(AUDIT) == wanted.status() or self._wrote.get(key) == (entry.uid, wanted):
                continue
            await self._write(key, entry, wanted)

    async def _write(self, key: Key, entry: ObjectEntry, wanted: PolicyTotals) -> None:
        body = {"metadata": {"uid": entry.uid}, "status": {AUDIT: wanted.status()}}
        reply = await self.calls.call("PATCH", status_path(key), body, PATCH, {})
        if reply is None:
            self.calls.failures += 1
            raise _Overloaded
        if reply.ok:
            self.written += 1
            self._wrote[entry.key] = entry.uid, wanted
        elif reply.status not in (404, 409) and self.calls.overloaded(id_of(entry.key), reply):
            self.calls.failures += 1
            raise _Overloaded


class _Overloaded(Exception):
    """The API server does not answer, or has too much to do."""
