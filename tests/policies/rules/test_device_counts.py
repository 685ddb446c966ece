"""What a count may be, beside the numbers that a policy allows."""

from __future__ import annotations

import pytest

from kube.pod import CountInterval
from policies.offers.merging import TightestLimit
from policies.planning.requirements import demands
from policies.pods.actors import PLAIN
from policies.rules.device_counts import CountLimits, _all_allowed, merge_limits
from tests.support.cases import golden
from tests.support.snapshots import build


@pytest.mark.parametrize(
    ("least", "most", "allowed"),
    [(1, 1, True), (1, 2, True), (0, 2, True), (2, 4, False), (4, 4, True), (0, 10**70, False), (10**70, 10**70, False)],
)
def test_every_number_that_it_may_be_is_among_the_allowed(least: int, most: int, *, allowed: bool) -> None:
    """However many digits an author writes."""
    assert _all_allowed(CountInterval(least, most), most, (1, 2, 4, 8)) is allowed


def limits_of(*limits: dict[str, object]) -> CountLimits:
    catalog = golden.catalog_with()
    names = "abc"[: len(limits)]
    objects = [
        {"kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": {"mode": "Enforce", "require": {"gpusPerPod": limit}}}
        for name, limit in zip(names, limits, strict=True)
    ]
    facts = build(golden.policies_of(objects, catalog), catalog).facts_for("ml")
    return demands(facts.snapshot, facts.policies, facts.policies, None, PLAIN)[0].merged(merge_limits)


def test_counts_meet() -> None:
    """The smallest maximum, and what every list allows."""
    limits = limits_of({"max": 8, "oneOf": [1, 2, 4]}, {"oneOf": [2, 4, 8]})
    assert limits.most == TightestLimit(8, ("ClusterGPUPolicy/a",))
    assert limits.one_of == (2, 4)
    assert limits_of().one_of is None
