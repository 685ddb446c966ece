"""Nobody who edits one namespace walks round a guardrail: every way that was found, of every class, and 0 get through.

Each way has an honest twin, which is admitted. They are tried side by side on one control plane, with one Berth that follows it:
all in ``make prove``, and a fifth of those of each class and guardrail in ``make test``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from zlib import crc32

import pytest

from tests.e2e.bypasses.attempts import (
    actors,
    amounts,
    claims,
    classes,
    devices,
    guaranteed,
    names,
    places,
    queues,
    reviews,
    updates,
    words,
)
from tests.e2e.bypasses.guardrails import BY_NAME
from tests.e2e.bypasses.way import Way
from tests.e2e.bypasses.world import Result, run, world
from tests.support.counts import count
from tests.testcluster.controlplane.cluster import Cluster

CLASSES = (reviews, amounts, devices, claims, classes, words, places, actors, updates, queues, names, guaranteed)
WAYS: dict[str, Way] = {f"{one.__name__.rpartition('.')[2]}: {way.name}, {way.guard}": way for one in CLASSES for way in one.WAYS}


def every(step: int) -> dict[str, Way]:
    """Return one of each ``step`` ways of a class against a guardrail, and at least one. The order is by checksum: as they are written,
    every fifth would be the same variant of each."""

    def group(name: str) -> tuple[str, str]:
        return name.partition(":")[0], WAYS[name].guard

    names = sorted(WAYS, key=lambda name: (*group(name), crc32(name.encode())))
    return {name: WAYS[name] for _, members in groupby(names, group) for name in list(members)[::step]}


TRIED = every(count(5, 1))


@pytest.fixture(scope="module")
def results(cluster: Cluster) -> Iterator[Mapping[str, Result]]:
    """Of all that are tried."""
    with world(cluster) as (tenants, _):
        found = dict(zip(TRIED, run(tenants, list(TRIED.values())), strict=True))
        yield {**found, FLOOD: run(tenants, [claims.FLOOD])[0]}


FLOOD = "claims: a flood"


@pytest.mark.parametrize("name", [*TRIED, FLOOD])
def test_a_way_is_shut_and_its_honest_twin_is_open(results: Mapping[str, Result], name: str) -> None:
    """The attacker is denied by Berth for the right reason; who does the same within the guardrail is not."""
    found = results[name]
    codes = found.way.codes or BY_NAME[found.way.guard].codes
    assert (found.attack.held_by(codes), found.attack.shown) == (True, found.attack.shown)
    assert (found.twin.passed, found.twin.message) == (True, found.twin.message)
