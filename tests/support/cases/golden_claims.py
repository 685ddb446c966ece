"""Golden cases of claims: one YAML file is one ResourceClaim or ResourceClaimTemplate under some policies, and what must come of it.

Above ``expect:`` stand ``why``, ``policies`` and ``claim``, and what differs from ``golden.GIVEN``; under it, with empty parts left
out: ``violations`` and ``would`` as of pods, ``unmatched``, ``unjudged``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from policies import claims
from policies.state.cluster_facts import ClusterFacts
from policies.verdict import Verdict
from tests.support import snapshots
from tests.support.cases.golden import Case, catalog_with, policies_of
from tests.support.generators.written_claims import review_of
from webhook.admission import claim_review

CASES = Path(__file__).parents[2] / "claim_cases"
GIVEN: Mapping[str, Any] = {"maxMode": "Enforce", "facts": [], "namespace": "ml", "user": "alice"}


@cache
def cases() -> tuple[Case, ...]:
    """Every case, by path."""
    return tuple(load(path) for path in sorted(CASES.glob("*.yaml")))


def load(path: Path) -> Case:
    """The case in a file. An unknown key is an error: a misspelt one would test something else."""
    document = yaml.safe_load(path.read_text())
    unknown = document.keys() - GIVEN.keys() - {"why", "policies", "claim", "expect"}
    assert not unknown, f"{path}: unknown {sorted(unknown)}"
    assert document["why"], path
    return Case(path=path, given={**GIVEN, **document}, expected=document.get("expect") or {})


def verdict(case: Case) -> Verdict:
    """What comes of the review that the API server would send."""
    given = case.given
    catalog = catalog_with()
    facts = ClusterFacts.from_objects(given["facts"])
    built = snapshots.build(policies_of(given["policies"], catalog), catalog, platforms=("gfd",), max_mode=given["maxMode"], cluster=facts)
    asked = claim_review.from_document(review_of(given["claim"], namespace=given["namespace"], user=given["user"]))
    return claims.judge(asked.request(), built.facts_for(given["namespace"]))


def outcome(case: Case) -> dict[str, Any]:
    """As plain data."""
    found = verdict(case)
    if not found.judged:
        return {"unjudged": True}
    would = [{"policy": w.policy, "mode": w.mode, "violations": [str(v) for v in w.violations]} for w in found.would if w.violations]
    parts: dict[str, Any] = {"violations": [str(v) for v in found.violations], "would": would}
    return {name: part for name, part in parts.items() if part} | ({} if found.matched else {"unmatched": True})
