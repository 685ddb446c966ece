"""One status: what differs, and the patch that mends it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.conditions import ObjectStatus
from analysis.conditions.conditions import Condition
from cluster.status.patch import differs, patch, stored_conditions

LONG_AGO = "2020-01-01T00:00:00Z"
FINDING = ObjectStatus(
    uid="u", generation=3, where="all namespaces", what="nothing", last_good=None,
    conditions=(Condition("Accepted", "True", "Understood", ""), Condition("Conflicted", "False", "NoConflict", "")),
)  # fmt: skip
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from("abc"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def merged(value: Any, change: Any) -> Any:
    """RFC 7386, section 2."""
    if not isinstance(change, dict):
        return change
    found = dict(value) if isinstance(value, dict) else {}
    for name, one in change.items():
        if one is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), one)
    return found


def stored(finding: ObjectStatus = FINDING, status: dict[str, Any] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = merged(status or {}, patch(finding, status or {}, "7")["status"])
    return found


def test_what_was_written_does_not_differ() -> None:
    """Or it would be written for ever."""
    assert not differs(FINDING, stored())
    assert patch(FINDING, {}, "7")["metadata"] == {"resourceVersion": "7"}


@pytest.mark.parametrize(
    "change",
    [
        {"where": "x"}, {"what": None}, {"observedGeneration": 2}, {"conditions": None}, {"conditions": [7]}, {"conditions": "x"},
        {"lastGood": {"generation": 1, "spec": {}}},
        {"conditions": [{"type": "Accepted", "status": "False", "reason": "Understood", "message": "", "lastTransitionTime": LONG_AGO}]},
    ],
    ids=str,
)  # fmt: skip
def test_anything_else_differs_and_is_mended(change: dict[str, Any]) -> None:
    """Whatever another has written."""
    odd = {**stored(), **change}
    assert differs(FINDING, odd)
    assert not differs(FINDING, stored(FINDING, odd))


def test_times_do_not_differ_but_must_be_there() -> None:
    """A condition without one would be no condition for kubectl wait."""
    status = stored()
    status["conditions"][0]["lastTransitionTime"] = LONG_AGO
    assert not differs(FINDING, status)
    del status["conditions"][0]["lastTransitionTime"]
    assert differs(FINDING, status)


def test_the_time_of_a_condition_stays_while_its_status_does() -> None:
    """Reasons and messages change without it."""
    status = stored()
    for one in status["conditions"]:
        one["lastTransitionTime"] = LONG_AGO
    now = ObjectStatus(
        uid="u", generation=4, where="", what="", last_good=None,
        conditions=(Condition("Accepted", "True", "Other", "text"), Condition("Conflicted", "True", "DefaultsDiffer", "x")),
    )  # fmt: skip
    accepted, conflicted = stored(now, status)["conditions"]
    assert accepted["lastTransitionTime"] == LONG_AGO
    assert conflicted["lastTransitionTime"] > "2025"
    assert {one["observedGeneration"] for one in (accepted, conflicted)} == {4}


@pytest.mark.parametrize("time", ["yesterday", "", 7, None, "2020-01-01T00:00:00+02:00", "0000-01-01T00:00:00Z"], ids=str)
def test_a_time_that_is_none_is_not_kept(time: object) -> None:
    """The API server would deny every patch that repeats it."""
    status = stored()
    status["conditions"][0]["lastTransitionTime"] = time
    assert patch(FINDING, status, "7")["status"]["conditions"][0]["lastTransitionTime"] > "2025"


@given(before=JSON, spec=st.dictionaries(st.sampled_from("abc"), JSON, max_size=3))
def test_the_last_good_form_is_replaced_whole(before: Any, spec: dict[str, Any]) -> None:
    """Merge patches go into maps: what the new form lacks is taken away, and all of it when it is not needed."""
    kept = ObjectStatus(uid="u", generation=3, where="", what="", last_good={"generation": 2, "spec": spec}, conditions=())
    status = {"lastGood": before}
    assert not differs(kept, stored(kept, status))
    assert "lastGood" not in stored(FINDING, stored(kept, status))


def test_conditions_are_read_from_whatever_is_stored() -> None:
    """For events: what was said before."""
    assert stored_conditions(stored()) == {"Accepted": ("True", "Understood"), "Conflicted": ("False", "NoConflict")}
    assert stored_conditions({"conditions": ["x", {"type": 7}]}) == {"7": ("None", "None")}
    assert stored_conditions({}) == {}
