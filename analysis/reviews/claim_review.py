"""Reviews of ResourceClaims and ResourceClaimTemplates: the same wire form as a pod's (``review``), read with
the same functions.

Only the requests of a claim are read, in each version that is served: matchPolicy Equivalent concerns only
versions that no rule names, and the rules name all, so the object arrives in the version in which it was
written.
"""

from __future__ import annotations

from typing import Any

import orjson

from analysis.reviews import review
from analysis.reviews.review import ObjectRequest, ReviewError
from policies.claims import cel
from policies.claims.claim_request import ClaimRequest
from policies.facts import device_requests
from policies.request import Phase
from policies.work_budget import MOST_READ

GROUP = "resource.k8s.io"
KINDS = {
    (GROUP, "resourceclaims"): "ResourceClaim",
    (GROUP, "resourceclaimtemplates"): "ResourceClaimTemplate",
}
"""API group and resource -> kind."""


def request_of(request: ObjectRequest, phase: Phase) -> ClaimRequest:
    """Return the request that is judged."""
    return ClaimRequest(user=request.user, kind=request.kind, made=request.value, phase=phase)


def size_of(request: ObjectRequest) -> int:
    """Return the bytes of what is judged, for the bound ``policies.work_budget.MOST_READ``, without the selectors that
    policies write: else a claim could be too large for its second call."""
    read: list[Any] = []
    for device_request in device_requests.written_requests(request.kind, request.value):
        authors = [text for text in device_requests.expressions(device_request.value) if cel.parse_demand(text) is None]
        read.append((tuple(device_requests.choice(device_request.value)), authors))
    try:
        return len(orjson.dumps(read))
    except orjson.JSONEncodeError:  # it reads deeper nests and larger numbers than it writes
        return MOST_READ + 1


def from_document(document: object) -> ObjectRequest:
    """Return the review of a document whose resource is in ``KINDS``. Raises ReviewError(400)."""
    request = review.request_in(document)
    review.expect_no_subresource(request, "claims")
    kind = KINDS[GROUP, request["resource"]["resource"]]
    claim = request.get("object")
    if not isinstance(claim, dict):
        raise ReviewError(400, f"request.object is {review.show_json(claim)}; expected a {kind}")
    return review.read_object(request, claim, kind)
