"""Each namespace's share of the loop: who takes more waits for others, nobody else does, and no review waits for long."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import pytest

from policies.state.snapshot import Snapshot
from server.limits import Limits
from sources.sources import Sources, load_sources
from telemetry.metrics import Metrics
from tests.support.calls.in_process import JSON, Received, ask, port, read_answer, run
from tests.testcluster.calls import PATIENCE
from webhook.admission import app as app_module
from webhook.admission.app import AdmissionState, App, starlette_of
from webhook.admission.namespace_shares import _MOST, BURST, LOG_INTERVAL, OTHERS, SHARE, NamespaceShares

ROOT = Path(__file__).parent.parent.parent
CREATE = (ROOT / "reviews" / "pods-create-train-llama.json").read_bytes()
NOW = 100.0
POLICY = """
apiVersion: berth.dev/v1alpha1
kind: GPUPolicy
metadata: {name: own, namespace: dear}
spec: {mode: Enforce, require: {gpusPerPod: {max: 4}}}
"""


def over(by: float = 0.1) -> NamespaceShares:
    """The namespace ``dear`` has had so many seconds more than its bucket holds, at NOW."""
    shares = NamespaceShares()
    shares.charge("dear", BURST + by, NOW)
    return shares


def test_within_its_share_nobody_is_looked_at() -> None:
    """As long as the bucket holds something."""
    shares = NamespaceShares()
    shares.charge("dear", BURST, NOW)
    assert not shares.is_tight(NOW)
    shares.charge("dear", 0.01, NOW)
    assert shares.is_tight(NOW)


def test_a_namespace_alone_may_use_all() -> None:
    """Nobody waits for it."""
    shares = over(10)
    assert not any(shares.is_over("dear", NOW + i) for i in range(3))


def test_while_others_call_it_waits_and_they_do_not() -> None:
    """Whoever called within the last second is one of them."""
    shares = over(10)
    assert not shares.is_over("other", NOW)
    assert shares.is_over("dear", NOW + OTHERS / 2)
    assert not shares.is_over("third", NOW + OTHERS / 2)
    assert not shares.is_over("dear", NOW + 2 * OTHERS)


def test_time_fills_its_bucket_again() -> None:
    """So much of the loop is its own, whatever others do."""
    shares = over(0.1)
    shares.is_over("other", NOW + 0.09 / SHARE)
    assert shares.is_over("dear", NOW + 0.09 / SHARE)
    assert not shares.is_over("dear", NOW + 0.11 / SHARE)
    assert not shares.is_tight(NOW + OTHERS + 0.11 / SHARE)


def test_a_bucket_holds_no_more_than_it_holds() -> None:
    """A day of silence is no right to hold the loop for hours."""
    shares = NamespaceShares()
    shares.charge("dear", 0.001, NOW)
    shares.charge("dear", BURST + 0.1, NOW + 86_400)
    assert shares.is_tight(NOW + 86_400)


def test_it_is_told_once_in_a_while() -> None:
    """However many are sent away."""
    shares = over(100)
    assert [shares.take_log_turn("dear", NOW + seconds) for seconds in (0, 1, LOG_INTERVAL / 2, LOG_INTERVAL, LOG_INTERVAL + 1)] == [
        True,
        False,
        False,
        True,
        False,
    ]
    assert not shares.take_log_turn("other", NOW)


def test_no_number_of_namespaces_fills_it() -> None:
    """The first are forgotten."""
    shares = NamespaceShares()
    for i in range(_MOST + 10):
        shares.charge(f"n{i}", 2 * BURST, NOW)
        shares.is_over(f"n{i}", NOW)
    assert len(shares) == _MOST
    assert len(shares._latest) <= _MOST + 1


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    """One policy, in Enforce, of the namespace ``dear``."""
    file = tmp_path / "own.yaml"
    file.write_text(POLICY)
    return load_sources(Sources(policies=(str(file),), platforms=("karpenter-aws",))).snapshot


def test_over_a_real_connection(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """After a second a denial where the namespace enforces; advice is never withheld, and another namespace's pods are judged all the
    while."""
    admission = AdmissionState(limits=Limits(), metrics=Metrics("0"), snapshot=snapshot, shares=over(100))
    monkeypatch.setattr(app_module, "monotonic", lambda: NOW)

    async def calls() -> list[Received]:
        async with port(App(admission), Limits(), []) as (_, number):
            await asyncio.to_thread(post, number, "other")
            waiting = asyncio.create_task(asyncio.to_thread(post, number, "dear"))
            while not len(admission.parking):
                await asyncio.sleep(0.01)
            other = await asyncio.to_thread(post, number, "other")
            assert not waiting.done()
            return [other, await waiting, await asyncio.to_thread(post, number, "dear", "/advise")]

    other, last, advice = run(calls())
    assert (other.status, last.status) == (200, 200)
    response = json.loads(last.body)["response"]
    assert (response["allowed"], response["status"]["code"]) == (False, 429)
    assert response["status"]["message"].startswith(
        "BERTH-006: this object is not evaluated, because its namespace takes more than its share"
    )
    advised = json.loads(advice.body)["response"]
    assert (advised["allowed"], advised["warnings"][0][:9]) == (True, "BERTH-006")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["namespace"] for line in lines if line["event"] == "over_share"] == ["dear"]


def post(number: int, namespace: str, path: str = "/mutate") -> Received:
    body = CREATE.replace(b'"namespace":"default","operation"', f'"namespace":"{namespace}","operation"'.encode(), 1)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", number), timeout=PATIENCE) as caller:
        caller.sendall(head.encode() + body)
        return read_answer(caller)


def test_what_is_dear_is_counted(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock, from before a review is judged until after; one that was kept costs nothing."""
    admission = AdmissionState(limits=Limits(), metrics=Metrics("0"), snapshot=snapshot)
    ticks = iter(range(1_000))
    monkeypatch.setattr(app_module, "monotonic", lambda: next(ticks) * (BURST + 1))
    ask(starlette_of(App(admission)), "/mutate", CREATE, JSON)
    assert admission.shares._buckets["default"].left < 0
