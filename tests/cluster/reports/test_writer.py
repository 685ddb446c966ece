"""The writer where no report can be written: Events are sent, each once, and none is lost to the rate."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

from analysis.audit.ledger import AuditedPod, Ledger
from analysis.audit.outcomes import AuditResult
from analysis.audit.stored_pod import stored, widest
from analysis.audit.workload_report import OPEN_REPORTS, ReportedWorkload
from cluster.client.errors import Reply
from cluster.reports.causes import Causes
from cluster.reports.stored_reports import FORMS, ReportForm, StoredReports
from cluster.reports.writer import EVENTS_AGAIN, ReportWriter
from cluster.status.events import BURST_OF_ONE, Events
from tests.support.generators.random_worlds import catalog

POLICIES = ("ClusterGPUPolicy/few",)
DENIED = AuditResult(POLICIES, "Audit", "would-deny", ("counts",), ("BERTH-111",), ("BERTH-111: too many",), (), (), "")
LACKING = AuditResult(POLICIES, "Enforce", "not-as-enforced", ("tolerations",), (), (), ("tolerations",), (), "[]")


@dataclass(slots=True)
class Kind:
    """What is known of a kind of report."""

    synced: bool = True
    healthy: bool = True
    absent: bool = True


@dataclass(slots=True)
class Clock:
    """Stands still until it is set."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(slots=True)
class Server:
    """Keeps the names of Events as an API server does."""

    names: list[str] = field(default_factory=list)
    denied: int = 0
    reports: int = 200
    """The status of its answers to reports."""

    async def call(self, method: str, path: str, body: Any = None, **_: Any) -> Reply:
        if method == "PATCH":
            return Reply(self.reports, {"kind": "Status", "message": "no"})
        assert (method, path.rpartition("/")[2]) == ("POST", "events")
        if body["metadata"]["name"] in self.names:
            self.denied += 1
            return Reply(409, {"kind": "Status", "message": "already exists"})
        self.names.append(body["metadata"]["name"])
        return Reply(201, body)


@dataclass(slots=True)
class Audit:
    """A writer over real parts, and the server that it writes to."""

    server: Server
    ledger: Ledger = field(default_factory=Ledger)
    clock: Clock = field(default_factory=Clock)
    logged: list[str] = field(default_factory=list)
    kinds: tuple[Kind, ...] = field(default_factory=lambda: tuple(Kind() for _ in FORMS))
    events: Events = field(init=False)
    writer: ReportWriter = field(init=False)

    def __post_init__(self) -> None:
        client: Any = self.server

        def tell(event: str, /, **fields: Any) -> None:
            self.logged.append(event)

        self.events = Events(client, instance="audit-0", held=lambda: True, tell=tell, clock=self.clock)
        changed = asyncio.Event()
        forms = tuple(ReportForm(watched, cast(Any, kind), StoredReports(changed)) for watched, kind in zip(FORMS, self.kinds, strict=True))
        causes = Causes(self.events, self.ledger)
        self.writer = ReportWriter(
            client=client, left=lambda: 60.0, tell=tell, clock=self.clock, ledger=self.ledger, forms=forms, changed=changed, causes=causes
        )

    async def turn(self) -> list[str]:
        """Let the writer take one turn, and return the reasons of the Events that it sent."""
        assert await self.writer._turn() > 0
        sent = list(self.events._waiting)
        sender = asyncio.create_task(self.events.run())
        while self.events._waiting:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        sender.cancel()
        return [event["reason"] for _, event in sent]


def pod(name: str, *outcomes: AuditResult, workload: str = "train") -> AuditedPod:
    value = {
        "metadata": {"name": name, "namespace": "n", "uid": f"u-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "16"}}}]},
    }
    owner = ReportedWorkload("batch/v1", "Job", "n", workload, f"u-{workload}")
    return AuditedPod(stored(value, widest(catalog())), owner, outcomes, POLICIES, 16, None)


def test_each_cause_is_an_event_where_no_report_can_be_written() -> None:
    """A cause is told once, a new one again, and one of a workload whose causes ended when it comes back."""

    async def run() -> None:
        audit = Audit(Server())
        audit.ledger.put(pod("a", DENIED))
        assert await audit.turn() == ["WouldBeDenied"]
        assert audit.logged == ["reports"]
        audit.ledger.put(pod("b", DENIED))
        assert await audit.turn() == []
        audit.ledger.put(pod("a", DENIED, LACKING))
        assert await audit.turn() == ["NotAsEnforced"]
        assert audit.writer.due == 0

    asyncio.run(run())


def test_nothing_is_sent_before_it_is_known_whether_reports_exist() -> None:
    """Stored reports may name the causes of which an earlier process sent Events."""

    async def run() -> None:
        audit = Audit(Server(), kinds=(Kind(), Kind(synced=False)))
        audit.ledger.put(pod("a", DENIED))
        assert await audit.turn() == []
        audit.kinds[1].synced = True
        assert await audit.turn() == ["WouldBeDenied"]

    asyncio.run(run())


def test_a_report_that_is_denied_does_not_hold_back_its_events() -> None:
    """A right may be missing, or a quota full; an API server that fails gets report and Events later."""

    async def run() -> None:
        for status, wanted in ((403, ["WouldBeDenied"]), (503, [])):
            audit = Audit(Server(reports=status), kinds=(Kind(absent=False), Kind()))
            audit.ledger.put(pod("a", DENIED))
            assert await audit.turn() == wanted
            audit.clock.now += 600
            assert await audit.turn() == []

    asyncio.run(run())


def test_events_over_the_rate_are_sent_later() -> None:
    """Without reports nothing else has what they tell."""

    async def run() -> None:
        audit = Audit(Server())
        for number in range(BURST_OF_ONE + 1):
            audit.ledger.put(pod(f"p{number}", DENIED, workload=f"job-{number}"))
        assert len(await audit.turn()) == BURST_OF_ONE
        audit.clock.now += EVENTS_AGAIN
        assert len(await audit.turn()) == 1
        assert len(audit.server.names) == BURST_OF_ONE + 1

    asyncio.run(run())


def test_a_restart_repeats_no_event() -> None:
    """The API server keeps the Event of the same name, and that is not logged as a failure."""

    async def run() -> None:
        server = Server()
        for _ in range(2):
            audit = Audit(server)
            audit.ledger.put(pod("a", DENIED))
            assert await audit.turn() == ["WouldBeDenied"]
            assert audit.logged == ["reports"]
        assert (len(server.names), server.denied) == (1, 1)

    asyncio.run(run())


def test_a_report_holds_back_the_events_that_were_sent_without_it() -> None:
    """The kind of report may be installed later."""
    audit = Audit(Server())
    audit.ledger.put(pod("a", DENIED))
    asyncio.run(audit.turn())
    workload = pod("a").workload
    report = audit.ledger.report(workload, OPEN_REPORTS)
    assert report is not None
    assert audit.writer.causes.send(workload, report, frozenset())
    assert not audit.events._waiting
