"""Every file under tests/claim_cases against what judges claims, to the letter; and what holds of every claim."""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

import pytest

from policies import claims
from policies.claims import ClaimRequest
from policies.state.cluster_facts import Choice, Claim
from tests.support import snapshots
from tests.support.cases import golden, golden_claims
from tests.support.cases.golden import Case, catalog_with, policies_of
from tests.support.counts import count

REWRITE = os.environ.get("BERTH_WRITE_CASES") == "1"


@pytest.mark.parametrize("case", golden_claims.cases(), ids=lambda case: case.path.stem)
def test_the_outcome_is_what_the_case_says(case: Case) -> None:
    """Sentences and would-be refusals are those written out."""
    found = golden_claims.outcome(case)
    if REWRITE and found != case.expected:
        golden.rewrite(case, found)
    else:
        assert found == case.expected, "BERTH_WRITE_CASES=1 python -m pytest tests/policies/test_claims.py rewrites it; read the diff"


@pytest.mark.parametrize("case", golden_claims.cases(), ids=lambda case: case.path.stem)
def test_code_fact_and_fix_come_first(case: Case) -> None:
    """Within the 200 characters that every tool shows."""
    verdict = golden_claims.verdict(case)
    for violation in (*verdict.violations, *(v for would in verdict.would for v in would.violations)):
        assert len(f"{violation.code}: {violation.fact}; {violation.fix}") <= 200


CLASSES = ("gpu.nvidia.com", "gpu.amd.com", "acme", "dra.net", "compute-domain.nvidia.com", "neuron.aws.com")
POLICIES = [
    {"kind": "ClusterGPUPolicy", "metadata": {"name": "max"}, "spec": {"mode": "Enforce", "require": {"gpusPerPod": {"max": 4}}}},
    {"kind": "ClusterGPUPolicy", "metadata": {"name": "l4"}, "spec": {"mode": "Enforce", "require": {"models": {"in": ["L4"]}}}},
    {
        "kind": "ClusterGPUPolicy",
        "metadata": {"name": "taints"},
        "spec": {"mode": "Enforce", "require": {"tolerations": {"forbid": [{"key": "maintenance"}]}}},
    },
]


def random_claims(random: Random, number: int) -> Iterator[Claim]:
    for _ in range(number):
        yield tuple(tuple(choice_of(random) for _ in range(random.randint(1, 3))) for _ in range(random.randint(1, 4)))


def choice_of(random: Random) -> Choice:
    most = random.choice([1, 1, 2, 3, 5, None])
    tolerations = random.choice([(), ({"key": "maintenance", "operator": "Exists"},), ({"key": "other"},)])
    return Choice(random.choice(CLASSES), most or 1, most, random.random() < 0.2, tolerations)


def test_what_is_asked_for_besides_never_helps() -> None:
    """Of a claim and the same with one request more, or one way more to meet a request, the larger is refused wherever the smaller is.

    So nobody gets past a guardrail by asking for something else beside.
    """
    random = Random(7)
    facts = snapshots.build(policies_of(POLICIES, catalog_with()), catalog_with(), platforms=("gfd",)).facts_for("ml")
    refused = 0
    for claim in random_claims(random, count(2000, 20000)):
        more = choice_of(random)
        at = random.randrange(len(claim))
        larger = random.choice([(*claim, (more,)), (*claim[:at], (*claim[at], more), *claim[at + 1 :])])
        before, after = (claims.judge(ClaimRequest(claim=one), facts) for one in (claim, larger))
        codes = {violation.code for violation in before.violations}
        assert codes <= {violation.code for violation in after.violations}, (claim, larger)
        refused += bool(codes)
    assert refused > 0
