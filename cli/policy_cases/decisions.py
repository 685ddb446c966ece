"""The decision on a case under a snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from analysis.reviews import review
from analysis.reviews.review import ReviewError
from cli.policy_cases import outcome
from cli.policy_cases.case import Case
from cli.policy_cases.outcome import CaseDecision
from cli.policy_cases.worlds import CaseError, CaseWorld, Worlds
from documents.files import read_documents
from kube.templates import bare_pod, with_defaults
from policies.claims.claim_request import ClaimRequest
from policies.document import InputError
from policies.request import Request
from policies.state.snapshot import Snapshot
from policies.workloads import pod_schema

Subject = Request | ClaimRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRequest:
    """What is asked of a world."""

    case: Case
    world: CaseWorld
    subject: Subject | None
    """None where the review can't be judged."""
    bad: str = ""
    """The sentence for such a review."""

    def decide(self, snapshot: Snapshot | None = None) -> CaseDecision:
        """Decide, under the world's own snapshot unless another one is given."""
        if self.subject is None:
            return CaseDecision(outcome={"bad": self.bad}, is_evaluated=False)
        snapshot = snapshot or self.world.snapshot
        if isinstance(self.subject, ClaimRequest):
            return outcome.of_claim(self.subject, snapshot.facts_for(self.case.given["namespace"]))
        facts = snapshot.facts_for(self.subject.namespace)
        return outcome.of_pod(self.subject, facts, whole_patch="patch" in self.case.expected)


def read_request(case: Case, worlds: Worlds) -> CaseRequest:
    """Return what a case asks. Raises CaseError where it can't be asked."""
    world, given = worlds.of(case), case.given
    if given["claim"] is not None:
        request = ClaimRequest(user=given["user"], kind=given["claim"]["kind"], made=given["claim"], phase=given["phase"])
        return CaseRequest(case=case, world=world, subject=request)
    if given["review"] is not None:
        try:
            reviewed = review.from_document(_review(worlds.file(case, given["review"])), given["phase"])
        except ReviewError as error:
            return CaseRequest(case=case, world=world, subject=None, bad=error.sentence)
        return CaseRequest(case=case, world=world, subject=reviewed)
    return CaseRequest(case=case, world=world, subject=_pod_request(case, world))


def _review(path: str) -> Any:
    found, errors = read_documents([path])
    if errors or len(found) != 1:
        raise CaseError(errors or [InputError(file=path, message="must be one AdmissionReview; it has several documents")])
    return found[0].value


def _pod_request(case: Case, world: CaseWorld) -> Request:
    given = case.given
    try:
        pod_schema.check(case.document, given["pod"], ("pod",), world.catalog)
        if given["oldPod"] is not None:
            pod_schema.check(case.document, given["oldPod"], ("oldPod",), world.catalog)
    except InputError as error:
        raise CaseError([error]) from None
    old = given["oldPod"]
    return Request(
        operation=given["operation"],
        namespace=given["namespace"],
        user=given["user"],
        groups=tuple(given["groups"]),
        subresource=given["subresource"],
        pod=bare_pod(given["pod"], given["namespace"]) if given["defaults"] else given["pod"],
        old_pod=with_defaults(old) if old is not None and given["defaults"] else old,
        phase=given["phase"],
    )
