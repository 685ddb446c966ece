"""No body up to the cap takes a second, whatever is large in it: the loop that judges it answers everybody else too."""

from __future__ import annotations

import json
import sys
import time
from random import Random

import pytest

from tests.counts import PROVE
from tests.fuzz import donors, oracle
from tests.fuzz.worlds import fresh
from tests.policies.test_scaling import SHAPES
from webhook import judged, logs
from webhook.limits import Limits
from webhook.review import ReviewError

HANG = 1.0 if sys.gettrace() is None else 8.0
"""Seconds of CPU. Under coverage, as in ``make test``, a line costs several times as much: there it finds what grows with a square."""
PARTS = (1, 4, 16, 64) if PROVE else (1, 16)
"""of the cap: where a bound refuses the largest, the worst is just below it"""
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


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_no_body_up_to_the_cap_takes_a_second(shape: str, part: int) -> None:
    """In both phases, judged for the first time."""
    logs.to(lambda line: None)
    large = body(shape, Limits().body // part)
    for world in WORLDS:
        snapshot = fresh(world)
        for phase in oracle.PHASES:
            started = time.thread_time()
            try:
                judged.pod(phase, large, snapshot, oracle.METRICS)
            except ReviewError as error:
                assert error.status < 500  # noqa: PT017 - an answer is as good as a refusal to read
            assert time.thread_time() - started < HANG, (world, phase, len(large))
