"""AdmissionReview v1 in both directions: bytes to a typed Request, and a Verdict to the answer; its form is in ``kube.review``.

The API server checks in an answer that the uid and the kind are echoed, that ``patch`` and ``patchType`` come
together or not at all, and that a validating call sends neither (kube-apiserver 1.36,
admission/request/admissionreview.go).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from analysis.reviews import audience
from analysis.reviews.audit_annotations import audit_annotations
from analysis.reviews.decoding import ReviewError as ReviewError
from analysis.reviews.decoding import Unreadable as Unreadable
from analysis.reviews.decoding import decode_body
from kube.review import (
    API_VERSION,
    KIND,
    PODS,
    WARNING_LENGTH,
    WARNINGS_TOTAL,
    allow,
    deny,
    object_name,
    old_object,
    resource_of,
    user_of,
)
from kube.tree import Raw, kind_of
from policies.messages import console_link, phrase
from policies.request import Operation, Phase, Request
from policies.verdict import Remark, Verdict, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRequest:
    """The fields that are read of an AdmissionReview of a claim, its template or a workload."""

    uid: str
    operation: Operation
    namespace: str
    user: str
    """The user who applies it; the pods of a workload are created by another."""
    api_version: str = ""
    """Of a workload; a claim is read in the same way in every version."""
    kind: str
    name: str
    """The name, else the generateName, else ""."""
    value: Raw
    """The object, as received."""
    old: Raw | None = None
    """The object before an update."""
    dry_run: bool


def parse(body: bytes, phase: Phase = "mutate") -> Request:
    """Return the review in ``body``. Of duplicate keys the last one wins, as in Go. Raises Unreadable for
    broken JSON or an object that is no pod, ReviewError(400) for anything but a CREATE or UPDATE of a pod."""
    return from_document(decode_body(body), phase)


def from_document(document: object, phase: Phase = "mutate") -> Request:
    """Return the review in a decoded document, as ``parse`` does."""
    request = request_in(document)
    if resource_of(document) != PODS:
        raise ReviewError(400, f"request.resource is {show_json(request.get('resource'))}; send only pods here")
    operation = operation_in(request)
    user, groups = user_of(request)
    return Request(
        uid=text_in(request, "uid"),
        operation=operation,
        namespace=text_in(request, "namespace"),
        user=user,
        groups=groups,
        subresource=_subresource_in(request),
        pod=_pod(request, "object"),
        old_pod=_pod(request, "oldObject") if operation == "UPDATE" else None,
        dry_run=request.get("dryRun") is True,
        phase=phase,
    )


def read_object(request: Raw, value: Raw, kind: str, api_version: str = "") -> ObjectRequest:
    """Return the review of an object that is no pod. Raises ReviewError(400)."""
    return ObjectRequest(
        uid=text_in(request, "uid"),
        operation=operation_in(request),
        namespace=text_in(request, "namespace"),
        user=user_of(request)[0],
        api_version=api_version,
        kind=kind,
        name=object_name(request, value),
        value=value,
        old=old_object(request),
        dry_run=request.get("dryRun") is True,
    )


def answer_review(
    request: Request, verdict: Verdict, *, phase: Phase = "mutate", console_url: str = "", workload: str = ""
) -> dict[str, Any]:
    """Return the AdmissionReview to send back: allowed unchanged, allowed with a patch, or denied with every
    reason. ``console_url``: where to look, named at the end of a denial, and as the last warning; ``workload``: as
    ``console_link.controller`` returns it."""
    response = _respond(request, verdict, phase, console_url, workload)
    warned = list(audience.for_author(verdict, request.pod))
    see = console_link.see(console_url, workload, warned[0][0]) if console_url and warned else ""
    return sent(response, (text for _, text in warned), see)


def answer_object(request: ObjectRequest, verdict: Verdict, phase: Phase, console_url: str = "") -> Raw:
    """Return the AdmissionReview to send back of a claim or a workload, as ``answer_review`` does of a pod."""
    return sent(_respond(request, verdict, phase, console_url), (text for _, text in audience.for_author(verdict, {})))


def _respond(request: Request | ObjectRequest, verdict: Verdict, phase: Phase, console_url: str = "", workload: str = "") -> Raw:
    """Return the response without warnings: allowed, with the patch if the phase is mutate, or denied with every reason."""
    if verdict.violations:
        response = deny(request.uid, denial(verdict.violations, console_url, workload))
    elif verdict.patch and phase == "mutate":
        patch = base64.b64encode(orjson.dumps(verdict.patch)).decode("ascii")
        response = {**allow(request.uid), "patchType": "JSONPatch", "patch": patch}
    else:
        response = allow(request.uid)
    if not request.dry_run and (annotations := audit_annotations(verdict)):
        response["auditAnnotations"] = annotations
    return response


def sent(response: dict[str, Any], sentences: Iterable[str], see: str = "") -> dict[str, Any]:
    """Return the AdmissionReview around a response, with ``sentences`` as warnings; after them ``see``, if there is room for it."""
    if warnings := list(fitting(sentences)):
        room = WARNINGS_TOTAL - sum(map(len, warnings))
        response["warnings"] = [*warnings, see] if see and len(see) <= min(WARNING_LENGTH, room) else warnings
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


MOST_REASONS = 20
REASON_LENGTH = 1000
"""The most characters of one reason. Code, fact and fix are in the first 200; the rest may quote what an
author wrote, a megabyte of it."""


def denial(violations: Sequence[Violation], console_url: str = "", workload: str = "") -> str:
    """Return the message of a denial: the sentence of a single violation, else a list of at most twenty; then where to look, if
    there is a console. The API server puts the webhook's name in front."""
    see = console_link.see(console_url, workload, violations[0].code) if console_url else ""
    reasons = [flatten_text(str(violation), REASON_LENGTH) for violation in violations[:MOST_REASONS]]
    if len(violations) == 1:
        return f"{reasons[0]} {see}" if see else reasons[0]
    more = [f"and {len(violations) - MOST_REASONS} more"] if len(violations) > MOST_REASONS else []
    return "\n".join(filter(None, [f"{len(violations)} reasons:", *(f"- {reason}" for reason in reasons), *more, see]))


