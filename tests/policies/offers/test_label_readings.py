"""Other names of machines and products, as label values."""

from __future__ import annotations

import pytest

from policies.offers.label_readings import is_product, other_names, spelled
from tests.support.cases import golden
from tests.support.snapshots import build

CATALOG = golden.catalog_with()
TYPE, PRODUCT = "node.kubernetes.io/instance-type", "nvidia.com/gpu.product"


@pytest.mark.parametrize(
    ("platform", "key", "name", "meant"),
    [
        ("karpenter-aws", TYPE, "ml.p5.48xlarge", "p5.48xlarge"),
        ("eks-nodegroup", TYPE, "ml.p6e-gb200.36xlarge", "p6e-gb200.36xlarge"),
        ("hyperpod", TYPE, "ml.p5.48xlarge", None),
        ("gke", TYPE, "ml.p5.48xlarge", None),
        ("aks", TYPE, "ml.p5.48xlarge", None),
        ("gfd", PRODUCT, "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "NVIDIA-A100-SXM4-40GB"),
        ("gfd", PRODUCT, "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me-SHARED", "NVIDIA-A100-SXM4-40GB"),
        ("gfd", PRODUCT, "NVIDIA-A100-SXM4-40GB-MIG-1g.35gb", None),
        ("gke", PRODUCT, "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", None),
    ],
)
def test_other_names(platform: str, key: str, name: str, meant: str | None) -> None:
    """HyperPod's types on the other platforms of EC2's machines; products of slices that the GPU has, where slices show in products."""
    assert other_names(CATALOG.platforms[platform], CATALOG).get(key, {}).get(name) == meant


def test_a_name_is_another_only_where_no_platform_in_force_has_it() -> None:
    """With HyperPod in force its names are its own; alone it does not know the plain ones."""
    nothing = golden.policies_of([], CATALOG)
    alone = build(nothing, CATALOG, platforms=("eks-nodegroup",)).tables["eks-nodegroup"]
    beside = build(nothing, CATALOG, platforms=("eks-nodegroup", "hyperpod")).tables
    assert alone.select(TYPE, "In", ("ml.p5.48xlarge",)) == alone.select(TYPE, "In", ("p5.48xlarge",))
    assert alone.other_names_in(TYPE, ("ml.p5.48xlarge", "p5.48xlarge")) == ["ml.p5.48xlarge"]
    assert beside["eks-nodegroup"].other_names_in(TYPE, ("ml.p5.48xlarge",)) == []
    assert beside["eks-nodegroup"].select(TYPE, "In", ("ml.p5.48xlarge",)) == (0, False)
    assert beside["hyperpod"].select(TYPE, "In", ("ml.p5.48xlarge",))[0]
    assert beside["hyperpod"].select(TYPE, "In", ("p5.48xlarge",)) == (0, False)


def test_what_is_not_to_be_excludes_its_own_name_alone() -> None:
    """NotIn of another name leaves the machine by its plain one."""
    table = build(golden.policies_of([], CATALOG), CATALOG, platforms=("eks-nodegroup",)).tables["eks-nodegroup"]
    assert table.select(TYPE, "NotIn", ("ml.p5.48xlarge",)) == (table.all, False)


def test_values_are_spelled_as_the_author_does() -> None:
    """Both names, where one of the author's is another name."""
    names = {"ml.a": "a", "ml.b": "b", "ml.c": "c"}
    assert spelled(names, ["a"], ("a", "b")) == ("a", "b")
    assert spelled(names, ["ml.a"], ("a", "b")) == ("a", "b", "ml.a", "ml.b")


def test_products_are_told_from_types() -> None:
    """By what the platform says of the label."""
    assert is_product(CATALOG.platforms["eks-nodegroup"], PRODUCT)
    assert not is_product(CATALOG.platforms["eks-nodegroup"], TYPE)
