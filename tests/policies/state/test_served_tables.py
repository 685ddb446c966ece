"""Tables with the names of DeviceClasses, as classes come and go."""

from __future__ import annotations

from catalog.resources import OF_A_CLASS
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_requests import DeviceClass
from policies.offers.table import Table
from policies.state.compilation import tables_of
from policies.state.served_tables import ServedTables
from tests.support.cases.golden import catalog_with

CATALOG = catalog_with()
WHOLE = DeviceClass("gpu.nvidia.com", "example.com/gpu", (("gpu.nvidia.com/type", "gpu"),))
SLICES = DeviceClass("gpu.nvidia.com", "example.com/slice", (("gpu.nvidia.com/type", "mig"),))


def plain() -> dict[str, Table]:
    return dict(tables_of(CATALOG, ("karpenter-aws", "gfd"), "mixed", frozenset(), (), frozenset()))


def facts(**classes: DeviceClass) -> ClusterFacts:
    return ClusterFacts(device_classes=classes)


def test_whole_gpus_of_the_vendor_are_offered_by_the_name() -> None:
    """With as many as the machine has, and none that pods share; other names are as they were."""
    tables, _ = ServedTables(CATALOG).update(before := plain(), facts(whole=WHOLE))
    for name, table in tables.items():
        rows = table.of_resource("example.com/gpu")
        assert rows == before[name].by_vendor["nvidia"] & before[name].by_sharing["Exclusive"] == table.of_resource(f"{OF_A_CLASS}whole")
        assert table.of_resource("nvidia.com/gpu") == before[name].of_resource("nvidia.com/gpu")
        assert not before[name].served
    machines = tables["karpenter-aws"]
    known = machines.enough("example.com/gpu", 16) & ~machines.unknown
    assert 0 < known < machines.of_resource("example.com/gpu")
    assert {offer.host.count for offer in machines.offers_in(known)} == {16}


def test_slices_that_no_table_has_are_cut_by_hand() -> None:
    """They may be on any machine whose GPUs can be cut, how many nobody knows; a table that has slices offers only these."""
    tables, _ = ServedTables(CATALOG).update({"karpenter-aws": plain()["karpenter-aws"]}, facts(cut=SLICES))
    table = tables["karpenter-aws"]
    models = {offer.host.gpu.model for offer in table.offers_in(table.enough("example.com/slice", 40)) if offer.host.gpu is not None}
    assert models >= {"A100-40GB", "H100-80GB"}
    assert not models & {"T4", "L4"}
    assert "example.com/slice" not in table.listed
    both, _ = ServedTables(CATALOG).update(plain(), facts(cut=SLICES))
    assert "example.com/slice" in both["gfd"].listed
    assert both["karpenter-aws"].of_resource("example.com/slice") == table.of_resource("example.com/slice")


def test_the_same_tables_are_returned_until_classes_or_tables_change() -> None:
    """A change of other facts makes nothing anew; a class that is gone takes its name with it."""
    follow, before = ServedTables(CATALOG), plain()
    first, _ = follow.update(before, facts(whole=WHOLE))
    assert follow.update(before, ClusterFacts(device_classes={"whole": WHOLE}, namespaces={"a": {}}))[0] is first
    assert all("example.com/gpu" not in table.served for table in follow.update(before, facts())[0].values())
    assert follow.update(plain(), facts())[0] is not first
