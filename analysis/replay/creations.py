"""Entries of recordings as creations of pods: AdmissionReviews with or without their answers, and events of an API
server's audit log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from analysis.audit.stored_pod import controller_of
from analysis.replay.arrival import as_met
from analysis.replay.noted import Noted, Then, answered, noted, operations
from analysis.reviews import review
from analysis.reviews.review import ReviewError, Unreadable
from catalog import Catalog
from kube.review import KIND, PODS, resource_of
from kube.templates import bare_pod
from kube.tree import Raw, map_at, text_of
from policies.request import Request

Passed = Literal[
    "accelerator", "stage", "dry-run", "resource", "verb", "update", "level", "truncated", "early", "excluded", "namespace",
    "repeated", "large", "unshaped", "kind", "unreadable", "beginning", "end", "long", "reports",
]  # fmt: skip
"""Why an entry is passed over; ``cli.replaying.output`` has a sentence for each."""
REPORTS = ("Report", "PolicyReport", "ClusterReport", "ClusterPolicyReport")


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """One pod that was to be created, or updated."""

    request: Request
    then: Then | None
    """None: no record of what was decided."""
    identity: str = ""
    """The auditID of an event: one that is recorded twice counts once."""

    @property
    def name(self) -> str:
        metadata = map_at(self.request.pod, "metadata")
        return text_of(metadata.get("name")) or text_of(metadata.get("generateName"))

    @property
    def workload(self) -> tuple[str, str]:
        """Kind and name of the pod's owner; a Deployment for its ReplicaSet, whose name it is with a hash. ("Pod", "")
        for pods that nobody owns."""
        metadata = map_at(self.request.pod, "metadata")
        owner = controller_of(metadata)
        if owner is None:
            return "Pod", ""
        hashed = text_of(map_at(metadata, "labels").get("pod-template-hash"))
        if owner.kind == "ReplicaSet" and hashed and owner.name.endswith(f"-{hashed}"):
            return "Deployment", owner.name.removesuffix(f"-{hashed}")
        return owner.kind, owner.name


def creation(value: object, catalog: Catalog) -> Creation | Passed:
    """Return an entry as the creation of a pod, or why it is none that can be judged."""
    if not isinstance(value, dict):
        return "kind"
    kind = value.get("kind")
    if _is_event(value):
        found = _of_event(value)
    elif kind == KIND:
        found = _of_review(value)
    else:
        return "reports" if kind in REPORTS else "kind"
    if isinstance(found, Creation) and found.request.namespace in catalog.excluded_namespaces:
        return "excluded"
    return found


def _is_event(value: Raw) -> bool:
    """Return whether an object is an event of an audit log. The items of an EventList, which the API server sends to its
    audit webhook, have neither kind nor version; an Event of the core group has no auditID."""
    return value.get("kind") in ("Event", None) and isinstance(value.get("auditID"), str) and "stage" in value


# --- audit events -------------------------------------------------------------------------------------------


def _of_event(event: Raw) -> Creation | Passed:
    reference = map_at(event, "objectRef")
    if reference.get("resource") != "pods" or reference.get("apiGroup"):
        return "resource"
    if event.get("stage") != "ResponseComplete":
        return "stage"
    verb, subresource = event.get("verb"), reference.get("subresource")
    code = map_at(event, "responseStatus").get("code")
    applied = verb == "patch" and code == 201  # server-side apply of a pod that was not there
    if subresource not in (None, "", "resize") or not (verb in ("create", "update") or verb == "patch"):
        return "verb"
    if verb != "create" and not applied:
        return "update"
    if "dryRun=" in text_of(event.get("requestURI")):
        return "dry-run"
    pod = event.get("requestObject")
    annotations = event.get("annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    if not isinstance(pod, dict):
        if annotations.get("audit.k8s.io/truncated") == "true":
            return "truncated"
        return "early" if event.get("level") in ("Request", "RequestResponse") else "level"
    namespace = text_of(reference.get("namespace"))
    user = map_at(event, "impersonatedUser") or map_at(event, "user")
    groups = user.get("groups")
    try:
        webhooks = noted(annotations)
        pod = _met(bare_pod(pod, namespace) if applied else pod, event.get("responseObject"), webhooks)
    except (TypeError, LookupError, AttributeError, ValueError):
        return "unshaped"
    return Creation(
        request=Request(
            namespace=namespace,
            user=text_of(user.get("username")),
            groups=tuple(one for one in groups if isinstance(one, str)) if isinstance(groups, list) else (),
            pod=pod,
        ),
        then=webhooks.then,
        identity=text_of(event.get("auditID")),
    )


def _met(pod: Raw, stored: object, webhooks: Noted) -> Raw:
    if isinstance(stored, dict) and stored.get("kind") == "Pod":
        every = [one for text in webhooks.every for one in operations(text)]
        return as_met(pod, stored, map(operations, webhooks.before), every)
    return as_met(pod, None, map(operations, webhooks.before), ())


# --- reviews ------------------------------------------------------------------------------------------------


def _of_review(value: Raw) -> Creation | Passed:
    request = map_at(value, "request")
    if resource_of(value) != PODS:
        return "resource"
    if request.get("dryRun") is True:
        return "dry-run"
    try:
        asked = review.from_document(value)
    except Unreadable:
        return "unshaped"
    except ReviewError:
        return "verb" if request.get("operation") in ("DELETE", "CONNECT") else "unshaped"
    response = value.get("response")
    return Creation(request=asked, then=answered(response) if isinstance(response, dict) else None, identity="")
