"""Reviews that are made to hold the event loop are decided, each by the policies or with a reason. How long they hold it: bench holds."""

from __future__ import annotations

import base64

import orjson
import pytest

from policies.state.snapshot import Snapshot
from sources.sources import Sources, load_sources
from telemetry.metrics import Metrics
from tests.support.cases import hostile_reviews
from tests.support.counts import count
from webhook.admission.app import ROUTES
from webhook.admission.decision_cache import empty_decisions

EVERY = count(8, 1)
"""kinds of pods of which one is tried"""


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Every platform, and policies of the namespace's owner, who helps."""
    return load_sources(Sources(policies=(str(hostile_reviews.policies(tmp_path_factory.mktemp("hostile"))),))).snapshot


def test_each_is_answered(snapshot: Snapshot) -> None:
    """As an AdmissionReview with its uid; a pod that is denied is told why."""
    metrics = Metrics("test")
    for name, path, body in hostile_reviews.reviews(EVERY):
        answer = ROUTES[f"/{path}".encode()].handle(body, snapshot, metrics, empty_decisions())[1]
        response = orjson.loads(answer)["response"]
        assert response["uid"] == "0df2-a", name
        assert response["allowed"] or response["status"]["message"], name


def test_the_everyday_pod_meets_the_policies(snapshot: Snapshot) -> None:
    """Otherwise what is hostile would meet none either."""
    answer = ROUTES[b"/mutate"].handle(hostile_reviews.everyday(), snapshot, Metrics("test"), empty_decisions())[1]
    response = orjson.loads(answer)["response"]
    assert response["allowed"]
    assert b'"key":"pool"' in base64.b64decode(response["patch"])
