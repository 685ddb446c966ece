"""NodePools, as far as they tell what machines they make."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policies.placement.pools import PoolReader
from tests.support.generators.random_worlds import catalog
from tests.support.scheduling.node_pools import AWS, node_pool, of_families, reader


def test_labels_and_requirements_are_one() -> None:
    """Those of the template, those that Karpenter adds, and older names of keys."""
    pool = reader().read(
        node_pool(
            "gpu", requirements=[{"key": "beta.kubernetes.io/arch", "operator": "In", "values": ["amd64"]}], labels={"team": "ml"}, weight=3
        )
    )
    assert pool is not None
    assert pool.requirements["kubernetes.io/arch"].values == {"amd64"}
    assert pool.requirements["team"].values == {"ml"}
    assert pool.requirements["karpenter.sh/nodepool"].values == {"gpu"}
    assert pool.requirements["karpenter.k8s.aws/ec2nodeclass"].values == {"default"}
    assert (pool.weight, pool.platform, pool.static, pool.ready) == (3, AWS, False, True)


def test_what_cannot_be_read_is_not_judged() -> None:
    """An operator of tomorrow leaves its label open."""
    pool = reader().read(node_pool("gpu", requirements=[{"key": "zone", "operator": "Near", "values": ["a"]}]))
    assert pool is not None
    assert pool.unread == {"zone"}
    assert pool.knows("zone")
    assert not pool.knows("team")
    assert pool.knows("topology.k8s.aws/zone-id")


def test_a_family_that_nobody_knows_adds_unknown_machines_alone() -> None:
    """Not all of those that are known."""
    one, both = (reader().read(node_pool("gpu", requirements=[of_families("p4d", *more)])) for more in ((), ("p99",)))
    assert one is not None
    assert both is not None
    assert both.table is not None
    assert one.rows & ~both.table.unknown == both.rows & ~both.table.unknown
    assert both.rows == one.rows | both.table.unknown


def test_limits_are_less_what_there_is() -> None:
    """None without a limit, and none where it is no quantity."""
    pool = reader().read(node_pool("gpu", limits={"nvidia.com/gpu": 8, "cpu": "x"}, resources={"nvidia.com/gpu": "3"}))
    assert pool is not None
    assert (pool.left("nvidia.com/gpu"), pool.left("cpu")) == (Fraction(5), None)


def test_a_pool_that_takes_no_part() -> None:
    """A fixed number of nodes, one that goes, one that is not ready."""
    static = reader().read(node_pool("a", replicas=2))
    gone = node_pool("b")
    gone["metadata"]["deletionTimestamp"] = "2026-11-23T12:00:00Z"
    waits = {**node_pool("c"), "status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    assert static is not None
    assert static.static
    assert [pool.ready for one in (gone, waits) if (pool := reader().read(one))] == [False, False]


@given(
    st.dictionaries(st.sampled_from(["spec", "status", "template", "limits"]), st.recursive(st.none() | st.text(), st.lists, max_leaves=5))
)
def test_no_content_makes_it_raise(content: dict[str, Any]) -> None:
    """A NodePool may have been written past its definition."""
    assert PoolReader(catalog(), {}).read({"metadata": {"name": "x"}, **content}) is not None
    assert PoolReader(catalog(), {}).read(content) is None
