"""One sentence for each reason."""

from __future__ import annotations

from typing import get_args

import pytest

from analysis.why import sentences
from analysis.why.sentences import blocker, format_amount, show_value
from kube.scheduling import Blocker, Kind
from policies.verdict import Edit


@pytest.mark.parametrize("kind", get_args(Kind))
def test_each_kind_has_a_sentence(kind: Kind) -> None:
    """With and without its fields."""
    assert blocker(Blocker(kind))
    assert "zone" in blocker(Blocker(kind, "zone", "In", ("a",), "b", 2, 1)) or kind in (
        "name",
        "unschedulable",
        "static",
        "not-ready",
        "claims",
    )


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (Blocker("label", "zone", "In", ("a", "b")), "label zone in (a, b) is required; it has no such label"),
        (Blocker("label", "zone", "NotIn", ("a",), "a"), "label zone notin (a) is required; it has a"),
        (Blocker("label", "zone", "DoesNotExist", found="a"), "label !zone is required; it has a"),
        (Blocker("label", "tier", "Gt", ("4",), "3"), "label tier > 4 is required; it has 3"),
        (
            Blocker("machines", "nvidia.com/gpu", need=16, have=8, certain=False),
            "creates no machine with 16 nvidia.com/gpu that Berth knows; its largest has 8",
        ),
        (
            Blocker("machines", "nvidia.com/gpu", found="g6.48xlarge", need=16, have=8),
            "creates no machine with 16 nvidia.com/gpu; the largest that it may use, g6.48xlarge, has 8",
        ),
        (
            Blocker("machines", "memory", found="g5.xlarge", need=2**34, have=14 * 2**30),
            "creates no machine with 16Gi memory; g5.xlarge has at most 14Gi for pods",
        ),
        (
            Blocker("machines", "pods", found="g5.xlarge", need=1),
            "creates no machine with room for another pod; g5.xlarge has no room beside DaemonSets",
        ),
        (
            Blocker("machines", "nvidia.com/gpu", found="g6f.large", need=1, certain=False),
            "creates no machine with 1 nvidia.com/gpu that Berth knows: its cloud reports no nvidia.com/gpu of g6f.large",
        ),
        (
            Blocker("machines", "nvidia.com/gpu", values=("amd.com/gpu",), need=1),
            "creates no machine with 1 nvidia.com/gpu; its machines have amd.com/gpu",
        ),
        (Blocker("limits", "cpu", need=1000), "its limit of cpu (spec.limits) is used up, so it creates no machine"),
        (
            Blocker("limits", "memory", found="g5.xlarge", need=15 * 2**30, have=2**33),
            "its limit leaves 8Gi memory; its smallest machine that fits, g5.xlarge, needs 15Gi",
        ),
        (
            Blocker("taint", "a", "NoExecute", found="", passing=True),
            "taint a:NoExecute is not tolerated, which may be removed automatically",
        ),
    ],
)
def test_sentences(one: Blocker, expected: str) -> None:
    """As people read labels, taints and amounts."""
    assert blocker(one) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("cpu", 2000, "2 cpu"),
        ("cpu", 2500, "2500m cpu"),
        ("memory", 3 * 2**30, "3Gi memory"),
        ("memory", 10**11, "93.1Gi memory"),
        ("x/y", 3, "3 x/y"),
    ],
)
def test_amounts(name: str, value: int, expected: str) -> None:
    """In the units that people write."""
    assert format_amount(name, value) == expected


def test_values_and_edits_stay_on_one_line() -> None:
    """Long ones are cut."""
    assert show_value({"a": [True, None, 1, "", "true", "x, y", "8", "500m"]}) == """{a: [true, null, 1, '', 'true', "x, y", '8', 500m]}"""
    assert len(show_value("x" * 500)) == 160
    edits = (Edit("remove", ("spec", "a"), "mend", ()), Edit("replace", ("spec", "b"), "mend", (), 1))
    assert list(map(sentences.edit, edits)) == ["- spec.a", "~ spec.b: 1"]
    assert sentences.patch(edits) == [{"op": "remove", "path": "/spec/a"}, {"op": "replace", "path": "/spec/b", "value": 1}]
