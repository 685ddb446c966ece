"""`berth export scheduler` prints a configuration of kube-scheduler; tests/e2e/scheduling/test_packing.py runs it."""

from __future__ import annotations

import pytest
import yaml

from cli.main import main
from documents.files import read_catalog


def printed(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    code = main(["export", "scheduler", *options])
    out, err = capsys.readouterr()
    return code, out, err


def test_it_packs_by_every_device_of_the_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    """Devices outweigh cpu and memory, and what spreads pods has no say."""
    code, out, _ = printed(capsys)
    (profile,) = yaml.safe_load(out)["profiles"]
    (fit,) = profile["pluginConfig"]
    strategy = fit["args"]["scoringStrategy"]
    weights = {one["name"]: one["weight"] for one in strategy["resources"]}
    assert (code, strategy["type"], profile["schedulerName"]) == (0, "MostAllocated", "gpu-packing")
    assert {name for name, weight in weights.items() if weight == 100} == set(read_catalog().whole.values())
    assert {name: weight for name, weight in weights.items() if weight != 100} == {"cpu": 1, "memory": 1}
    assert {"name": "NodeResourcesBalancedAllocation"} in profile["plugins"]["score"]["disabled"]


def test_a_name_and_a_resource_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Each once, though the catalog has one of them."""
    _, out, _ = printed(capsys, "--name", "packing", "--resource-name", "acme.example/npu", "--resource-name", "nvidia.com/gpu")
    (profile,) = yaml.safe_load(out)["profiles"]
    names = [one["name"] for one in profile["pluginConfig"][0]["args"]["scoringStrategy"]["resources"]]
    assert (profile["schedulerName"], names.count("acme.example/npu"), names.count("nvidia.com/gpu")) == ("packing", 1, 1)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--name", "GPU packing", 'berth: --name: "GPU packing" is not the name of a scheduler; write for example gpu-packing'),
        ("--resource-name", "gpu", 'berth: --resource-name: "gpu" is not an extended resource; write for example acme.example/npu'),
    ],
)
def test_a_mistake_is_told_with_what_to_type(capsys: pytest.CaptureFixture[str], option: str, value: str, said: str) -> None:
    """Nothing is printed then."""
    assert printed(capsys, option, value) == (2, "", f"{said}\n")
