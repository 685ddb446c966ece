"""Snapshots: which policies a namespace sees, in which mode, and what is compiled once."""

from __future__ import annotations

from typing import Any

import pytest

from catalog import LONGEST_NAME, Resource
from catalog.resources import OF_A_CLASS
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_requests import DeviceClass
from policies.offers.build import tables_of
from policies.offers.table import Table
from policies.state.snapshot import Lookalikes, ServedTables, Snapshot
from policies.verdict import Mode
from tests.support import snapshots
from tests.support.cases import golden
from tests.support.cases.golden import catalog_with

CATALOG = golden.catalog_with()
SOMETHING = {"default": {"acceleratorTaints": "Tolerate"}}


def policy(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "kind": "ClusterGPUPolicy",
        "metadata": {"name": name},
        "spec": {"mode": "Enforce", **(spec if "require" in spec else {**spec, **SOMETHING})},
    }


def own(name: str, namespace: str) -> dict[str, Any]:
    return {"kind": "GPUPolicy", "metadata": {"name": name, "namespace": namespace}, "spec": {"mode": "Warn", **SOMETHING}}


def build(*objects: dict[str, Any], **options: Any) -> Snapshot:
    return snapshots.build(golden.policies_of(objects, CATALOG), CATALOG, **options)


def seen(built: Snapshot, namespace: str) -> list[str]:
    return [c.id for c in built.facts_for(namespace).policies]


def test_a_namespace_sees_its_own_policies_and_the_clusters() -> None:
    """Sorted by id, whatever the order of the files."""
    built = build(own("b", "ml"), policy("z"), own("a", "web"), policy("c"))
    assert seen(built, "ml") == ["ClusterGPUPolicy/c", "ClusterGPUPolicy/z", "GPUPolicy/ml/b"]
    assert seen(built, "other") == ["ClusterGPUPolicy/c", "ClusterGPUPolicy/z"]


@pytest.mark.parametrize(
    ("selector", "namespaces"),
    [
        ({"matchLabels": {"team": "ml"}}, ["a"]),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["ml"]}]}, ["b", "unlisted"]),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, ["a", "b"]),
        ({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["unlisted"]}]}, ["unlisted"]),
        ({}, ["a", "b", "unlisted"]),
    ],
    ids=str,
)
def test_a_selector_reads_the_namespaces_labels(selector: dict[str, Any], namespaces: list[str]) -> None:
    """A namespace that is not known has only its name as a label."""
    cluster = ClusterFacts(namespaces={"a": {"team": "ml"}, "b": {"team": "web"}})
    built = build(policy("p", match={"namespaceSelector": selector}), cluster=cluster)
    assert [name for name in ("a", "b", "unlisted") if seen(built, name)] == namespaces


def test_a_name_label_cannot_be_forged() -> None:
    """kubernetes.io/metadata.name is always the namespace's own name."""
    built = build(cluster=ClusterFacts(namespaces={"a": {"kubernetes.io/metadata.name": "b"}}))
    assert built.facts_for("a").labels == {"kubernetes.io/metadata.name": "a"}


@pytest.mark.parametrize(("most", "mode"), [("Enforce", "Enforce"), ("Warn", "Warn"), ("Audit", "Audit")])
def test_max_mode_caps_every_policy(most: Mode, mode: Mode) -> None:
    """And never raises one."""
    built = build(policy("strong"), policy("soft", mode="Audit"), max_mode=most)
    assert [c.mode for c in built.policies] == ["Audit", mode]


