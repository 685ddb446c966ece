"""AdmissionReview v1, both ways: bytes to a typed Review, and a Verdict to the answer.

Nothing else knows the wire form but ``advise``, which reads workloads with the same parts.

What the API server checks in an answer: the uid and the kind are echoed, ``patch`` and ``patchType`` come together or
not at all, and a validating call sends neither (kube-apiserver 1.36, admission/request/admissionreview.go).
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from cluster import shallow
from policies.document import kind_of
from policies.request import Phase, Request
from policies.verdict import Verdict, Violation, Would
from webhook import audience
from webhook.evidence import audit_annotations

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
Operation = Literal["CREATE", "UPDATE"]

WARNING_LENGTH = 256
"""The API server cuts every warning to this many characters once all of them pass the total, so none is longer."""
WARNINGS_TOTAL = 4096
"""Characters of all warnings of a response together (endpoints/filters/warning.go); what comes after is dropped there."""


class ReviewError(Exception):
    """A body that is no review Berth can judge: the HTTP status, and one sentence for the caller."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class Unreadable(ReviewError):
    """Something that an author may have written is not understood. It is answered by the review's head (``unread``); only where there is
    none, by status 400."""

    def __init__(self, sentence: str, fix: str = "write it as Kubernetes has it") -> None:
        super().__init__(400, sentence)
        self.fix = fix


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The part of an AdmissionReview that is read, the same for both phases. Pods are dicts, as they came."""

    uid: str
    operation: Operation
    namespace: str
    user: str
    groups: tuple[str, ...]
    subresource: str
    pod: dict[str, Any]
    old_pod: dict[str, Any] | None
    dry_run: bool

    def request(self, phase: Phase) -> Request:
        """The engine's view of it."""
        return Request(
            operation=self.operation,
            namespace=self.namespace,
            user=self.user,
            groups=self.groups,
            subresource=self.subresource,
            pod=self.pod,
            old_pod=self.old_pod,
            dry_run=self.dry_run,
            phase=phase,
        )


def parse(body: bytes) -> Review:
    """The review in ``body``. Duplicate keys are read as Go reads them: the last one wins.

    Raises Unreadable for JSON that is broken or an object that is none, ReviewError(400) for anything but a CREATE or UPDATE of a pod.
    """
    return from_document(load(body))


def from_document(document: object) -> Review:
    """As ``parse``, for a document that is already read."""
    request = request_in(document)
    _expect_pod(request)
    operation = operation_in(request)
    return Review(
        uid=text_in(request, "uid"),
        operation=operation,
        namespace=text_in(request, "namespace"),
        user=user_in(request),
        groups=_groups_in(request),
        subresource=_subresource_in(request),
        pod=_pod(request, "object"),
        old_pod=_pod(request, "oldObject") if operation == "UPDATE" else None,
        dry_run=request.get("dryRun") is True,
    )


def answer(review: Review, verdict: Verdict, *, phase: Phase = "mutate") -> dict[str, Any]:
    """The AdmissionReview to send back: allowed as it is, allowed with a patch, or denied with every reason."""
    response: dict[str, Any] = {"uid": review.uid, "allowed": not verdict.violations}
    if verdict.violations:
        response["status"] = {"status": "Failure", "code": 403, "reason": "Forbidden", "message": refusal(verdict.violations)}
    elif verdict.patch and phase == "mutate":
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(verdict.patch)).decode("ascii")
    annotations = {} if review.dry_run else audit_annotations(verdict)
    if annotations:
        response["auditAnnotations"] = annotations
    return sent(response, _said(review, verdict))


def sent(response: dict[str, Any], sentences: Iterable[str]) -> dict[str, Any]:
    """The AdmissionReview around a response, with the warnings that ``sentences`` become."""
    if warnings := list(fitting(sentences)):
        response["warnings"] = warnings
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


MOST_REASONS = 20
REASON_LENGTH = 1000
"""Characters of one reason. Code, fact and fix are in the first 200; the rest may quote what an author wrote, a megabyte of it."""


def refusal(violations: Sequence[Violation]) -> str:
    """One violation is its sentence; more are a list, at most twenty. The API server puts the webhook's name in front."""
    reasons = [printable(str(violation), REASON_LENGTH) for violation in violations[:MOST_REASONS]]
    if len(violations) == 1:
        return reasons[0]
    more = [f"and {len(violations) - MOST_REASONS} more"] if len(violations) > MOST_REASONS else []
    return "\n".join([f"{len(violations)} reasons:", *(f"- {reason}" for reason in reasons), *more])


def fitting(sentences: Iterable[str]) -> Iterator[str]:
    """Sentences as warnings that the API server keeps: each once, in one line of at most 256 characters.

    Where the total does not fit, the last one says how many are left.
    """
    lines = list(dict.fromkeys(printable(text) for text in sentences))
    room = WARNINGS_TOTAL
    for index, line in enumerate(lines):
        left = len(lines) - index
        if left > 1 and len(line) > room - WARNING_LENGTH:  # room for this one and the closing line
            yield f"BERTH-001: {left} more warnings did not fit; berth try shows them all"
            return
        room -= len(line)
        yield line


