"""The nearest right name: slips are mended, and no other GPU is made of the one that was named."""

from __future__ import annotations

import pytest

from catalog.nearest import hint, nearest, nearest_slice, of_model, slipped
from tests.support.cases import golden

CATALOG = golden.catalog_with()
PRODUCTS = [product for gpu in CATALOG.gpus for product in gpu.products]
TYPES = [machine.type for machine in CATALOG.machines if machine.type]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NVIDIA-H100-80GB-HBM2", "NVIDIA-H100-80GB-HBM3"),
        ("NVIDIA-A100-SXM-80GB", "NVIDIA-A100-SXM4-80GB"),
        ("nvidia-l4", "NVIDIA-L4"),
        ("NVIDIA-H2O0", "NVIDIA-H200"),
        ("p5en.24xlarge", "p5en.48xlarge"),
        ("pd4.24xlarge", "p4d.24xlarge"),
        ("a3-ultragpu-16g", "a3-ultragpu-8g"),
        ("H100-SXM4", None),
        ("Tesla-P6", None),
        ("NVIDIA-B100", None),
        ("NVIDIA-L40X", None),
        ("Instinct_MI301X", None),
        ("p9.48xlarge", None),
        ("p4.24xlarge", None),
        ("a5-highgpu-8g", None),
        ("Standard_ND96isr_MI301X_v5", None),
        ("x" * 200, None),
    ],
)
def test_a_hint_keeps_the_model(name: str, meant: str | None) -> None:
    """A digit for a letter, letters in each other's place, another form of the same GPU: those are slips, another model is none."""
    assert nearest(name, PRODUCTS + TYPES, CATALOG.codes) == meant


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("h10", "h100"),
        ("h100sxm5", "h100"),
        ("H10O", "h100"),
        ("h1oo", "h100"),
        ("A-100", "a100"),
        ("B_2oo", "b200"),
        ("b400", None),
        ("h100e", None),
        ("p40", None),
        ("x999", None),
    ],
)
def test_a_model_by_itself(name: str, meant: str | None) -> None:
    """What is left out is a slip; what is written on in one letter, or in place of another digit, may be a GPU that is new."""
    assert nearest(name, ["a100", "b200", "h100", "l4", "p4"], CATALOG.codes) == meant


def test_another_memory_is_another_model() -> None:
    """A100-40GB is not what is meant by 80GB."""
    assert nearest("A100-PCIE-80GB", ["NVIDIA-A100-PCIE-40GB"], CATALOG.codes) is None
    assert nearest("A100-80", CATALOG.model_names, CATALOG.codes) == "A100-80GB"


def test_without_codes_letters_alone_count() -> None:
    """Fields, kinds and namespaces are no GPUs."""
    assert nearest("team-b1", ["team-a1"]) == "team-a1"


def test_what_is_known_of_a_model_is_listed() -> None:
    """Where no name is near, the names of that model are told, and all where the name tells none."""
    found = of_model("H100-SXM4", PRODUCTS, CATALOG.codes)
    assert found == ["NVIDIA-H100", "NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-96GB", "NVIDIA-H100-NVL", "NVIDIA-H100-PCIe"]
    assert of_model("Standard_ND99_v5", TYPES, CATALOG.codes) == []
    assert hint("GH100-SXM9", ["GH200", "H100"], CATALOG.codes) == "; known: GH200, H100"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("queuename", "queue-name"),
        ("Queue_Name", "queue-name"),
        ("qeuue-name", "queue-name"),
        ("queue-nam", "queue-name"),
        ("queuexyz", None),
        ("podd", "pods"),
        ("pxdy", None),
        ("alpha-2", None),
        ("q" * 200, None),
    ],
)
def test_a_typists_slip(name: str, meant: str | None) -> None:
    """One or two in a name, one in a short one; not what is as near to two names."""
    assert slipped(name, ("queue-name", "pods", "alpha-1", "alpha-3")) == meant


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("nvidia.com/mig-3g.70gb", "nvidia.com/mig-3g.71gb"),
        ("nvidia.com/mig-1g.11gb", "nvidia.com/mig-1g.10gb"),
        ("nvidia.com/mig-7g.99gb", "nvidia.com/mig-7g.96gb"),
        ("nvidia.com/mig-1g.10gb.mee", "nvidia.com/mig-1g.10gb.me"),
        ("nvidia.com/mig-1c.3g.20gb", "nvidia.com/mig-3g.20gb"),
        ("quite something else", None),
    ],
)
def test_the_nearest_slice_has_as_much_compute(asked: str, meant: str | None) -> None:
    """And the memory that is nearest; else the nearest name, if there is one."""
    assert nearest_slice(asked, [profile.resource for gpu in CATALOG.gpus for profile in gpu.mig]) == meant
