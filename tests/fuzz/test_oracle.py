"""The oracle sees what it looks for: each law is broken on purpose."""

from __future__ import annotations

import base64
import json
from typing import Any

import orjson
import pytest

from analysis.reviews.review import ReviewError
from policies.request import Phase
from policies.state.snapshot import Snapshot
from telemetry.metrics import Metrics
from tests.fuzz import donors, oracle
from tests.fuzz.worlds import snapshots
from webhook.admission import handlers

Raw = dict[str, Any]
BODY = next(body for body in donors.seeds() if b"train-llama" in body)
ADD = {"op": "add", "path": "/metadata/x", "value": "y"}
NOTHING = {"op": "test", "path": "/kind", "value": "Pod"}


def answering(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """From now on the answer to a pod has these fields instead."""
    real = handlers.handle_review

    def changed(phase: Phase, body: bytes, snapshot: Snapshot, metrics: Metrics) -> tuple[str, bytes]:
        decision, sent = real(phase, body, snapshot, metrics)
        if phase == "validate" and "patch" in changes:
            return decision, sent
        answer = json.loads(sent)
        answer["response"] = {key: value for key, value in {**answer["response"], **changes}.items() if value is not None}
        return decision, orjson.dumps(answer)

    monkeypatch.setattr(handlers, "handle_review", changed)


def encoded(*operations: Raw) -> str:
    return base64.b64encode(json.dumps(operations).encode()).decode()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"uid": "another"}, "another review's"),
        ({"patchType": None}, "come together"),
        ({"patch": encoded(), "patchType": "JSONPatch"}, "an empty patch"),
        ({"patch": encoded({"op": "test", "path": "/spec/nodeName", "value": "no"}), "patchType": "JSONPatch"}, "no"),
        ({"patch": encoded(NOTHING), "patchType": "JSONPatch"}, "changes nothing"),
        ({"patch": encoded(ADD), "patchType": "JSONPatch"}, "a second mutate"),
        ({"warnings": ["x" * 257]}, "xxx"),
        ({"warnings": ["two\nlines"]}, "lines"),
        ({"warnings": [f"{i:0200}" for i in range(40)]}, "more warnings"),
        ({"auditAnnotations": {"no/name": "x"}}, "no/name"),
        ({"allowed": False, "status": {"code": 500, "message": ""}}, "neither allowed nor denied"),
    ],
)
def test_a_wrong_answer_is_seen(changes: Raw, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the API server would not take, or ``docs/laws.md`` forbids."""
    answering(monkeypatch, **changes)
    with pytest.raises(Exception, match=why):
        oracle.check_under(BODY, snapshots()[0], unaided=False)


def test_an_answer_that_was_kept_for_another_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judged again on the whole pod, by the rules alone."""
    answering(monkeypatch, warnings=["of another pod"])
    with pytest.raises(AssertionError, match="what is kept"):
        oracle.check_under(BODY, snapshots()[0])


@pytest.mark.parametrize("error", [ReviewError(500, "no"), ReviewError(400, ""), ValueError("no")])
def test_a_wrong_denial_to_read_is_seen(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only 400, and with a sentence."""

    def fails(*_: object) -> tuple[str, bytes]:
        raise error

    monkeypatch.setattr(handlers, "handle_review", fails)
    with pytest.raises((AssertionError, ValueError)):
        oracle.check_under(BODY, snapshots()[0])


@pytest.mark.parametrize("line", ["é\n".encode(), b'{"a":"\x1b"}\n', b'{"a":1}{\n', b"[]\n"])
def test_a_wrong_line_of_the_log_is_seen(line: bytes) -> None:
    """Not ASCII, a control character, no JSON, no object."""
    with pytest.raises((AssertionError, ValueError)):
        oracle._check_line(line)