def fitting(sentences: Iterable[str]) -> Iterator[str]:
    """Yield the sentences as warnings that the API server keeps: each once, in one line of at most 256
    characters. If the total does not fit, the last warning gives the number left out."""
    lines = list(dict.fromkeys(flatten_text(text) for text in sentences))
    room = WARNINGS_TOTAL
    for index, line in enumerate(lines):
        left = len(lines) - index
        if left > 1 and len(line) > room - WARNING_LENGTH:  # room for this one and the closing line
            yield str(Remark(code="BERTH-001", found=phrase("text", left=left)))
            return
        room -= len(line)
        yield line


def flatten_text(text: str, length: int = WARNING_LENGTH) -> str:
    """Return the text as one line of printable characters: a control character would make the API server drop
    the whole warning."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 3] + "..."


def request_in(document: object) -> dict[str, Any]:
    """Return the request of an AdmissionReview. Raises ReviewError(400) where the document is no
    AdmissionReview."""
    if not isinstance(document, dict) or document.get("kind") != KIND or document.get("apiVersion") != API_VERSION:
        raise ReviewError(400, f"the body is not an {KIND} of {API_VERSION}")
    request = document.get("request")
    if not isinstance(request, dict):
        raise ReviewError(400, f"the {KIND} has no request")
    return request


def operation_in(request: dict[str, Any]) -> Operation:
    """Return the operation; DELETE and CONNECT are not judged. Raises ReviewError(400)."""
    operation = request.get("operation")
    if operation == "CREATE":
        return "CREATE"
    if operation == "UPDATE":
        return "UPDATE"
    raise ReviewError(400, f"request.operation is {show_json(operation)}; Berth evaluates CREATE and UPDATE")


def _subresource_in(request: dict[str, Any]) -> str:
    """Return the subresource, "" for the pod itself. Raises ReviewError(400) for any but ``resize``."""
    subresource = request.get("subResource") or ""
    if subresource in ("", "resize"):
        return str(subresource)
    raise ReviewError(400, f"request.subResource is {show_json(subresource)}; send only pods here, or their subresource resize")


def expect_no_subresource(request: Raw, wanted: str) -> None:
    """Raise ReviewError(400) if the review is not of the objects themselves. ``wanted``: their name for the message."""
    if request.get("subResource"):
        raise ReviewError(400, f"request.subResource is {show_json(request['subResource'])}; send only {wanted} here")


def _pod(request: dict[str, Any], field: str) -> dict[str, Any]:
    pod = request.get(field)
    if not isinstance(pod, dict):
        raise Unreadable(f"request.{field} is {show_json(pod)}; expected a pod")
    return pod


def text_in(request: dict[str, Any], field: str) -> str:
    """Return a required field of the request. Raises ReviewError(400)."""
    value = request.get(field)
    if not isinstance(value, str) or not value:
        raise ReviewError(400, f"request.{field} is {show_json(value)}; expected a string")
    return value


def show_json(value: object) -> str:
    """Return a wrong value in the form that messages show, at most 100 characters of it."""
    if value is None:
        return "missing"
    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # it reads 1,024 levels and writes 254
        return kind_of(value)
    return text if len(text) <= 100 else text[:97] + "..."
