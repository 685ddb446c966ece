"""No body up to the cap costs what some thousand everyday pods cost, whatever is large in it: the loop that judges it answers everybody
else too.
"""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path
from random import Random

import pytest

from analysis.reviews.review import ReviewError
from policies.request import Phase
from server.limits import Limits
from telemetry import log
from tests.fuzz import donors, oracle
from tests.fuzz.worlds import fresh
from tests.policies.test_scaling import SHAPES
from tests.support.counts import PROVE, only_in_prove
from webhook.admission import handlers

MOST = 3_000
"""times the CPU of an everyday pod on the same machine, be it slow, or slowed by coverage. The dearest takes 850; what grows with a square
takes 50,000. An everyday pod that is judged for the first time takes a third of a millisecond of an idle core."""
EVERYDAY = (Path(__file__).parent.parent / "reviews" / "pods-create-train-llama.json").read_bytes()
PARTS = (1, 4, 16, 64)
"""of the cap: where a bound denies the largest, the worst is just below it"""
WORLDS = (0, 7) if PROVE else (7,)
"""the library alone, and twelve policies in every mode"""


def body(shape: str, size: int) -> bytes:
    """A review of a pod of this shape, about so many bytes long."""
    each = (len(_review(shape, 2000)) - len(_review(shape, 1000))) / 1000
    return _review(shape, int(size / each * 0.9))


def _review(shape: str, number: int) -> bytes:
    review = donors.review_of(Random(0), SHAPES[shape](number))
    review["request"] |= {"operation": "CREATE", "oldObject": None}
    return json.dumps(review, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("shape", "part"),
    [
        pytest.param(shape, part, marks=() if part == 16 or (part == 1 and not number % 3) else only_in_prove)
        for number, shape in enumerate(SHAPES)
        for part in PARTS
    ],
)
def test_no_body_up_to_the_cap_costs_too_much(shape: str, part: int) -> None:
    """In both phases, judged for the first time. ``make test`` has every shape, and every third at the cap itself."""
    log.to(lambda line: None)
    large = body(shape, Limits().body // part)
    for world in WORLDS:
        for phase in oracle.PHASES:
            assert cost(world, phase, large) < MOST * everyday(world, phase), (world, phase, len(large))


@cache
def everyday(world: int, phase: Phase) -> float:
    """Seconds of CPU for a pod as they all are: the least of some."""
    return min(cost(world, phase, EVERYDAY) for _ in range(5))


def cost(world: int, phase: Phase, body: bytes) -> float:
    """Seconds of CPU. An answer is as good as a denial to read."""
    snapshot = fresh(world)
    started = time.thread_time()
    try:
        handlers.handle_review(phase, body, snapshot, oracle.METRICS)
    except ReviewError as error:
        assert error.status < 500  # noqa: PT017
    return time.thread_time() - started
