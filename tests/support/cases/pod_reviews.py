"""Reviews of pods, from the requests that the generators draw."""

from __future__ import annotations

from policies.request import Request
from webhook.admission.review import Review


def review_of(request: Request) -> Review:
    """The review that the API server would send of it; no dry run."""
    return Review(
        uid="u",
        operation=request.operation,
        namespace=request.namespace,
        user=request.user,
        groups=request.groups,
        subresource=request.subresource,
        pod=request.pod,
        old_pod=request.old_pod,
        dry_run=False,
    )
