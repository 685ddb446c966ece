"""Look-ups in the shipped catalog: names of resources, models and groups, workloads by their signs; what is remembered is bounded."""

from __future__ import annotations

from typing import Any

import pytest

from documents.files import read_catalog


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvidia.com/gpu", ("nvidia", "gpu", None)),
        ("nvidia.com/gpu.shared", ("nvidia", "shared", None)),
        ("nvidia.com/mig-1g.10gb", ("nvidia", "mig", "1g.10gb")),
        ("nvidia.com/mig-1g.10gb.me", ("nvidia", "mig", "1g.10gb.me")),
        ("nvidia.com/mig-1g.24gb.me.all", ("nvidia", "mig", "1g.24gb.me.all")),
        ("nvidia.com/mig-1g.24gb-me", ("nvidia", "mig", "1g.24gb-me")),
        ("nvidia.com/mig-1g.5gb.shared", ("nvidia", "shared", "1g.5gb")),
        ("amd.com/gpu", ("amd", "gpu", None)),
        ("amd.com/dpx_nps1", ("amd", "partition", None)),
        ("gpu.intel.com/i915", ("intel", "gpu", None)),
        ("gpu.intel.com/xe", ("intel", "gpu", None)),
        ("habana.ai/gaudi", ("habana", "other", None)),
        ("aws.amazon.com/neuron", ("aws", "other", None)),
        ("aws.amazon.com/neuroncore", ("aws", "other", None)),
        ("google.com/tpu", ("google", "other", None)),
        ("deviceclass.resource.kubernetes.io/gpu.nvidia.com", ("any", "dra", None)),
    ],
)
def test_accelerators_are_known_by_name(name: str, expected: tuple[str, Any, str | None]) -> None:
    """Each accelerator's resource name says its vendor, its kind and, for a slice, the profile."""
    vendor, kind, profile = expected
    found = read_catalog().resource(name)
    assert found is not None
    assert (found.name, found.vendor, found.kind, found.profile) == (name, vendor, kind, profile)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("amd.com/spx_nps1", (1,)),
        ("amd.com/dpx_nps1", (2,)),
        ("amd.com/qpx_nps1", (4,)),
        ("amd.com/cpx_nps4", (6, 8)),
        ("amd.com/gpu", None),
        ("nvidia.com/mig-1g.10gb", None),
    ],
)
def test_a_partition_says_how_many_make_a_gpu(name: str, parts: tuple[int, ...] | None) -> None:
    """By AMD's compute mode: one, two, four, or as many as the model has dies."""
    found = read_catalog().resource(name)
    assert found is not None
    assert found.parts == parts


@pytest.mark.parametrize(
    "name",
    ["cpu", "nvidia.com/gpumem", "nvidia.com/hostdev", "nvidia.com/gpu-memory", "xnvidia.com/gpu", "nvidiaxcom/gpu", "nvidia.com/gpu\n",
     "nvidia.com/mig-1g.10gb.nice", "gpu.intel.com/monitoring", "amd.com/cpx_nps44", "rdma/hca"],
)  # fmt: skip
def test_other_resources_are_no_accelerators(name: str) -> None:
    """A vendor's prefix makes no accelerator, and a pattern must match the whole name."""
    assert read_catalog().resource(name) is None


def test_answers_about_names_are_bounded() -> None:
    """However many names authors invent, the answers kept stay few and stay right."""
    catalog = read_catalog()
    for number in range(5000):
        assert catalog.resource(f"example.com/{number}") is None
    assert len(catalog._seen) <= 4096
    assert catalog.resource("nvidia.com/gpu") == catalog.resource("nvidia.com/gpu")


def test_nothing_is_kept_of_names_longer_than_any() -> None:
    """A mutating webhook sees names before anybody has counted their characters: 4,096 of 100,000 would be 400 MB."""
    catalog = read_catalog()
    before = dict(catalog._seen)
    known = catalog.resource("deviceclass.resource.kubernetes.io/" + "x" * 1000)
    assert known is not None
    assert known.kind == "dra"
    assert catalog.resource("y" * 1000) is None
    assert catalog._seen == before


def test_answers_about_workloads_are_bounded() -> None:
    """However long the kinds of owners and the values of labels are that authors invent."""
    catalog = read_catalog()
    for number in range(2000):
        assert catalog.workloads_signed(("", "K" * (number % 3) * 600 + str(number)), ()) == ()
    assert 0 < len(catalog._signed) <= 1024
    assert max(len(kind) for (_, kind), _ in catalog._signed) < 1024
    assert [w.name for w in catalog.workloads_signed(("batch", "Job"), ())] == ["Job"]


def test_a_group_means_all_its_models() -> None:
    """A100 is both memory sizes, a model is itself, an unknown name is nothing."""
    catalog = read_catalog()
    assert [gpu.model for gpu in catalog.models("A100")] == ["A100-40GB", "A100-80GB"]
    assert [gpu.model for gpu in catalog.models("T4")] == ["T4"]
    assert catalog.models("a100") == ()
    assert {"A100", "A100-40GB", "V100"} <= set(catalog.model_names)


def test_families_and_vendors_are_those_of_the_gpus() -> None:
    """What a policy may name as family, vendor or instance family is what the catalog has GPUs and machines of."""
    catalog = read_catalog()
    assert {"ampere", "ada-lovelace", "hopper", "blackwell", "cdna3"} <= set(catalog.families)
    assert catalog.vendors == ("nvidia", "amd", "intel", "habana")
    assert {"p4d", "p6-b200", "a2", "n1", "NCads_A100_v4"} <= catalog.machine_families()
