"""Machine fields: which kinds of machine they admit."""

from __future__ import annotations

import pytest

from policies.offers.machine_fields import in_machine
from policies.offers.table import Host
from policies.policy import Bounds, InNotIn, MachineFields
from tests.support.cases import golden

CATALOG = golden.catalog_with()


def host(model: str | None, family: str | None = "p4d") -> Host:
    gpu = next((g for g in CATALOG.gpus if g.model == model), None)
    return Host(vendor="nvidia", gpu=gpu, family=family, count=8, resource="nvidia.com/gpu", attributes={}, name="x")


@pytest.mark.parametrize(
    ("machine", "known", "new"),
    [
        (MachineFields(), True, True),
        (MachineFields(families=InNotIn(in_=("ampere",))), True, False),
        (MachineFields(families=InNotIn(not_in=("ampere",))), False, True),
        (MachineFields(models=InNotIn(in_=("A100",), not_in=("A100-40GB",))), False, False),
        (MachineFields(models=InNotIn(in_=("A100-40GB",))), True, False),
        (MachineFields(instance_families=InNotIn(not_in=("p4d",))), False, False),
        (MachineFields(gpu_memory=Bounds(min=40, max=40)), True, False),
        (MachineFields(gpu_memory=Bounds(min=41)), False, False),
        (MachineFields(gpu_memory=Bounds(max=39)), False, False),
    ],
    ids=str,
)
def test_machine_fields_admit_hosts(machine: MachineFields, *, known: bool, new: bool) -> None:
    """An unknown model passes notIn, and neither in nor gpuMemory; its family may be known."""
    assert in_machine(host("A100-40GB"), machine, CATALOG) is known
    assert in_machine(host(None), machine, CATALOG) is new


def test_a_host_without_a_known_family_passes_not_in() -> None:
    """A family that is not known is not one of those named."""
    assert in_machine(host("A100-40GB", None), MachineFields(instance_families=InNotIn(not_in=("p4d",))), CATALOG)
    assert not in_machine(host("A100-40GB", None), MachineFields(instance_families=InNotIn(in_=("p4d",))), CATALOG)
