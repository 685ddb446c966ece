"""Reports are read back as they were written, and nothing that anybody else writes stops the reading."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.audit.reported_counts import reported_lines
from analysis.audit.stored_report import is_ours, stored_report
from analysis.audit.workload_report import MOST_RESULTS
from tests.analysis.audit.test_workload_report import BARE, made, outcome
from tests.support.generators.strategies import examples

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True)
    | st.text(max_size=8)
    | st.sampled_from(["would-change", "Audit"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_PLACES = (
    "metadata",
    "scope",
    "results",
    "source",
    "labels",
    "annotations",
    "name",
    "namespace",
    "kind",
    "policy",
    "properties",
    "message",
)
_PROPERTIES = ("finding", "mode", "pods", "gpus", "templates", "usdPerHour", "codes", "patch", "berth.dev/results-left-out")


def test_a_report_is_read_as_it_was_written() -> None:
    """With its workload, policies, counts and patch."""
    report = made(outcome(), outcome("would-deny", policies=("ClusterGPUPolicy/b",)))
    assert is_ours(report)
    found = stored_report(report)
    assert (found.namespace, found.kind, found.name, found.left_out, found.damaged) == ("team-a", "Job", "train", 0, 0)
    denied, changed = found.results
    assert (denied.finding, denied.policies, denied.codes) == ("would-deny", ("ClusterGPUPolicy/b",), ("BERTH-104",))
    assert (changed.mode, changed.pods, changed.gpus, changed.usd, changed.patch) == ("Audit", 3, 6, 4.5, '[{"op":"replace"}]')


def test_what_a_report_leaves_out_is_counted() -> None:
    """By its annotation; one that is no number is one at least."""
    report = made(*(outcome(policies=(f"ClusterGPUPolicy/{number}",)) for number in range(MOST_RESULTS + 4)), workload=BARE)
    assert stored_report(report).left_out == 4
    report["metadata"]["annotations"]["berth.dev/results-left-out"] = "many"
    assert stored_report(report).left_out == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"finding": "would-explode"},
        {"pods": "-1"},
        {"pods": "1e9"},
        {"pods": "9" * 5000},
        {"gpus": ["1"]},
        {"usdPerHour": "nan"},
        {"templates": "٣"},  # digits of another script
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_result_of_which_no_sense_can_be_made_is_counted(wrong: dict[str, Any]) -> None:
    """And left out, whole."""
    report = made(outcome(), outcome(policies=("ClusterGPUPolicy/b",)))
    report["results"][0]["properties"] |= wrong
    found = stored_report(report)
    assert (len(found.results), found.damaged) == (1, 1)


@given(
    st.recursive(
        ANYTHING, lambda inner: st.dictionaries(st.sampled_from(_PLACES + _PROPERTIES), inner | st.lists(inner, max_size=3)), max_leaves=12
    )
)
@examples(100, 5000)
def test_nothing_makes_the_reading_fail(value: Any) -> None:
    """Wrong types at any place."""
    report = value if isinstance(value, dict) else {"results": [value]}
    is_ours(report)
    found = stored_report(report)
    assert found.damaged >= 0
    reported_lines([found])
