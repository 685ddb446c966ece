"""Policies as sets of rows: which models a list of families means."""

from __future__ import annotations

import pytest

from policies.offers.constraints import Compiled
from policies.state.snapshot import Snapshot
from tests.support.cases import golden
from tests.support.snapshots import build

CATALOG = golden.catalog_with()


def compiled(part: str, families: dict[str, list[str]]) -> tuple[Snapshot, Compiled]:
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "x"}, "spec": {"mode": "Enforce", part: {"families": families}}}
    built = build(golden.policies_of([policy], CATALOG), CATALOG, platforms=tuple(CATALOG.platforms))
    return built, built.policies[0]


@pytest.mark.parametrize("platform", [p.name for p in CATALOG.platforms.values()])
def test_a_default_by_family_keeps_its_vendors_new_models(platform: str) -> None:
    """Where the platform has machines of the family and no label that tells it; what acts is still known without them."""
    built, policy = compiled("default", {"in": ["blackwell"]})
    table, (constraint,) = built.tables[platform], policy.machine
    new = table.unknown & table.by_vendor["nvidia"]
    kept = constraint.rows & table.unknown
    assert kept == (0 if platform == "gfd" else new)
    assert not constraint.sure & table.unknown


def test_a_family_that_a_platform_has_no_machine_of_means_none_there() -> None:
    """No machine of AWS has a CDNA 3 GPU: an unknown one is no place for such a pod."""
    built, policy = compiled("default", {"in": ["cdna3"]})
    assert policy.machine[0].rows & built.tables["karpenter-aws"].all == 0
    assert policy.machine[0].rows & built.tables["aks"].all


def test_what_is_required_drops_new_models() -> None:
    """A guardrail holds whoever writes the pod: what nobody knows is inside no list."""
    built, policy = compiled("require", {"in": ["blackwell"]})
    assert all(not policy.require[0].rows & table.unknown for table in built.tables.values())
    assert policy.require[0].sure == policy.require[0].rows
