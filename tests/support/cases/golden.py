"""Golden cases: one YAML file is one pod, or one claim, under some policies, and what must come of it, written out.

They are test cases of policies as `berth test` runs them (docs/policy-tests.md), and read and decided by the same code:
``cli.policy_cases.case`` says what stands above ``expect:``, ``cli.policy_cases.outcome`` what stands under it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from analysis.reviews import claim_review
from analysis.reviews.review import ReviewError
from catalog import Catalog
from catalog.parse import from_mappings
from cli.policy_cases import case as policy_case
from cli.policy_cases import decisions
from cli.policy_cases.outcome import CaseDecision
from cli.policy_cases.run import write_expectation
from cli.policy_cases.worlds import CaseWorld, Worlds
from documents.files import SHIPPED_CATALOG, read_documents, read_policies
from policies.claims import judging
from policies.document import Document
from policies.engine import evaluate
from policies.objects.parse import parse_objects
from policies.policy import API_VERSION, PolicySet
from policies.request import Request
from policies.state.snapshot import Facts
from policies.verdict import Verdict
from tests.support.generators.written_claims import review_of

TESTS = Path(__file__).parents[2]
CASES = TESTS / "cases"
CLAIM_CASES = TESTS / "claim_cases"
REVIEWS = TESTS / "reviews"
LIBRARY = TESTS.parent / "policies" / "library"
MARK = "\nexpect:"
_WORLDS = Worlds()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One file, read. It is equal to itself alone, so that its decision is remembered."""

    path: Path
    read: policy_case.Case

    @property
    def given(self) -> Mapping[str, Any]:
        return self.read.given

    @property
    def expected(self) -> Mapping[str, Any]:
        return self.read.expected

    @property
    def name(self) -> str:
        """``node_affinity/an-empty-term-is-left-alone``; of a claim, ``claim_cases/all-mode``."""
        return str(self.path.relative_to(CASES if self.path.is_relative_to(CASES) else TESTS).with_suffix(""))

    @property
    def world(self) -> CaseWorld:
        """What it is decided by."""
        return _WORLDS.of(self.read)

    def facts(self, namespace: str) -> Facts:
        return self.world.snapshot.facts_for(namespace)

    def request(self) -> Request:
        """The request; raises ReviewError where the recorded review is none that can be judged."""
        asked = decisions.read_request(self.read, _WORLDS)
        if not isinstance(asked.subject, Request):
            raise ReviewError(400, asked.bad)
        return asked.subject


def load(path: Path) -> Case:
    """The case in a file. An unknown or missing key is an error: a misspelt one would test something else."""
    (document,), errors = read_documents([str(path)])
    assert not errors, errors
    found = policy_case.read_case(document, policy_case.DEFAULTS)
    assert isinstance(found, policy_case.Case), found
    return Case(path=path, read=found)


@cache
def cases() -> tuple[Case, ...]:
    """Every case of a pod, by path."""
    return tuple(load(path) for path in sorted(CASES.rglob("*.yaml")))


@cache
def claim_cases() -> tuple[Case, ...]:
    """Every case of a ResourceClaim or a ResourceClaimTemplate, by path."""
    return tuple(load(path) for path in sorted(CLAIM_CASES.glob("*.yaml")))


@cache
def catalog_with(overlays: str = "[]") -> Catalog:
    """The shipped catalog with overlays (a JSON list of maps) laid over it."""
    shipped, _ = read_documents([str(SHIPPED_CATALOG)])
    return from_mappings(shipped[0].value, *json.loads(overlays))


def policies_of(objects: Any, catalog: Catalog) -> PolicySet:
    """``library``, or objects inline, whose apiVersion may be left out. A mistake in one is an error of the case."""
    if objects == "library":
        found, errors, warnings = read_policies([str(LIBRARY)], catalog)
    else:
        documents = [Document(file="case", index=i, value={"apiVersion": API_VERSION, **one}) for i, one in enumerate(objects)]
        found, errors, warnings = parse_objects(documents, catalog)
    assert not errors, "\n".join(map(str, errors))
    assert not [w for w in warnings if "instance" not in w.message], warnings
    return found


class DecidedCase(NamedTuple):
    """A case and what comes of it."""

    case: Case
    decision: CaseDecision
    """As `berth test` has it."""
    verdict: Verdict
    """Empty where a recorded review can't be judged."""
    request: Request | None = None
    """Of a pod."""


@cache
def decide(case: Case) -> DecidedCase:
    """Decide a case, once a process."""
    asked = decisions.read_request(case.read, _WORLDS)
    decision, request, given = asked.decide(), asked.subject, case.given
    if isinstance(request, Request):
        return DecidedCase(case, decision, evaluate(request, case.facts(request.namespace)), request)
    if request is None:
        return DecidedCase(case, decision, Verdict(judged=False))
    review = claim_review.from_document(review_of(given["claim"], namespace=given["namespace"], user=given["user"]))
    return DecidedCase(
        case, decision, judging.evaluate_claim(claim_review.request_of(review, given["phase"]), case.facts(given["namespace"]))
    )


def rewrite(case: Case, outcome: Mapping[str, Any]) -> None:
    """Put ``outcome`` under ``expect:``; what stands above is kept to the byte."""
    write_expectation(case.read.document, outcome)
