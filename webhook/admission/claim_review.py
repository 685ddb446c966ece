"""Reviews of ResourceClaims and ResourceClaimTemplates: the same wire form as a pod's (``review``), read with
the same functions.

Only the requests of a claim are read, in each version that is served: matchPolicy Equivalent concerns only
versions that no rule names, and the rules name all, so the object arrives in the version in which it was
written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from policies.claims import ClaimRequest
from policies.state.cluster_facts import Claim, read
from policies.verdict import Verdict
from webhook.admission import review
from webhook.admission.audit_annotations import audit_annotations
from webhook.admission.decoding import MOST_READ
from webhook.admission.review import Operation, ReviewError

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
    claim: Claim
    dry_run: bool

    def request(self) -> ClaimRequest:
        """Return the request that is judged."""
        return ClaimRequest(user=self.user, claim=self.claim, path=_path(self.kind))

    def size(self) -> int:
        """Return the bytes of what is judged, for the bound ``decoding.MOST_READ``."""
        try:
            return len(orjson.dumps([[tuple(choice) for choice in choices] for choices in self.claim]))
        except orjson.JSONEncodeError:  # it reads deeper nests and larger numbers than it writes
            return MOST_READ + 1


def asked_by(kind: str, claim: dict[str, Any]) -> ClaimRequest:
    """Return the request of the manifest of a claim or template, for any user."""
    return ClaimRequest(claim=_read(kind, claim), path=_path(kind))


def _path(kind: str) -> str:
    return f"spec.{'spec.' if kind == 'ResourceClaimTemplate' else ''}devices.requests"


def is_about(document: object) -> bool:
    """Return whether an AdmissionReview is of a claim or a template."""
    request = document.get("request") if isinstance(document, dict) else None
    resource = request.get("resource") if isinstance(request, dict) else None
    return isinstance(resource, dict) and resource.get("group") == GROUP and resource.get("resource") in KINDS


def from_document(document: object) -> ClaimReview:
    """Return the review of a document for which ``is_about`` holds. Raises ReviewError(400)."""
    request = review.request_in(document)
    if request.get("subResource"):
        raise ReviewError(400, f"request.subResource is {review.shown(request['subResource'])}; send only claims themselves here")
    kind = KINDS[request["resource"]["resource"]]
    claim = request.get("object")
    if not isinstance(claim, dict):
        raise ReviewError(400, f"request.object is {review.shown(claim)}; a {kind} was wanted")
    return ClaimReview(
        uid=review.text_in(request, "uid"),
        operation=review.operation_in(request),
        namespace=review.text_in(request, "namespace"),
        user=review.user_in(request),
        kind=kind,
        name=_name(request, claim),
        claim=_read(kind, claim),
        dry_run=request.get("dryRun") is True,
    )


def _name(request: dict[str, Any], claim: dict[str, Any]) -> str:
    metadata = claim.get("metadata")
    generated = metadata.get("generateName") if isinstance(metadata, dict) else ""
    name = request.get("name") or generated
    return name if isinstance(name, str) else ""


def _read(kind: str, claim: dict[str, Any]) -> Claim:
    """Read the requests of a claim, as for the facts about claims.

    Its name does not matter, and a generated one does not exist yet.
    """
    (entry,) = read(kind, {**claim, "metadata": {"name": "made", "namespace": "here"}})
    found: Claim = entry.value
    return found


def answer(asked: ClaimReview, verdict: Verdict, console_url: str = "") -> dict[str, Any]:
    """Return the AdmissionReview to send back: allowed, or denied with every reason, with warnings of
    policies in Warn."""
    response: dict[str, Any] = {"uid": asked.uid, "allowed": not verdict.violations}
    if verdict.violations:
        message = review.refusal(verdict.violations, console_url)
        response["status"] = {"status": "Failure", "code": 403, "reason": "Forbidden", "message": message}
    if annotations := {} if asked.dry_run else audit_annotations(verdict):
        response["auditAnnotations"] = annotations
    return review.sent(response, _warnings(verdict))


def _warnings(verdict: Verdict) -> Iterator[str]:
    for would in (w for w in verdict.would if w.mode == "Warn"):
        yield from (f"{v.code} ({review.would_be(would)}): {v.fact}; {v.fix}" for v in would.violations)
