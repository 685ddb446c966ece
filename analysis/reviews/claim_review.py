"""Reviews of ResourceClaims and ResourceClaimTemplates: the same wire form as a pod's (``review``), read with
the same functions.

Only the requests of a claim are read, in each version that is served: matchPolicy Equivalent concerns only
versions that no rule names, and the rules name all, so the object arrives in the version in which it was
written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from analysis.reviews import audience, review
from analysis.reviews.audit_annotations import audit_annotations
from analysis.reviews.decoding import MOST_READ
from analysis.reviews.review import ReviewError
from policies.claims import cel
from policies.claims.claim_request import ClaimRequest
from policies.facts import device_requests
from policies.request import Operation, Phase
from policies.verdict import Verdict

GROUP = "resource.k8s.io"
KINDS = {"resourceclaims": "ResourceClaim", "resourceclaimtemplates": "ResourceClaimTemplate"}
"""Resource in the API's paths -> kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimReview:
    """The fields that are read of an AdmissionReview of a claim or template."""

    uid: str
    operation: Operation
    namespace: str
    user: str
    kind: str
    name: str
    """The name, else the generateName, else ""."""
    made: dict[str, Any]
    """The object as received."""
    old: dict[str, Any] | None
    """The object before an update."""
    dry_run: bool

    def request(self, phase: Phase) -> ClaimRequest:
        """Return the request that is judged."""
        return ClaimRequest(user=self.user, kind=self.kind, made=self.made, phase=phase)

    def size(self) -> int:
        """Return the bytes of what is judged, for the bound ``decoding.MOST_READ``, without the selectors that policies write: else a
        claim could be too large for its second call."""
        read: list[Any] = []
        for one in device_requests.written_requests(self.kind, self.made):
            authors = [text for text in device_requests.expressions(one.value) if cel.parse_demand(text) is None]
            read.append((tuple(device_requests.choice(one.value)), authors))
        try:
            return len(orjson.dumps(read))
        except orjson.JSONEncodeError:  # it reads deeper nests and larger numbers than it writes
            return MOST_READ + 1


def asked_by(kind: str, claim: dict[str, Any]) -> ClaimRequest:
    """Return the request of the manifest of a claim or template, for any user."""
    return ClaimRequest(kind=kind, made=claim)


def is_about(document: object) -> bool:
    """Return whether an AdmissionReview is of a claim or a template."""
    request = document.get("request") if isinstance(document, dict) else None
    resource = request.get("resource") if isinstance(request, dict) else None
    if not isinstance(resource, dict) or resource.get("group") != GROUP:
        return False
    return isinstance(resource.get("resource"), str) and resource["resource"] in KINDS


def from_document(document: object) -> ClaimReview:
    """Return the review of a document for which ``is_about`` holds. Raises ReviewError(400)."""
    request = review.request_in(document)
    if request.get("subResource"):
        raise ReviewError(400, f"request.subResource is {review.show_json(request['subResource'])}; send only claims here")
    kind = KINDS[request["resource"]["resource"]]
    claim = request.get("object")
    if not isinstance(claim, dict):
        raise ReviewError(400, f"request.object is {review.show_json(claim)}; expected a {kind}")
    return ClaimReview(
        uid=review.text_in(request, "uid"),
        operation=review.operation_in(request),
        namespace=review.text_in(request, "namespace"),
        user=review.user_in(request),
        kind=kind,
        name=_name(request, claim),
        made=claim,
        old=old if isinstance(old := request.get("oldObject"), dict) and request.get("operation") == "UPDATE" else None,
        dry_run=request.get("dryRun") is True,
    )


def _name(request: dict[str, Any], claim: dict[str, Any]) -> str:
    metadata = claim.get("metadata")
    generated = metadata.get("generateName") if isinstance(metadata, dict) else ""
    name = request.get("name") or generated
    return name if isinstance(name, str) else ""


def answer_claim(asked: ClaimReview, verdict: Verdict, *, phase: Phase, console_url: str = "") -> dict[str, Any]:
    """Return the AdmissionReview to send back: allowed unchanged, allowed with a patch, or denied with every reason, with warnings for
    whoever makes the claim."""
    response = review.decided(asked.uid, verdict, phase, console_url)
    if annotations := {} if asked.dry_run else audit_annotations(verdict):
        response["auditAnnotations"] = annotations
    return review.sent(response, (text for _, text in audience.for_author(verdict, asked.made)))
