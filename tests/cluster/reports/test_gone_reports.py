"""Reports that are due: what the writer remembers of workloads that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Sized
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cluster.client.errors import Reply
from cluster.reports.stored_reports import ReportKey, StoredReports
from cluster.reports.writer import ReportWriter
from tests.testcluster.calls import PATIENCE


@dataclass(frozen=True, order=True)
class Job:
    """A workload."""

    namespace: str
    report_name: str


class Server:
    """An API server that takes every write."""

    def __init__(self) -> None:
        self.written: list[str] = []

    async def call(self, method: str, path: str, *, body: Any, **_: Any) -> Reply:
        self.written.append(f"{method} {path}")
        return Reply(200, body or {})


class Jobs:
    """A ledger in which each job has one finding."""

    def __init__(self) -> None:
        self.now: dict[Job, str] = {}
        self.touched: set[Job] = set()

    def put(self, job: Job) -> None:
        self.now[job] = "1"
        self.touched.add(job)

    def end(self, job: Job) -> None:
        del self.now[job]
        self.touched.add(job)

    def workloads(self) -> list[Job]:
        return list(self.now)

    def changed(self) -> set[Job]:
        taken, self.touched = self.touched, set()
        return taken

    def newest(self, job: Job) -> str:
        return self.now.get(job, "")

    def report(self, job: Job, api_version: str) -> dict[str, Any]:
        return {"metadata": {"name": job.report_name, "namespace": job.namespace}, "summary": {"fail": 1}, "results": []}


class World:
    """A writer with one form of report, which the cluster may lack."""

    def __init__(self, *, absent: bool = False) -> None:
        self.server, self.jobs, self.stored, self.left = Server(), Jobs(), StoredReports(asyncio.Event()), 60.0
        followed = SimpleNamespace(synced=True, absent=absent, healthy=True, kind="Report")
        form = SimpleNamespace(
            followed=followed,
            stored=self.stored,
            path="/".join,
            api_version="v1",
            usable=not absent,
        )
        self.writer = ReportWriter(
            client=cast(Any, self.server),
            left=lambda: self.left,
            tell=lambda event, /, **_: None,
            clock=lambda: 0.0,
            ledger=cast(Any, self.jobs),
            forms=cast(Any, (form,)),
            causes=cast(Any, SimpleNamespace(send=lambda *_: True, forget=lambda *_: None)),
            rest=0.0,
            idle=0.001,
        )
        self.writer._form = cast(Any, None if absent else form)
        self.writer._text = "no kind of report" if absent else "reports"
        self.writer._choose = lambda: None  # type: ignore[method-assign]

    @property
    def remembered(self) -> int:
        """The number of names that the writer remembers."""
        kept: list[Sized] = [self.writer._attempts, self.writer._workloads, self.jobs.touched, self.stored._changed]
        return self.writer.due + sum(map(len, kept))


@pytest.mark.parametrize("collector_first", [True, False], ids=["the garbage collector deletes", "the writer deletes"])
def test_nothing_is_remembered_of_reports_that_are_gone(*, collector_first: bool) -> None:
    """Whoever was first to delete the report of a workload that ended: a cluster has a thousand jobs a day."""

    async def run() -> None:
        world = World()
        for number in range(50):
            job = Job("team", f"job-{number}")
            world.jobs.put(job)
            await world.writer._turn()
            world.jobs.end(job)
            if collector_first:
                world.stored.wrote((job.namespace, job.report_name), None)
            await world.writer._turn()
            await world.writer._turn()
        assert len(world.server.written) == (50 if collector_first else 100)
        assert world.remembered == 0

    asyncio.run(run())


@pytest.mark.parametrize("absent", [True, False], ids=["no kind of report", "another replica has the Lease"])
def test_nothing_is_remembered_while_nothing_is_written(*, absent: bool) -> None:
    """Neither on a replica that waits for the Lease, which then writes what is there, nor on a cluster without a kind of report of
    workloads that are gone."""

    async def run() -> None:
        world = World(absent=absent)
        world.left = 60.0 * absent
        task = asyncio.create_task(world.writer.run())
        for number in range(50):
            job = Job("team", f"job-{number}")
            world.jobs.put(job)
            world.stored.wrote((job.namespace, f"other-{number}"), cast(Any, ReportKey))
            world.stored.wrote((job.namespace, f"other-{number}"), None)
            if number or absent:
                world.jobs.end(job)
            await asyncio.sleep(0.005)
        async with asyncio.timeout(PATIENCE):
            while world.remembered:
                await asyncio.sleep(0.001)
        if not absent:
            world.left = 60.0
            while not world.server.written:
                await asyncio.sleep(0.001)
            assert world.server.written == ["PATCH team/job-0"]
        task.cancel()

    asyncio.run(run())
