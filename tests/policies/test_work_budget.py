"""How much there is to judge is counted, not timed: what costs an evaluation is bounded, and no real pod comes near it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.tree import TreePatch
from policies import verdict
from policies.planning.outcome import most_audited
from policies.verdict import Edit
from policies.work_budget import MOST, fits_after, items

REVIEWS = Path(__file__).parent.parent / "reviews"


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}], **spec}}


def terms(number: int, expressions: int, values: int = 1) -> dict[str, Any]:
    one = {"matchExpressions": [{"key": f"k{i}", "operator": "In", "values": ["v"] * values} for i in range(expressions)]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [one] * number}}}


@pytest.mark.parametrize(
    "large",
    [
        pytest.param(pod(affinity=terms(80, 17)), id="80 terms of 17 expressions"),
        pytest.param(pod(affinity=terms(1, 1, 2_000)), id="2000 values"),
        pytest.param(pod(affinity=terms(16, 1), nodeSelector={f"k{i}": "v" for i in range(16)}), id="a selector in each term"),
        pytest.param(pod(containers=[{"resources": {"limits": {f"nvidia.com/mig-1g.{i}gb": "1" for i in range(700)}}}]), id="700 slices"),
        pytest.param(
            pod(containers=[{"resources": {"limits": {f"nvidia.com/mig-1g.{i}gb": "1"}}} for i in range(50)]), id="50 slices apart"
        ),
        pytest.param(pod(tolerations=[{}] * 251), id="tolerations"),
        pytest.param(pod(initContainers=[{}] * 251), id="containers"),
    ],
)
def test_hostile_pods_are_too_large(large: dict[str, Any]) -> None:
    """By one of the things that an evaluation grows with, or by two together."""
    assert items(large) > MOST


@pytest.mark.parametrize(
    "sane",
    [
        pytest.param(pod(containers=[{"resources": {"limits": {"cpu": 1, "nvidia.com/gpu": 1}}}] * 40), id="40 containers"),
        pytest.param(pod(affinity=terms(20, 6)), id="20 terms of 6 expressions"),
        pytest.param(pod(affinity=terms(1, 2, 350)), id="700 instance types"),
        *(pytest.param(json.loads(path.read_text())["request"]["object"], id=path.stem) for path in sorted(REVIEWS.glob("pods-*.json"))),
    ],
)
def test_the_largest_that_anybody_writes_is_not(sane: dict[str, Any]) -> None:
    """Recorded pods, and sizes beyond those that were seen."""
    assert items(sane) <= MOST


@pytest.mark.parametrize("odd", [{}, {"spec": 7}, {"spec": {"containers": [7, {"resources": []}], "affinity": [], "tolerations": {}}}])
def test_any_shape_is_counted(odd: dict[str, Any]) -> None:
    """What is no pod is told by whoever judges it."""
    assert items(odd) <= 4


TERMS = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", "-")
WRITTEN = st.sampled_from(
    [
        Edit(op="add", path=("spec", "tolerations", "-"), value={"key": "a"}, rule="r", policies=()),
        Edit(op="add", path=("spec", "containers", 0, "resources", "limits", "a.b/c"), value="1", rule="r", policies=()),
        Edit(op="add", path=TERMS, value=terms(1, 3, 12)["nodeAffinity"][TERMS[3]]["nodeSelectorTerms"][0], rule="r", policies=()),
    ]
)


@given(st.integers(0, MOST), st.integers(0, 5), st.lists(WRITTEN, max_size=6))
def test_a_pod_fits_with_its_edits_exactly_where_it_has_no_more_items_after_them(
    tolerations: int, selector: int, edits: list[Edit]
) -> None:
    """The quick answer is never another one than counting again gives."""
    before = pod(tolerations=[{}] * tolerations, nodeSelector={f"k{i}": "v" for i in range(selector)})
    patch = TreePatch(before)
    for edit in edits:
        patch.apply(edit)
    assert fits_after(before, edits, items(before)) == (items(patch.tree) <= MOST)


def test_fewer_audited_policies_are_tried_on_a_larger_pod() -> None:
    """So that evaluations and what each costs are bounded together."""
    tried = [most_audited(items(pod(affinity=terms(number, 8))), 1) for number in (1, 3, 8, 16, 27)]
    assert tried == sorted(tried, reverse=True)
    assert (tried[0], tried[-1]) == (verdict.MOST_AUDITED, 2)
