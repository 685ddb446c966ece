"""MIG resources: sizes are NVIDIA's own numbers, and usable memory only what somebody has verified."""

from __future__ import annotations

import re
from typing import Any

import pytest

from policies.document import Document
from policies.objects.parse import parse_objects
from policies.policy import API_VERSION
from tests.support.cases import golden

CATALOG = golden.catalog_with()


def errors(usable: str) -> list[str]:
    policy: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "ClusterGPUPolicy", "metadata": {"name": "x"}}
    policy["spec"] = {"default": {"mig": {"usableMemory": usable}}}
    return [str(error) for error in parse_objects([Document(file="x", value=policy)], CATALOG)[1]]


def test_usable_memory_that_nobody_verified_is_refused_with_the_list() -> None:
    """No figure above the largest verified one: the policy says so before any pod meets it."""
    (error,) = errors("100Gi")
    verified = {p.usable_mib for gpu in CATALOG.gpus for p in gpu.mig if p.usable_mib}
    assert "spec.default.mig.usableMemory" in error
    assert all(f"{mib / 1024:g}Gi" in error for mib in verified)


def test_usable_memory_within_a_verified_figure_is_understood() -> None:
    """9.5 GiB is less than the 9856 MiB of 1g.10gb."""
    assert errors("9.5Gi") == []


@pytest.mark.parametrize("gpu", [gpu for gpu in CATALOG.gpus if gpu.mig], ids=lambda gpu: gpu.model)
def test_a_profiles_number_is_its_nominal_memory(gpu: Any) -> None:
    """And its first number its compute slices: names are copied from NVIDIA's tables, never computed."""
    for profile in gpu.mig:
        match = re.match(r"(\d+)g\.(\d+)gb", profile.name)
        assert match is not None
        assert (profile.compute, profile.memory_gb) == (int(match[1]), int(match[2]))


def test_h200_has_71_and_not_70() -> None:
    """Half of 141 is rounded up, which Python's round() does not do."""
    names = [profile.name for gpu in CATALOG.models("H200") for profile in gpu.mig]
    assert "3g.71gb" in names
    assert "3g.70gb" not in names
