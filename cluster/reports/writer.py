"""The writer of reports: one that differs from the stored one is applied, or deleted where nothing is found any more. Server-side
apply has the same result however often it is sent, so what failed stays due. A cluster without a kind of report gets Events alone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from analysis.audit.ledger import Ledger
from analysis.audit.workload_report import OPEN_REPORTS
from cluster.background import background
from cluster.client.errors import Reply
from cluster.reports.causes import Causes
from cluster.reports.due_reports import DueReports
from cluster.reports.forms import ReportForm, choice
from cluster.reports.paced_calls import PacedCalls
from cluster.reports.stored_reports import ReportKey, as_stored, digest
from cluster.status.writer import FOUGHT

AT_ONCE = 8
"""Writes under way."""
BATCH = 1000
"""Writes after which changes are taken again."""
REST = 0.5
"""Seconds between two looks: most of a burst of changes is covered by the next one."""
IDLE = 5.0
"""Seconds between two looks where nothing changes: whether the Lease is held, whether a kind of report came."""
AGAIN = 2.0
"""Seconds after which a report that was denied is tried again, at first."""
EVENTS_AGAIN = 30.0
"""Seconds after which Events over the rate are sent again, where no report has what they tell."""
OWNER = "berth-audit"
"""The field manager of what is applied."""
APPLY = "application/apply-patch+yaml"


@dataclass(slots=True)
class ReportCounts:
    """Totals since the start."""

    written: int = 0
    deleted: int = 0


@dataclass(kw_only=True)
class ReportWriter:
    """Brings stored reports up to date with a ledger. Used on the event loop only."""

    calls: PacedCalls
    ledger: Ledger
    forms: tuple[ReportForm, ...]
    """The preferred one first."""
    changed: asyncio.Event
    """Set when the ledger or a stored report has changed."""
    ready: Callable[[], bool]
    """Returns whether all pods are known and judged: nothing is written or deleted before."""
    causes: Causes
    fought: float = FOUGHT
    rest: float = REST
    idle: float = IDLE
    counts: ReportCounts = field(default_factory=ReportCounts)
    due: DueReports = field(init=False)
    _form: ReportForm | None = None
    _text: str = ""
    _held: bool = False
    _wrote: dict[ReportKey, tuple[str, str, float]] = field(default_factory=dict)
    """Report -> (digest that was sent, digest that was stored, when)"""
    _denied: dict[ReportKey, float] = field(default_factory=dict)
    """Report -> seconds after which it is tried again"""

    def __post_init__(self) -> None:
        self.due = DueReports(self.ledger)

    @property
    def form(self) -> str:
        """The apiVersion of the reports; "" while the cluster has no kind for them."""
        return self._form.api_version if self._form is not None else ""

    @background("reports")
    async def run(self) -> None:
        """Write while the Lease is held, forever. No answer of the API server ends it."""
        while True:
            pause = self.idle
            if not self.calls.may_write:
                self._held = False
                self._forget()
            elif self.ready():
                self.changed.clear()
                pause = await self._turn_or_tell()
            await asyncio.sleep(self.rest)
            await self._wait(pause - self.rest)

    async def _wait(self, seconds: float) -> None:
        """Wait for a change, at most so long; while calls fail, wait for the full time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await (asyncio.sleep(seconds) if self.calls.failures else self.changed.wait())

    async def _turn_or_tell(self) -> float:
        try:
            return await self._turn()
        except Exception as error:  # noqa: BLE001 - reports must not end because of one workload
            self.calls.denied(f"{type(error).__name__}: {error}"[:500])
        return self.calls.back_off()

    async def _turn(self) -> float:
        """Write what is due. Return the seconds until the next turn."""
        if not self._held:  # another replica may have written meanwhile
            self._all_due()
            self._held = True
        self._choose()
        self.due.collect(self.calls.clock())
        for one in self.forms:
            self.due.add(one.stored.changed())
        if (form := self._form) is None and not self._text:
            return self.idle  # whether the cluster has a kind of report is not known yet
        batch = self.due.first(BATCH)
        good = await _each(batch, self._tell if form is None else partial(self._bring, form))
        if good and form is not None and len(batch) < BATCH:
            good = await self._sweep(form)
        if not good:
            return self.calls.back_off()
        self.calls.failures = 0
        return 0.0 if len(batch) == BATCH else self.idle

    def _choose(self) -> None:
        """Choose the first form that the cluster has, once it is known of all of them whether it has them."""
        if not all(form.followed.synced for form in self.forms):
            return
        usable, text = choice(self.forms)
        if usable is not self._form:
            self._form = usable
            self._wrote.clear()
            self._denied.clear()
            self._all_due()
        if text != self._text:
            self.calls.tell("reports", text=text)
        self._text = text

    def _all_due(self) -> None:
        self.due.every_workload()
        for form in self.forms:
            self.due.add(form.stored.reports)

    def _forget(self) -> None:
        """Forget what has changed and was written, as nothing is written now: all reports are due again with the Lease."""
        self.ledger.changed()
        for form in self.forms:
            form.stored.changed()
        self.due.forget()
        self._wrote.clear()
        self._denied.clear()

    async def _bring(self, form: ReportForm, key: ReportKey) -> bool:
        """Bring one report up to date. Return False if the API server fails or the Lease is not held any more."""
        wanted, stored = self.due.wanted(key, form.api_version), form.stored.reports.get(key)
        if wanted is None:
            self.causes.forget(key)
            if stored is not None:
                return await self._delete(form, key)
            self._gone(key)
            return True
        workload, report = wanted
        sent, before = digest(report), self._wrote.get(key)
        if stored is not None and (stored.digest == sent or (before is not None and before[:2] == (sent, stored.digest))):
            self.due.done(key)
            return True
        if before is not None and before[0] == sent and self.calls.clock() - before[2] < self.fought:
            self.due.postpone(key, before[2] + self.fought)
            return True
        reply = await self.calls.call("PATCH", form.path(key), report, APPLY, {"fieldManager": OWNER, "force": "true"})
        if reply is None:
            return False
        if not reply.ok or not isinstance(reply.body, dict):
            if may_go_on := self._not_written(key, reply):  # Events need no report
                self.causes.send(workload, report, stored.causes if stored is not None else frozenset())
            return may_go_on
        now = form.stored.reports[key] = as_stored(reply.body)
        self._wrote[key] = sent, now.digest, self.calls.clock()
        self._denied.pop(key, None)
        self.counts.written += 1
        self.causes.send(workload, report, stored.causes if stored is not None else frozenset())
        self.due.done(key)
        return True

    async def _tell(self, key: ReportKey) -> bool:
        """Send the Events of one workload on a cluster without reports; those over the rate are sent later."""
        wanted = self.due.wanted(key, OPEN_REPORTS)
        if wanted is None:
            self.causes.forget(key)
        elif not self.causes.send(*wanted, frozenset()):
            self.due.postpone(key, self.calls.clock() + EVENTS_AGAIN)
            return True
        self.due.done(key)
        return True

    async def _delete(self, form: ReportForm, key: ReportKey) -> bool:
        reply = await self.calls.call("DELETE", form.path(key), None, "application/json", {})
        if reply is None:
            return False
        if not reply.ok and reply.status != 404:
            return self._not_written(key, reply)
        form.stored.reports.pop(key, None)
        self.counts.deleted += reply.ok
        self._gone(key)
        return True

    def _gone(self, key: ReportKey) -> None:
        """Forget a report that is gone: by this writer, or by the garbage collector once its owner was deleted."""
        self._wrote.pop(key, None)
        self._denied.pop(key, None)
        self.due.done(key)

    def _not_written(self, key: ReportKey, reply: Reply) -> bool:
        """Postpone a report that was denied, each time for longer: a right is missing, or its namespace is being deleted."""
        if self.calls.overloaded(f"report {'/'.join(key)}", reply):
            return False
        pause = self._denied[key] = min(self.fought, 2 * self._denied.get(key, AGAIN / 2))
        self.due.postpone(key, self.calls.clock() + pause)
        return True

    async def _sweep(self, form: ReportForm) -> bool:
        """Delete reports of other forms: they were written before the cluster had this one."""
        for other in self.forms:
            if other is not form and other.usable and not await _each(list(other.stored.reports), partial(self._delete, other)):
                return False
        return True


async def _each(keys: Iterable[ReportKey], work: Callable[[ReportKey], Awaitable[bool]]) -> bool:
    """Do the work for each key, several at once. Return False if one of them returned it: the rest is left."""
    waiting, failed = iter(list(keys)), False

    async def worker() -> None:
        nonlocal failed
        for key in waiting:
            if failed:
                return
            await asyncio.sleep(0)
            failed = not await work(key) or failed

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(worker())
    return not failed
