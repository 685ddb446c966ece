"""Offers: how kube-scheduler reads an expression, what a table holds, and which hosts a machine field admits."""

from __future__ import annotations

import pytest

from policies.offers.table import Table
from tests.support.cases import golden
from tests.support.snapshots import build

CATALOG = golden.catalog_with()
TABLES = build(golden.policies_of([], CATALOG), CATALOG, platforms=tuple(CATALOG.platforms)).tables


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_the_groups_of_a_table_cover_it_once(table: Table) -> None:
    """Every row has one resource name, vendor, capacity and sharing; no name where no machine of the vendor is known."""
    unnamed = table.where(not offer.resource for offer in table.offers)
    for group in (table.by_resource, table.by_vendor, table.by_capacity, table.by_sharing):
        union = unnamed if group is table.by_resource else 0
        for rows in group.values():
            assert rows & union == 0
            union |= rows
        assert union == table.all


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_row_has_the_platforms_anchor(table: Table) -> None:
    """On clouds: it is what holds a term to the platform."""
    if table.platform.cloud is not None:
        assert table.select(table.platform.anchor, "Exists", ())[0] == table.all


@pytest.mark.parametrize("strategy", ["single", "mixed"])
def test_no_row_has_a_label_that_is_longer_than_labels_may_be(strategy: str) -> None:
    """Slices of an RTX PRO 6000 whose product label would have 81 characters are not offered."""
    table = build(golden.policies_of([], CATALOG), CATALOG, platforms=("gfd",), mig_strategy=strategy).tables["gfd"]
    values = {value for offer in table.offers for possible in offer.labels.values() for value in possible}
    assert max(len(value) for value in values if value is not None) <= 63


def test_a_key_that_no_table_has_selects_everything() -> None:
    """Zone and own labels say nothing about GPUs."""
    table = TABLES["karpenter-aws"]
    assert table.select("topology.kubernetes.io/zone", "In", ("a",)) == (table.all, False)


def test_a_value_that_no_table_knows_is_undecided() -> None:
    """The GPU may be new: all rows. A value of another platform is known, and not here."""
    table = TABLES["karpenter-aws"]
    assert table.select("node.kubernetes.io/instance-type", "In", ("p9.metal",)) == (table.all, True)
    assert table.select("node.kubernetes.io/instance-type", "In", ("a2-highgpu-1g",)) == (0, False)


def test_the_memo_of_a_table_is_bounded() -> None:
    """A hostile author of many values, or of very many in each expression, fills no memory, and still gets an answer."""
    table = build(golden.policies_of([], CATALOG), CATALOG, platforms=("karpenter-aws",)).tables["karpenter-aws"]
    for number in range(40):
        values = ("spot", *(f"{number}-{i}" for i in range(2_000)))
        assert table.select("karpenter.sh/capacity-type", "NotIn", values)[0] == table.all & ~table.by_capacity["spot"]
    assert 0 < len(table.memo) < 40
    for value in ("spot", "on-demand", "reserved"):
        assert table.select("karpenter.sh/capacity-type", "In", (value,))[0] == table.by_capacity[value]


def test_what_is_remembered_of_sets_of_resources_is_bounded() -> None:
    """Of the names in a table authors can make more sets than fit in any memory."""
    table = build(golden.policies_of([], CATALOG), CATALOG, platforms=("karpenter-aws",)).tables["karpenter-aws"]
    for number in range(200):
        assert table.of_vendors(("nvidia.com/gpu", *("nvidia.com/mig-1g.5gb",) * (number + 2_000))) == table.by_vendor["nvidia"]
    assert 0 < len(table.vendors) < 250


@pytest.mark.parametrize(
    ("resource", "count", "some"),
    [
        ("nvidia.com/gpu", 8, True),
        ("nvidia.com/gpu", None, True),
        ("nvidia.com/gpu", 0, True),
        ("example.com/none", 1, True),
        ("amd.com/gpu", 10**9, True),
    ],
)
def test_enough_devices(resource: str, count: int | None, *, some: bool) -> None:
    """No count and zero ask for any row; the unknown model has as many as are asked for; a name from nowhere may be any unknown model's."""
    assert bool(TABLES["karpenter-aws"].enough(resource, count)) is some


def test_a_slice_fits_as_often_as_the_machine_has_room() -> None:
    """a2-highgpu-1g has one A100-40GB: seven 1g.5gb, not eight."""
    table = TABLES["eks-nodegroup"]
    of_type = table.select("node.kubernetes.io/instance-type", "In", ("p4d.24xlarge",))[0]
    assert table.enough("nvidia.com/mig-1g.5gb", 56) & of_type
    assert not table.enough("nvidia.com/mig-1g.5gb", 57) & of_type


def test_nobody_knows_how_many_there_are_of_a_slice_cut_by_hand() -> None:
    """No table of Karpenter's lists slices: twenty may be on one machine with eight GPUs, and none where the GPU has no such slice."""
    table = build(golden.policies_of([], CATALOG), CATALOG, platforms=("karpenter-aws",)).tables["karpenter-aws"]
    of_family = [table.select("karpenter.k8s.aws/instance-family", "In", (family,))[0] for family in ("p4d", "g4dn")]
    found = [bool(table.enough("nvidia.com/mig-1g.5gb", 20) & rows) for rows in of_family]
    assert found == [True, False]
