"""Nobody who edits one namespace walks round a guardrail: every way that was found, of every class, and 0 get through.

Each way has an honest twin, which is admitted. All are tried side by side on one control plane, with one Berth that follows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.e2e.bypasses.attempts import actors, amounts, claims, devices, guaranteed, names, places, reviews, tolerations, updates, words
from tests.e2e.bypasses.guardrails import BY_NAME
from tests.e2e.bypasses.way import Way
from tests.e2e.bypasses.world import Result, run, world
from tests.testcluster.controlplane.cluster import Cluster

CLASSES = (reviews, amounts, devices, claims, words, places, actors, updates, names, guaranteed, tolerations)
WAYS: dict[str, Way] = {f"{one.__name__.rpartition('.')[2]}: {way.name}, {way.guard}": way for one in CLASSES for way in one.WAYS}


@pytest.fixture(scope="module")
def results(cluster: Cluster) -> Iterator[Mapping[str, Result]]:
    """All of them."""
    with world(cluster) as (tenants, _):
        yield dict(zip(WAYS, run(tenants, list(WAYS.values())), strict=True))


@pytest.mark.parametrize("name", WAYS)
def test_a_way_is_shut_and_its_honest_twin_is_open(results: Mapping[str, Result], name: str) -> None:
    """The attacker is refused by Berth for the right reason; who does the same within the guardrail is not."""
    found = results[name]
    codes = found.way.codes or BY_NAME[found.way.guard].codes
    assert (found.attack.held_by(codes), found.attack.shown) == (True, found.attack.shown)
    assert (found.twin.passed, found.twin.message) == (True, found.twin.message)
