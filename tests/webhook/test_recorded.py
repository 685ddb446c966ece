"""Every recorded review gets the same answer from the server and from ``berth try -o review``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.main import main
from tests.webhook.asgi import call
from webhook.app import make_app
from webhook.sources import Sources, load

REVIEWS = Path(__file__).parent.parent / "reviews"
LIBRARY = str(Path(__file__).parent.parent.parent / "policies" / "library")
OPTIONS = ["--policies", LIBRARY, "--platforms", "karpenter-aws"]
APP = make_app(load(Sources(policies=(LIBRARY,), platforms=("karpenter-aws",))).snapshot, body_limit=2**20)


@pytest.mark.parametrize("review", sorted(REVIEWS.glob("pods-*.json")), ids=lambda path: path.stem)
def test_try_answers_as_the_server_does(review: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Byte for byte the same JSON: what is tried is what is served."""
    served = call(APP, "/mutate", [review.read_bytes()])
    assert served.status == 200
    capsys.readouterr()
    main(["try", *OPTIONS, "-o", "review", str(review)])
    assert json.loads(capsys.readouterr().out) == json.loads(served.body)


@pytest.mark.parametrize("review", sorted(REVIEWS.glob("deployments-*.json")), ids=lambda path: path.stem)
def test_a_review_of_a_workload_is_not_for_the_pod_paths(review: Path) -> None:
    """/mutate and /validate judge pods; a misrouted workload is a 400 that says so."""
    answer = call(APP, "/mutate", [review.read_bytes()])
    assert answer.status == 400
    assert b"send only pods here" in answer.body
