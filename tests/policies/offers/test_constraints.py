"""Policies as sets of rows: which models a list of families means."""

from __future__ import annotations

from typing import Any

import pytest

from policies.offers import constraints
from policies.offers.build import tables_of
from policies.offers.constraints import Compiled
from policies.offers.machine_fields import in_machine
from policies.policy import InNotIn, MachineFields
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


@pytest.mark.parametrize("part", ["require", "default"])
def test_equal_fields_of_policies_are_matched_with_the_machines_once(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """Ten thousand teams with the same few requirements are compiled in the time of one, as the platforms' machines are looked
    through once for each value."""
    calls = 0

    def counted(*given: Any) -> bool:
        nonlocal calls
        calls += 1
        return in_machine(*given)

    monkeypatch.setattr(constraints, "in_machine", counted)

    def compile_policies(number: int) -> tuple[int, Snapshot]:
        nonlocal calls
        calls = 0
        values = [{"families": {"in": [family]}, "gpuMemory": {"min": 24}} for family in ("ampere", "hopper")]
        spec = [{"mode": "Enforce", part: values[n % 2]} for n in range(number)]
        policies = [{"kind": "ClusterGPUPolicy", "metadata": {"name": f"p{n}"}, "spec": spec[n]} for n in range(number)]
        built = build(golden.policies_of(policies, CATALOG), CATALOG, platforms=tuple(CATALOG.platforms))
        return calls, built

    few, _ = compile_policies(2)
    many, built = compile_policies(40)
    hosts = sum(len({id(offer.host) for offer in table.offers}) for table in built.tables.values())
    assert many == few <= 3 * hosts  # the values are two families and one size of memory
    assert {one.by for policy in built.policies for one in (*policy.require, *policy.machine)} == {
        (one.policy.id,) for one in built.policies
    }


def test_the_memo_of_fields_is_bounded() -> None:
    """As many different requirements as authors like keep no more than a few MB."""
    compiler = constraints.Compiler(CATALOG, tables_of(CATALOG, (), "mixed", frozenset(), (), frozenset()))
    for number in range(1000):
        list(compiler.machine("policy", "spec.require", MachineFields(models=InNotIn(not_in=(f"{number:08000}",)))))
    assert 100 < len(compiler.memo) < 400