def test_facts_are_made_once_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second look-up is the same object; reviews of very many namespaces fill no memory."""
    monkeypatch.setattr("policies.state.snapshot._MOST_NAMESPACES", 2)
    built = build(policy("p"))
    assert built.facts_for("a") is built.facts_for("a")
    for name in "bcd":
        assert seen(built, name) == ["ClusterGPUPolicy/p"]
    assert len(built._facts) <= 2


def test_nothing_is_remembered_of_a_namespace_that_can_not_be() -> None:
    """Who calls past the API server may name any, of three megabytes each."""
    built = build(policy("p"))
    assert seen(built, "n" * 64) == ["ClusterGPUPolicy/p"]
    assert not built._facts


def test_without_platforms_all_tables_are_there_and_nothing_is_placed() -> None:
    """So that contradictions are judged on all of them."""
    assert set(build().tables) == set(CATALOG.platforms)
    assert not build().placed
    assert list(build(platforms=("gke", "eks-auto")).tables) == ["eks-auto", "gke"]


def test_a_family_that_only_policies_name_gets_rows_of_its_own() -> None:
    """Else naming it could exclude nothing."""
    plain = build(policy("p"), platforms=("karpenter-aws",)).tables["karpenter-aws"]
    named = build(policy("p", require={"instanceFamilies": {"notIn": ["p99"]}}), platforms=("karpenter-aws",)).tables["karpenter-aws"]
    assert {o.host.family for o in named.offers} - {o.host.family for o in plain.offers} == {"p99"}


def test_constraints_say_what_they_are_in_words() -> None:
    """As the policy writes them."""
    require = {
        "families": {"in": ["hopper"]}, "models": {"in": ["A100"], "notIn": ["A100-40GB"]}, "gpuMemory": {"min": 40, "max": 80},
        "capacity": ["spot"], "sharing": ["Exclusive", "MIG"], "longRuns": {"over": "2h", "capacity": ["on-demand"]},
    }  # fmt: skip
    (compiled,) = build(policy("p", require=require)).policies
    assert [c.text for c in compiled.require] == [
        "families in [hopper]", "models in [A100] notIn [A100-40GB]", "gpuMemory at least 40 GB and at most 80 GB", "capacity [spot]",
        "sharing [Exclusive, MIG]",
    ]  # fmt: skip
    assert compiled.require_long is not None
    assert compiled.require_long.field == "spec.require.longRuns.capacity"


def test_on_demand_includes_reserved() -> None:
    """Karpenter marks paid reservations so."""
    built = build(policy("p", require={"capacity": ["on-demand"]}), platforms=("karpenter-aws",))
    table = built.tables["karpenter-aws"]
    assert built.policies[0].require[0].rows == table.by_capacity["on-demand"] | table.by_capacity["reserved"]


def test_a_template_is_the_and_of_what_it_says() -> None:
    """Vendors, machines, capacity and sharing."""
    spec = {"gpus": {"vendors": ["nvidia"], "memory": {"min": 80}, "sharing": ["Exclusive"]}, "capacity": ["spot"], "labels": {"pool": "x"}}
    built = build({"kind": "GPUNodeTemplate", "metadata": {"name": "t"}, "spec": spec}, platforms=("karpenter-aws",))
    template = built.templates["t"]
    assert [c.text for c in template.constraints] == ["memory at least 80 GB", "vendors [nvidia]", "capacity [spot]", "sharing [Exclusive]"]
    inside = list(built.tables["karpenter-aws"].offers_in(template.rows))
    assert inside
    assert all(o.capacity == "spot" and o.sharing == "Exclusive" and o.host.gpu and (o.host.gpu.memory_gb or 0) >= 80 for o in inside)


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("acme.example/npu", Resource(name="acme.example/npu", vendor="", kind="other")),
        ("example.com/widget", None),
        ("nvdia.com/gpu", None),
        ("gpu", None),
        (f"acme.example/{'n' * LONGEST_NAME}gpu", None),
    ],
    ids=["a word for an accelerator", "no such word", "a misspelling", "no domain", "longer than any"],
)
def test_a_name_says_what_it_may_be(name: str, resource: Resource | None) -> None:
    """An accelerator of nobody known, where a word of the name is one; a known misspelling is told otherwise."""
    assert Lookalikes(catalog_with()).resource(name) == resource


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many names authors invent."""
    monkeypatch.setattr("policies.state.snapshot._MOST_NAMES", 3)
    found = Lookalikes(catalog_with())
    assert [found.resource(f"example.com/{number}") for number in range(10)] == [None] * 10
    assert len(found._found) <= 3


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