def _said(review: Review, verdict: Verdict) -> Iterator[str]:
    """What the author sees beside the answer: the remarks that are for authors, and what policies in Warn would refuse."""
    yield from map(str, audience.warned(verdict.remarks, verdict.violations, review.pod))
    for would in (w for w in verdict.would if w.mode == "Warn"):
        yield from (f"{v.code} ({would_be(would)}): {v.fact}; {v.fix}" for v in would.violations)


def would_be(would: Would) -> str:
    """What becomes of the pod, said of a policy in Warn."""
    return f"would be refused, were {would.policy} in Enforce"


def printable(text: str, length: int = WARNING_LENGTH) -> str:
    """One line of printable characters: a control character would make the API server drop the whole warning."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 3] + "..."


LARGEST_MENDED = 84 * 2**10
"""Bytes of a review that are read where orjson refuses it: the 10,000 levels that Go reads fit. No review has to be that nobody made so."""
MOST_MENDED = 11_000
"""commas and brackets of it: each takes a microsecond, and 1,000 are left beside those levels"""
_FIX_JSON = "leave out what is nested over 1,000 levels deep, or is no Unicode or number (managedFields too), and make it anew"


MOST_MARKS = 80_000
"""Commas and brackets of a body that is read: each may begin a value, which takes up to a third of a microsecond; counting takes 15 ms
at most. A pod of 3 MiB with ten thousand environment variables has 31,000, and its update twice as many."""


def _marks(body: bytes) -> int:
    return body.count(b",") + body.count(b"{") + body.count(b"[")


def load(body: bytes) -> object:
    """The JSON document in ``body``: what is too deep in it is null (``cluster.shallow``). Raises Unreadable."""
    if len(body) > MOST_MARKS and (marks := _marks(body)) > MOST_MARKS:
        raise Unreadable(f"it has {marks} commas and brackets, and {MOST_MARKS} are read", "move what is large in it into a ConfigMap")
    try:
        return orjson.loads(body)
    except ValueError as error:
        return _mended(body, error)


def _mended(body: bytes, why: ValueError) -> object:
    if len(body) <= LARGEST_MENDED and _marks(body) <= MOST_MENDED:
        with contextlib.suppress(ValueError):
            return shallow.loads(body)
    raise Unreadable(f"the body is not JSON: {why}", _FIX_JSON) from None


def request_in(document: object) -> dict[str, Any]:
    """The request of an AdmissionReview. Raises ReviewError(400) where the document is none."""
    if not isinstance(document, dict) or document.get("kind") != KIND or document.get("apiVersion") != API_VERSION:
        raise ReviewError(400, f"the body is not an {KIND} of {API_VERSION}")
    request = document.get("request")
    if not isinstance(request, dict):
        raise ReviewError(400, f"the {KIND} has no request")
    return request


def operation_in(request: dict[str, Any]) -> Operation:
    """What is done to the object; nothing is judged on DELETE and CONNECT. Raises ReviewError(400)."""
    operation = request.get("operation")
    if operation == "CREATE":
        return "CREATE"
    if operation == "UPDATE":
        return "UPDATE"
    raise ReviewError(400, f"request.operation is {shown(operation)}; Berth judges CREATE and UPDATE")


def _expect_pod(request: dict[str, Any]) -> None:
    resource = request.get("resource")
    if not isinstance(resource, dict) or resource.get("group", "") != "" or resource.get("resource") != "pods":
        raise ReviewError(400, f"request.resource is {shown(resource)}; send only pods here")


def _subresource_in(request: dict[str, Any]) -> str:
    """ "" for the pod itself. Raises ReviewError(400) for any but ``resize``."""
    found = request.get("subResource") or ""
    if found in ("", "resize"):
        return str(found)
    raise ReviewError(400, f"request.subResource is {shown(found)}; send only pods themselves here, and resize")


def user_in(request: dict[str, Any]) -> str:
    """The name of who asks; one that cannot be read is nobody's, whom no policy exempts."""
    info = request.get("userInfo")
    name = info.get("username", "") if isinstance(info, dict) else ""
    return name if isinstance(name, str) else ""


def _groups_in(request: dict[str, Any]) -> tuple[str, ...]:
    """What can't be read is no group: nobody is spared for it, nor for one that is no text, which equals no group's name."""
    info = request.get("userInfo")
    groups = info.get("groups") if isinstance(info, dict) else None
    return tuple(groups) if isinstance(groups, list) else ()


def _pod(request: dict[str, Any], field: str) -> dict[str, Any]:
    pod = request.get(field)
    if not isinstance(pod, dict):
        raise Unreadable(f"request.{field} is {shown(pod)}; a pod was wanted")
    return pod


def text_in(request: dict[str, Any], field: str) -> str:
    """A field that no review lacks. Raises ReviewError(400)."""
    value = request.get(field)
    if not isinstance(value, str) or not value:
        raise ReviewError(400, f"request.{field} is {shown(value)}; a text was wanted")
    return value


def shown(value: object) -> str:
    """A wrong value as messages show it, at most 100 characters of it."""
    if value is None:
        return "missing"
    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # it reads 1,024 levels and writes 254
        return kind_of(value)
    return text if len(text) <= 100 else text[:97] + "..."
