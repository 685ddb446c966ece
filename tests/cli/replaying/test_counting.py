"""Entries of any shape: whoever can write a recording can write anything into it, and a replay ends with counts."""

from __future__ import annotations

import copy
from pathlib import Path
from random import Random
from typing import Any

import pytest

from catalog.prices import prices
from cli.replaying.comparison import Comparer, Comparison
from cli.replaying.counting import count_piece
from cli.replaying.total import Total
from documents.recordings.pieces import Piece, pieces
from sources.sources import Sources, load_sources
from tests.cli.replaying.events import decided, event, lines, of_job, pod
from tests.support.counts import count

ODD: tuple[Any, ...] = (None, True, 0, -1, 2**64, 1.5, "", "x", "\ud7ff", "1e400", [], {}, [None], [[]], {"": None}, {"a": {"b": ["c"]}})


@pytest.fixture(scope="module")
def comparer() -> Comparer:
    snapshot = load_sources(Sources(policies=("policies/library",), platforms=("karpenter-aws",))).snapshot
    return Comparer(Comparison(now=snapshot, then=None, prices=prices(snapshot.catalog), diffs=True))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def spoilt(random: Random, value: Any) -> Any:
    """With odd values in some places, and some texts of JSON cut."""
    value = copy.deepcopy(value)
    for _ in range(random.randint(1, 3)):
        *before, last = random.choice([place for place in places(value) if place])
        here = value
        for key in before:
            here = here[key]
        old = here[last]
        here[last] = (
            old[: random.randrange(len(old))]
            if isinstance(old, str) and old and random.random() < 0.4
            else copy.deepcopy(random.choice(ODD))
        )
    return value


def test_no_entry_ends_a_replay(comparer: Comparer, tmp_path: Path) -> None:
    """Events and reviews with odd values in any place, each of which is counted once, and whose result can be shown."""
    snapshot = comparer.chosen.now
    made = of_job("train-0", "train", gpus="8", nodeSelector={"a": "b"}, affinity={"nodeAffinity": {}}, tolerations=[{"key": "x"}])
    whole = event(made, annotations=decided(made, snapshot))
    stored = {**pod(), "spec": {**made["spec"], "tolerations": [{"key": "y"}]}}
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "namespace": "team",
            "operation": "UPDATE",
            "resource": {"resource": "pods"},
            "object": made,
            "oldObject": made,
        },
        "response": {"allowed": True, "patch": "W10=", "auditAnnotations": {"would": "[]"}},
    }
    good = (whole, {**whole, "level": "RequestResponse", "responseObject": stored}, {**whole, "verb": "patch"}, review)
    number = count(400, 40_000)
    file = tmp_path / "odd.log"
    random = Random(7)
    file.write_text("".join(lines(spoilt(random, random.choice(good) | {"auditID": f"id-{each}"})) for each in range(number)))
    total = Total()
    for piece in pieces([str(file)], 200_000):
        assert isinstance(piece, Piece)
        total.add(piece, count_piece(piece, comparer))
    assert total.tally.all.pods + sum(total.passed.values()) + len(total.reports) == number
    assert total.tally.all.pods > number / 10
    assert total.errors == []
