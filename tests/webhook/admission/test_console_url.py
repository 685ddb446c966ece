"""``--console-url``: answers name the page that explains them; without it they are as ever."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from kube.review import WARNING_LENGTH, WARNINGS_TOTAL
from policies.state.snapshot import Snapshot
from sources.sources import Sources, SourcesError, load_sources
from telemetry import log
from telemetry.metrics import Metrics
from webhook.admission import handlers
from webhook.admission.decision_cache import Decisions, empty_decisions

ROOT = Path(__file__).parents[3]
URL = "https://berth.example.com"
MISMATCH = json.loads((ROOT / "tests" / "reviews" / "pods-create-mismatch.json").read_text())
TRAIN = json.loads((ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_text())
METRICS = Metrics("test")


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_sink", lambda line: None)


def snapshot(url: str = URL) -> Snapshot:
    sources = Sources(policies=(str(ROOT / "policies" / "library"),), platforms=("karpenter-aws",), console_url=url)
    return load_sources(sources).snapshot


def owned(review: dict[str, Any], name: str, pod: str = "p", kind: str = "Job") -> bytes:
    changed = copy.deepcopy(review)
    owner = {"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": "u", "controller": True}
    changed["request"]["object"]["metadata"] |= {"ownerReferences": [owner], "name": pod}
    return orjson.dumps(changed)


def answered(body: bytes, at: Snapshot, phase: Any = "mutate", decisions: Decisions | None = None) -> dict[str, Any]:
    _, text = handlers.handle_review(phase, body, at, METRICS, decisions)
    response: dict[str, Any] = json.loads(text)["response"]
    return response


def test_a_denial_ends_with_where_to_look() -> None:
    """After everything that it said before; code, fact and fix stay first."""
    body = owned(MISMATCH, "train")
    before, after = (answered(body, snapshot(url))["status"]["message"] for url in ("", f"{URL}/"))
    namespace = MISMATCH["request"]["namespace"]
    assert after == f"{before} See {URL}/job?workload={namespace}/Job/train"
    bare = answered(orjson.dumps(MISMATCH), snapshot())["status"]["message"]
    assert bare.endswith(f"See {URL}/job?code=BERTH-101")


def test_warnings_are_followed_by_where_to_look() -> None:
    """As a line of its own within the limits of the API server; an answer without warnings has none."""
    body = owned(TRAIN, "train")
    before, after = (answered(body, snapshot(url)).get("warnings", []) for url in ("", URL))
    assert before
    assert after == [*before, f"See {URL}/job?workload={TRAIN['request']['namespace']}/Job/train"]
    assert max(map(len, after)) <= WARNING_LENGTH
    assert sum(map(len, after)) <= WARNINGS_TOTAL
    plain = json.loads((ROOT / "tests" / "reviews" / "pods-create-web.json").read_text())
    assert "warnings" not in answered(owned(plain, "web"), snapshot())


@pytest.mark.parametrize("phase", ["mutate", "validate"])
def test_pods_of_one_workload_are_decided_once_and_of_two_each(phase: Any) -> None:
    """A kept decision names the workload that it was made for."""
    at, decisions = snapshot(), empty_decisions()
    messages = [
        answered(owned(MISMATCH, name, pod), at, phase, decisions)["status"]["message"]
        for name, pod in (("a", "a-0"), ("a", "a-1"), ("b", "b-0"))
    ]
    assert messages[0] == messages[1]
    assert (messages[0].endswith("/Job/a"), messages[2].endswith("/Job/b")) == (True, True)
    assert len(decisions) == 2
    without = empty_decisions()
    for name in ("a", "b"):
        answered(owned(MISMATCH, name), replace(at, console_url=""), phase, without)
    assert len(without) == 1


@pytest.mark.parametrize("url", ["berth.example.com", "https://x/?q=1", "https://" + "x" * 200])
def test_an_address_that_is_none_is_denied(url: str) -> None:
    """With what is wanted."""
    with pytest.raises(SourcesError, match="--console-url: must be an address of at most 100 characters"):
        snapshot(url)
