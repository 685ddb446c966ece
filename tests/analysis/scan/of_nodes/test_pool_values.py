"""NodePools that name GPU machines which do not exist; and all those names that may exist, which are never called wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.scan import wording
from analysis.scan.finding import Finding
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.support.recorded.scanned import scanned

FAMILY, TYPE, NAME, CATEGORY = (
    "karpenter.k8s.aws/instance-family",
    "node.kubernetes.io/instance-type",
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-category",
)
AUTO_FAMILY, AZURE_NAME = "eks.amazonaws.com/instance-family", "karpenter.azure.com/sku-gpu-name"
KIND = "pool-unknown-machine"


def wrong(key: str, *values: str, operator: str = "In", group: str = "karpenter.k8s.aws") -> dict[str, str]:
    """The values that are called wrong of a NodePool with this one requirement, each with its nearest."""
    spec = {"nodeClassRef": {"group": group, "name": "x"}, "requirements": [{"key": key, "operator": operator, "values": list(values)}]}
    pool: dict[str, Any] = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "x"}}
    found = [one for one in scanned([pool | {"spec": {"template": {"spec": spec}}}]).report.findings if one.kind == KIND]
    return {value: near for one in found for value, near in zip(texts(one, "unknown"), texts(one, "nearest"), strict=True)}


def texts(finding: Finding, name: str) -> list[str]:
    """A value of a finding that is a list of texts."""
    value = finding.values[name]
    assert isinstance(value, tuple)
    return [str(one) for one in value]


@pytest.mark.parametrize(
    ("key", "values"),
    [
        (FAMILY, {"g4": "g4dn", "p4": "p4d", "p3d": "p3dn", "g5dn": "g5", "P4D": "p4d"}),
        (FAMILY, {"g5.xlarge": "g5", "p4d.24xlarge": "p4d", "a100": "p4d", "A10G": "g5"}),
        (AUTO_FAMILY, {"g4": "g4dn"}),
        (CATEGORY, {"G": "g"}),
        (TYPE, {"g4.xlarge": "g4dn.xlarge", "p4d.12xlarge": "p4d.24xlarge", "G4DN.XLARGE": "g4dn.xlarge", "g5": "g5.xlarge"}),
        (NAME, {"A100": "a100", "nvidia-tesla-t4": "t4", "H100-80GB": "h100"}),
    ],
)  # fmt: skip
def test_a_name_that_no_machine_has_comes_with_the_nearest(key: str, values: dict[str, str]) -> None:
    """Another letter case, one letter too few, a type for a family, a GPU's name for a machine's."""
    group = "eks.amazonaws.com" if key == AUTO_FAMILY else "karpenter.k8s.aws"
    assert wrong(key, *values, group=group) == values


@pytest.mark.parametrize(
    ("key", "values"),
    [
        (TYPE, {"NC24ads_A100_v4": "Standard_NC24ads_A100_v4", "standard_nc4as_t4_v3": "Standard_NC4as_T4_v3"}),
        (TYPE, {"Standard_NC12ads_A100_v4": "Standard_NC24ads_A100_v4"}),
        (AZURE_NAME, {"a100": "A100", "tesla-t4": "T4"}),
    ],
)
def test_azures_names_are_compared_as_azure_writes_them(key: str, values: dict[str, str]) -> None:
    """With their prefix, their cores and their features."""
    assert wrong(key, *values, group="karpenter.azure.com") == values


MAY_EXIST = [
    (FAMILY, ["m5", "c6i", "t4g", "a1", "inf2", "trn1", "dl1", "vt1", "f2", "hpc7g", "mac2", "u-6tb1", "x2iedn"]),
    (FAMILY, ["g2", "g8", "g9e", "p6e-gb300", "p7", "p60", "gr7", "nobody", ""]),
    (TYPE, ["m5.large", "c7i.xlarge", "g7e.96xlarge", "p6-b200.96xlarge", "g8.xlarge", "x"]),
    (NAME, ["gaudi-hl-205", "b400", "a10", "l40", "mi300x", "inferentia2"]),
    (CATEGORY, ["c", "m", "r", "g5", "gpu"]),
    ("karpenter.k8s.aws/instance-cpu", ["g4"]),
    ("example.com/instance-family", ["g4"]),
]


@pytest.mark.parametrize(("key", "values"), MAY_EXIST)
def test_what_may_exist_is_not_called_wrong(key: str, values: list[str]) -> None:
    """Machines without GPUs, of which the catalog knows none; machines newer than it; other keys."""
    assert wrong(key, *values) == {}


def test_azures_other_series_are_not_called_wrong() -> None:
    """Sizes without GPUs, of series that the catalog lacks, of versions that it lacks."""
    values = ("Standard_D4s_v5", "Standard_NC6", "Standard_NC6s_v2", "Standard_NP10s", "Standard_NV32as_v4", "Standard_NC24ads_A100_v5")
    assert wrong(TYPE, *values, group="karpenter.azure.com") == {}


def test_what_is_excluded_need_not_exist() -> None:
    """NotIn names machines that nobody wants; and of a NodePool of an unknown cloud nothing is known."""
    assert wrong(FAMILY, "g4", operator="NotIn") == {}
    assert wrong(FAMILY, "g4", group="example.com") == {}


@pytest.mark.parametrize(("cloud", "group"), [("aws", "karpenter.k8s.aws"), ("azure", "karpenter.azure.com")])
def test_every_machine_of_the_catalog_exists(cloud: str, group: str) -> None:
    """Its family, its type and its GPU's name are never called wrong."""
    machines = [one for one in catalog().machines if one.cloud == cloud]
    assert len(machines) > 30
    assert wrong(TYPE, *(one.type for one in machines if one.type), group=group) == {}
    assert wrong(FAMILY, *(one.family for one in machines if one.family), group=group) == {}
    assert wrong(NAME, *(one.attributes["gpuName"] for one in machines if "gpuName" in one.attributes), group=group) == {}


WRITTEN = st.text(max_size=12) | st.from_regex(r"[gprmti]{1,2}[0-9]{1,2}[a-z]{0,3}(\.[0-9]{0,2}x?large)?", fullmatch=True)


@settings(max_examples=count(20, 300))
@given(st.lists(WRITTEN, min_size=20, max_size=40))
def test_a_nearest_name_is_one_that_exists(values: list[str]) -> None:
    """Whatever is written: the value that is told to write in its place is not called wrong itself."""
    for key in (FAMILY, TYPE, NAME):
        assert wrong(key, *wrong(key, *values).values()) == {}


def test_the_sentence_says_whether_anything_is_left() -> None:
    """A NodePool with another machine makes nodes of that one."""
    requirement: dict[str, Any] = {"key": FAMILY, "operator": "In", "values": ["g4"]}
    spec = {"nodeClassRef": {"group": "karpenter.k8s.aws", "name": "x"}, "requirements": [requirement]}
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": {"template": {"spec": spec}}}
    (one,) = scanned([pool]).of(KIND)
    assert wording.fact(one) == f"requires g4 in {FAMILY}, but no GPU machine in the catalog matches, so the NodePool can create no node"
    assert wording.advice(one).startswith("write g4dn instead of g4; if the machine is newer than the catalog, add it with --catalog FILE")
    requirement["values"] = ["g4", "m5"]
    (one,) = scanned([pool]).of(KIND)
    assert wording.fact(one) == f"requires g4 in {FAMILY}, but no GPU machine in the catalog matches"
