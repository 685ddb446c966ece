"""The many policies of the bench."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.inputs import many_policies
from bench.inputs.bodies import NAMESPACES
from policies.state.snapshot import Snapshot
from sources.sources import Sources, load_sources
from tests.support.counts import count


def loaded(folder: Path) -> Snapshot:
    sources = Sources(policies=(str(folder / "policies"),), facts=(str(folder / "namespaces.yaml"),), platforms=("karpenter-aws",))
    return load_sources(sources).snapshot


@pytest.mark.parametrize("number", [10, count(100, 1_000)])
def test_so_many_policies_are_in_force(number: int, tmp_path: Path) -> None:
    """The library's among them, in a thousand namespaces, and a namespace sees only a few."""
    many_policies.write(number, tmp_path)
    snapshot = loaded(tmp_path)
    assert len(snapshot.policies) == number
    assert len(snapshot.cluster.namespaces) == NAMESPACES
    assert len(snapshot.facts_for(many_policies.WATCHED).policies) <= many_policies.SHIPPED + 3


def test_a_change_is_one_policy_and_no_more(tmp_path: Path) -> None:
    """As somebody edits one file of many."""
    many_policies.write(300, tmp_path)
    before = {compiled.id: compiled.policy for compiled in loaded(tmp_path).policies}
    many_policies.change(tmp_path / "policies", 10)
    after = {compiled.id: compiled.policy for compiled in loaded(tmp_path).policies}
    assert [name for name in before if before[name] != after[name]] == ["ClusterGPUPolicy/unit-00000"]
