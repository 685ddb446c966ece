"""Every file under tests/cases against the engine: the outcome to the letter, twice over, and then validated."""

from __future__ import annotations

import os

import pytest

from tests.support.cases import golden
from tests.support.cases.golden import Case

REWRITE = os.environ.get("BERTH_WRITE_CASES") == "1"
ADVICE = (
    "if this is what the design wants, BERTH_WRITE_CASES=1 python -m pytest tests/policies/test_cases.py "
    "rewrites the part under expect:; read the diff"
)


@pytest.mark.parametrize("case", golden.cases(), ids=lambda case: case.name)
def test_the_outcome_is_what_the_case_says(case: Case) -> None:
    """Edits, sentences and would-be effects are those written out; a second mutate changes nothing."""
    found, broken = golden.outcome(case)
    if REWRITE and found != case.expected:
        golden.rewrite(case, found)
    else:
        assert found == case.expected, ADVICE
    assert broken == []


def test_a_case_file_says_its_outcome() -> None:
    """No case is without an ``expect:``, which an empty file of a hurried author would be."""
    assert [case.name for case in golden.cases() if golden.MARK not in case.path.read_text()] == []
