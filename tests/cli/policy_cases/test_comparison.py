"""What counts as the same outcome, and what is shown where it is another one."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.policy_cases.comparison import differences
from cli.policy_cases.decisions import read_request
from cli.policy_cases.outcome import Sentence
from cli.policy_cases.worlds import Worlds
from tests.support.cases import golden

DENIED = golden.load(golden.CASES / "tolerations" / "forbidden.yaml")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


def shuffled(value: Any, random: Random) -> Any:
    """The same with its keys in another order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key], random) for key in random.sample(list(value), len(value))}
    return [shuffled(one, random) for one in value] if isinstance(value, list) else value


@given(value=JSON, random=st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(value: Any, random: Random) -> None:
    """Nothing is shown of two outcomes that are the same data."""
    assert differences({"edits": [value]}, {"edits": [shuffled(value, random)]}) == []


@given(one=JSON, other=JSON)
def test_what_differs_is_shown(one: Any, other: Any) -> None:
    """There is a line of either side wherever the data differ, 1 and true among them, and none elsewhere."""
    lines = differences({"edits": [one, "end"]}, {"edits": [other, "end"]})
    same = type_and_value(one) == type_and_value(other)
    assert (lines == []) == same
    assert same or any(line.startswith(("-", "+")) and not line.startswith(("---", "+++")) for line in lines)


def type_and_value(value: Any) -> Any:
    """A value that is equal only where types are."""
    if isinstance(value, dict):
        return {key: type_and_value(item) for key, item in value.items()}
    return [type_and_value(item) for item in value] if isinstance(value, list) else (type(value), value)


@pytest.mark.parametrize("empty", [{}, {"edits": []}, {"unmatched": False, "uncounted": 0}])
def test_empty_parts_are_none(empty: dict[str, Any]) -> None:
    """An author may write them: that nothing is edited is an expectation too."""
    assert differences(empty, {}) == []
    assert differences(empty, {"patch": []}) == []
    assert differences(empty, {"unjudged": True}) != []


def test_a_code_stands_for_its_sentence() -> None:
    """In its place only; another code, or one too many, is shown beside the whole sentence that came."""
    found = read_request(DENIED.read, Worlds()).decide().outcome
    (sentence,) = found["violations"]
    assert isinstance(sentence, Sentence)
    assert differences({**found, "violations": [sentence.code]}, found) == []
    assert differences({**found, "violations": [str(sentence)]}, found) == []
    wrong = differences({**found, "violations": ["BERTH-999"]}, found)
    assert [line for line in wrong if line.startswith("-") and "BERTH-999" in line]
    assert any(line.startswith("+") and "BERTH-131: " in line for line in wrong) == (sentence.code == "BERTH-131")
    assert differences({**found, "violations": [sentence.code, sentence.code]}, found) != []
    assert differences({**found, "violations": [str(sentence)[:20]]}, found) != []
