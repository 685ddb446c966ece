"""Golden cases of claims: one YAML file is one ResourceClaim or ResourceClaimTemplate under some policies, and what must come of it.

They are test cases as those of pods are (``tests.support.cases.golden``), with a ``claim`` in place of the pod.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from policies.claims import judging
from policies.verdict import Verdict
from tests.support.cases import golden
from tests.support.cases.golden import Case
from tests.support.generators.written_claims import review_of
from webhook.admission import claim_review

CASES = Path(__file__).parents[2] / "claim_cases"


@cache
def cases() -> tuple[Case, ...]:
    """Every case, by path."""
    return tuple(golden.load(path) for path in sorted(CASES.glob("*.yaml")))


def verdict(case: Case) -> Verdict:
    """What comes of the review that the API server would send."""
    given = case.given
    asked = claim_review.from_document(review_of(given["claim"], namespace=given["namespace"], user=given["user"]))
    return judging.judge(asked.request(given["phase"]), case.facts(given["namespace"]))


def outcome(case: Case) -> dict[str, Any]:
    """As plain data."""
    return golden.outcome(case)[0]
