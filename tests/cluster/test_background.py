"""Background tasks: the event loop is told of each that ends by itself, and of no other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from analysis.conditions.conditions import Condition
from cluster.background import TASK, background
from cluster.client.errors import Reply
from cluster.reports.policy_counts import PolicyCounts
from cluster.status.events import Events
from cluster.status.leader_election import Lease
from policies.state.objects import ObjectEntry
from tests.testcluster.calls import PATIENCE


def told(function: Callable[[], Awaitable[None]]) -> list[tuple[str, str]]:
    """(name, error) of each ended task that the loop is told of; tasks that go on are cancelled."""

    async def run() -> list[tuple[str, str]]:
        contexts: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: contexts.append(context))
        task = asyncio.create_task(background("a name")(lambda: _as_coroutine(function))())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return [(context[TASK], repr(context.get("exception"))) for context in contexts]

    return asyncio.run(run())


async def _as_coroutine(function: Callable[[], Awaitable[None]]) -> None:
    await function()


async def fails() -> None:
    raise RuntimeError("x")


async def returns() -> None:
    """End at once."""


async def goes_on() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("function", "expected"),
    [(fails, [("a name", "RuntimeError('x')")]), (returns, [("a name", "None")]), (goes_on, [])],
    ids=["raises", "returns", "is cancelled"],
)
def test_a_task_that_ends_by_itself_is_told(function: Callable[[], Awaitable[None]], expected: list[tuple[str, str]]) -> None:
    """By its name and its error; one that is cancelled is ended by the process."""
    assert told(function) == expected


class Api:
    """An API server whose first calls end in an exception that nobody foresaw."""

    namespace = "berth-system"

    def __init__(self, bad: int) -> None:
        self.bad = bad
        self.calls: list[tuple[str, str]] = []

    async def call(self, method: str, path: str, *, body: Any = None, **_: Any) -> Reply:
        self.calls.append((method, path))
        if len(self.calls) <= self.bad:
            raise ZeroDivisionError("unforeseen")
        return Reply(404 if method == "GET" else 201, body)


def tell(event: str, /, **fields: Any) -> None:
    """Log nothing."""


async def reached(task: asyncio.Task[Any], condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            assert not task.done()
            await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_events_survive_any_exception() -> None:
    """One event is lost and counted, the next ones are sent."""

    async def run() -> None:
        events = Events(Api(1), instance="berth-0", held=lambda: True, tell=tell)  # type: ignore[arg-type]
        for name in ("a", "b", "c"):
            subject = cast(ObjectEntry, SimpleNamespace(key=("GPUPolicy", "default", name), uid="u", resource_version="7"))
            events.changed(subject, {}, Condition("Accepted", "False", "Invalid", "x"))
        await reached(asyncio.create_task(events.run()), lambda: (events.sent, events.dropped) == (2, 1))

    asyncio.run(run())


def test_a_candidate_survives_any_exception() -> None:
    """It tries again a moment later, and holds the Lease."""

    async def run() -> None:
        lease = Lease(Api(2), name="berth", holder="me", tell=tell, pace=0.01)  # type: ignore[arg-type]
        await reached(asyncio.create_task(lease.run()), lambda: lease.held)

    asyncio.run(run())


def test_counts_survive_any_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are written in a later turn, after a pause, and the error is logged."""
    monkeypatch.setattr(PolicyCounts, "_back_off", lambda counts: 0.0)
    lines: list[str] = []

    async def run() -> None:
        turns = 0

        def entries() -> dict[Any, Any]:
            nonlocal turns
            turns += 1
            if turns == 1:
                raise ZeroDivisionError("unforeseen")
            return {}

        counts = PolicyCounts(
            client=cast(Any, None),
            left=lambda: 10.0,
            tell=lambda event, /, **fields: lines.append(fields["error"]),
            ledger=cast(Any, Totals()),
            entries=entries,
            rest=0.0,
            idle=0.0,
        )
        await reached(asyncio.create_task(counts.run()), lambda: turns >= 3)

    asyncio.run(run())
    assert lines == ["ZeroDivisionError: unforeseen"]


class Totals:
    """A ledger without policies."""

    def totals(self) -> dict[str, Any]:
        return {}
