"""Worlds of files: which policies are in force in them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from analysis.world.builder import WorldBuilder
from catalog.prices import prices
from sources.worlds import read_world
from tests.sources.test_state import policy, thing, written
from tests.support.console.worlds import OPTIONS
from tests.support.generators.random_worlds import catalog


@pytest.mark.parametrize(
    ("dumped", "named", "active"),
    [
        (("own",), (), ["ClusterGPUPolicy/own"]),
        (("own",), ("other",), ["ClusterGPUPolicy/other"]),
        ((), (), ["ClusterGPUPolicy/berth-default"]),
    ],
)
def test_policies_of_a_dump_are_in_force(tmp_path: Path, dumped: tuple[str, ...], named: tuple[str, ...], active: list[str]) -> None:
    """Unless files of policies are named; without both it is the shipped one."""
    origin = written(tmp_path, thing("Node", "n"), *map(policy, dumped))
    files = []
    for name in named:
        (tmp_path / f"{name}.policy").write_text(yaml.safe_dump(policy(name)))
        files.append(str(tmp_path / f"{name}.policy"))
    world = read_world(WorldBuilder(catalog(), OPTIONS, prices(catalog())), files, origin.dumps, catalog())
    assert world.policies == active


def test_facts_of_a_dump_are_trimmed_as_those_of_a_cluster(tmp_path: Path) -> None:
    """A node has its labels and none of its images; an object of another API group that has the name of a kind is no fact."""
    node = thing("Node", "node", zone="a") | {"status": {"images": [{"names": ["x"]}], "allocatable": {"cpu": "4"}}}
    other = thing("ClusterPolicy", "kyverno", api_version="kyverno.io/v1")
    origin = written(tmp_path, node, other, thing("Pod", "p", "team"), policy("own"))
    world = read_world(WorldBuilder(catalog(), OPTIONS, prices(catalog())), (), origin.dumps, catalog())
    assert sorted(world.objects) == [("ClusterGPUPolicy", "", "own"), ("Node", "", "node")]
    fact = world.objects["Node", "", "node"]
    assert fact is not None
    assert (fact["metadata"]["labels"], fact["status"]) == ({"zone": "a"}, {"allocatable": {"cpu": "4"}})
