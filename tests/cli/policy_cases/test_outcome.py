"""What comes of a case, as data."""

from __future__ import annotations

import json

import pytest

from cli.policy_cases.decisions import asked
from cli.policy_cases.outcome import PARTS
from cli.policy_cases.worlds import Worlds
from tests.support.cases import golden, golden_claims

CASES = (*golden.cases(), *golden_claims.cases())


@pytest.fixture(scope="module")
def worlds() -> Worlds:
    return Worlds()


def test_every_part_of_every_outcome_is_one_that_may_be_expected(worlds: Worlds) -> None:
    """Of its type, and as JSON has it: whatever comes can be written down."""
    seen: set[str] = set()
    for case in CASES:
        found = asked(case.read, worlds).decide().outcome
        seen |= found.keys()
        assert all(isinstance(value, PARTS[part]) and value for part, value in found.items() if part != "patch")
        assert json.loads(json.dumps(found)) == found
    assert seen == set(PARTS) - {"validate"}, "of our own policies none refuses there what it edited"


def test_who_did_not_match_said_nothing(worlds: Worlds) -> None:
    """Policies named in an outcome are among those that matched."""
    named = 0
    for case in CASES:
        decision = asked(case.read, worlds).decide()
        by = {name for edit in decision.outcome.get("edits", ()) for name in edit["by"].split(", ")}
        by |= {would["policy"] for would in decision.outcome.get("would", ())}
        assert by <= {*decision.matched, ""}, case.name  # "": the platform itself, told apart from another one
        named += len(by)
    assert named > 200
