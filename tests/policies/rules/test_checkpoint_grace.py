"""Checkpoint grace: what the golden cases do not reach."""

from __future__ import annotations

from typing import Any

import pytest

from policies.engine import evaluate
from policies.facts.cluster_facts import ClusterFacts
from policies.request import Request
from tests.support.cases import golden
from tests.support.snapshots import build

CATALOG = golden.catalog_with()
POLICY = {"kind": "ClusterGPUPolicy", "metadata": {"name": "x"}, "spec": {"mode": "Enforce", "default": {"gracePeriod": "10m"}}}


def written(pools: dict[str, int | None] | None = None, floor: str | None = None, **spec: Any) -> object:
    """The grace that is written, None for none."""
    cluster = ClusterFacts(nodepool_grace=pools or {})
    required = {"mode": "Enforce", "require": {"gracePeriod": {"min": floor}}}
    policies = [POLICY, *([{**POLICY, "metadata": {"name": "y"}, "spec": required}] if floor else [])]
    facts = build(golden.policies_of(policies, CATALOG), CATALOG, platforms=("karpenter-aws",), cluster=cluster).facts_for("ml")
    pod = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}], **spec}}
    found = [e.value for e in evaluate(Request(namespace="ml", pod=pod), facts).edits if e.path[-1] == "terminationGracePeriodSeconds"]
    return found[0] if found else None


@pytest.mark.parametrize(
    ("former", "after"),
    [(None, 600), (30, 600), (0, None), (29, None), (31, None), (600, None), (601, None), (-1, None), (True, 600), ("30", 600)],
    ids=repr,
)
def test_a_default_raises_thirty_alone(former: object, after: int | None) -> None:
    """Any other number was written by somebody; what is no number counts as not written, as 30 may be."""
    assert written(terminationGracePeriodSeconds=former) == after


@pytest.mark.parametrize(
    ("former", "after"),
    [(None, 900), (30, 900), (0, 900), (31, 900), (899, 900), (900, None), (901, None), (-1, 900)],
    ids=repr,
)
def test_a_floor_raises_whatever_is_shorter(former: object, after: int | None) -> None:
    """Also where a default would have raised it less far."""
    assert written(floor="15m", terminationGracePeriodSeconds=former) == after


def test_of_a_floor_and_a_default_the_longer_is_written() -> None:
    """To 30, which may be nobody's; what somebody wrote is raised to the floor alone."""
    assert written(floor="5m") == 600
    assert written(floor="5m", terminationGracePeriodSeconds=60) == 300
    assert written(floor="30s", terminationGracePeriodSeconds=10) == 31
    assert written(floor="20s", terminationGracePeriodSeconds=10) == 20


@pytest.mark.parametrize(
    ("pools", "after"),
    [({}, 600), ({"a": None}, 600), ({"a": 3600}, 600), ({"a": 300, "b": 60}, 60), ({"a": 30}, None), ({"a": 0}, None)],
    ids=str,
)
def test_the_shortest_nodepool_counts_where_none_is_named(pools: dict[str, int | None], after: int | None) -> None:
    """The pod may land on any of them."""
    assert written(pools) == after


def test_a_named_nodepool_that_is_not_known_leaves_all_in_question() -> None:
    """Its own grace may be any."""
    assert written({"a": 60}, nodeSelector={"karpenter.sh/nodepool": "new"}) == 60
    assert written({"a": 60, "b": None}, nodeSelector={"karpenter.sh/nodepool": "b"}) == 600
