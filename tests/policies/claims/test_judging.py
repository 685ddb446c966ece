"""Every file under tests/claim_cases against what judges claims, to the letter."""

from __future__ import annotations

import os

import pytest

from tests.support.cases import golden, golden_claims
from tests.support.cases.golden import Case

REWRITE = os.environ.get("BERTH_WRITE_CASES") == "1"


@pytest.mark.parametrize("case", golden_claims.cases(), ids=lambda case: case.path.stem)
def test_the_outcome_is_what_the_case_says(case: Case) -> None:
    """Sentences and would-be refusals are those written out."""
    found = golden_claims.outcome(case)
    if REWRITE and found != case.expected:
        golden.rewrite(case, found)
    else:
        assert found == case.expected, (
            "BERTH_WRITE_CASES=1 python -m pytest tests/policies/claims/test_judging.py rewrites it; read the diff"
        )


@pytest.mark.parametrize("case", golden_claims.cases(), ids=lambda case: case.path.stem)
def test_code_fact_and_fix_come_first(case: Case) -> None:
    """Within the 200 characters that every tool shows."""
    verdict = golden_claims.verdict(case)
    for violation in (*verdict.violations, *(v for would in verdict.would for v in would.violations)):
        assert len(f"{violation.code}: {violation.fact}; {violation.fix}") <= 200
