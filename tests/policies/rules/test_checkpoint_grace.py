"""Checkpoint grace: what the golden cases do not reach."""

from __future__ import annotations

from typing import Any

import pytest

from policies.cluster_facts import ClusterFacts
from policies.engine import evaluate
from policies.request import Request
from policies.snapshot import build
from tests import golden

CATALOG = golden.catalog_with()
POLICY = {"kind": "ClusterGPUPolicy", "metadata": {"name": "x"}, "spec": {"mode": "Enforce", "default": {"gracePeriod": "10m"}}}


def written(pools: dict[str, int | None] | None = None, **spec: Any) -> object:
    """The grace that is written, None for none."""
    cluster = ClusterFacts(nodepool_grace=pools or {})
    facts = build(golden.policies_of([POLICY], CATALOG), CATALOG, platforms=("karpenter-aws",), cluster=cluster).facts_for("ml")
    pod = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}], **spec}}
    found = [e.value for e in evaluate(Request(namespace="ml", pod=pod), facts).edits if e.path[-1] == "terminationGracePeriodSeconds"]
    return found[0] if found else None


@pytest.mark.parametrize(
    ("former", "after"),
    [(None, 600), (30, 600), (0, 600), (599, 600), (600, None), (601, None), (-1, None), (True, 600), ("30", 600)],
    ids=repr,
)
def test_grace_is_raised_and_never_lowered(former: object, after: int | None) -> None:
    """A negative one is the API server's business; what is no number counts as not written."""
    assert written(terminationGracePeriodSeconds=former) == after


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
