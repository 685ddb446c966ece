"""MIG resources: usable memory is only what somebody has verified."""

from __future__ import annotations

from typing import Any

from policies.document import Document
from policies.objects.parse import parse_objects
from policies.policy import API_VERSION
from tests.support.cases import golden

CATALOG = golden.catalog_with()


def errors(usable: str) -> list[str]:
    policy: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "ClusterGPUPolicy", "metadata": {"name": "x"}}
    policy["spec"] = {"default": {"mig": {"usableMemory": usable}}}
    return [str(error) for error in parse_objects([Document(file="x", value=policy)], CATALOG)[1]]


def test_usable_memory_that_nobody_verified_is_denied_with_the_list() -> None:
    """No figure above the largest verified one: the policy says so before any pod meets it."""
    (error,) = errors("100Gi")
    verified = {p.usable_mib for gpu in CATALOG.gpus for p in gpu.mig if p.usable_mib}
    assert "spec.default.mig.usableMemory" in error
    assert all(f"{mib / 1024:g}Gi" in error for mib in verified)


def test_usable_memory_within_a_verified_figure_is_understood() -> None:
    """9.5 GiB is less than the 9856 MiB of 1g.10gb."""
    assert errors("9.5Gi") == []
