"""What the pods of a workload will meet, said to the one who applies it: warnings of pods die in the logs of controllers.

Reads   the AdmissionReview of a workload that the catalog knows; builds the pod of each of its templates
Says    what policies in Enforce will refuse, what those in Warn would, and the remarks, with paths of the workload
Never   refuses or edits: whatever is wrong with the workload, it is allowed
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from policies import both_phases, work
from policies.both_phases import Judgement
from policies.document import Document, InputError, path_text
from policies.engine import MOST_AUDITED
from policies.extract import Reads
from policies.request import Request
from policies.snapshot import Facts, Snapshot
from policies.verdict import Remark, Violation
from policies.workloads import parts
from policies.workloads.parts import Parts
from policies.workloads.pods import Around, Owner, Templated, pods_of
from policies.workloads.templates import workload_of
from webhook import audience, review
from webhook.review import WARNING_LENGTH, Operation, ReviewError, Unreadable
from webhook.seen import MOST_SEEN, seen
from webhook.yaml_text import one_value

MOST_TEXT = 2**14
"""characters of a text in a workload that is read as YAML, at some 200 KB/s: a patch of a pod's spec has a few hundred"""
AROUND = Around(texts=lambda text: one_value(text) if len(text) <= MOST_TEXT else None)
"""other objects are not asked for while a review is being answered"""
MOST_TEMPLATES = 16
"""judged per workload, each as costly as two reviews of a pod: a RayCluster has two to ten, a body of 3 MiB could hold 20,000"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """The part of an AdmissionReview of a workload that is read."""

    uid: str
    operation: Operation
    namespace: str
    user: str
    """who applies it; its pods are made by another"""
    api_version: str
    kind: str
    name: str
    """or its generateName; "" where it has neither"""
    workload: dict[str, Any]
    """the object, as it came"""
    dry_run: bool


def parse(body: bytes) -> Advised:
    """The review in ``body``. Raises ReviewError(400) for what is no review, for pods, and for other operations than CREATE and UPDATE."""
    return from_document(review.load(body))


def from_document(document: object) -> Advised:
    """As ``parse``, for a document that is already read."""
    request = review.request_in(document)
    _expect_workload(request)
    api_version, kind = _kind(request)
    workload = request.get("object")
    if not isinstance(workload, dict):
        raise Unreadable(f"request.object is {review.shown(workload)}; a {kind} was wanted")
    return Advised(
        uid=review.text_in(request, "uid"),
        operation=review.operation_in(request),
        namespace=review.text_in(request, "namespace"),
        user=review.user_in(request),
        api_version=api_version,
        kind=kind,
        name=_name(request, workload),
        workload=workload,
        dry_run=request.get("dryRun") is True,
    )


def advise(asked: Advised, snapshot: Snapshot) -> tuple[str, ...]:
    """What its author should know, each sentence once; nothing where its pods ask for no accelerator."""
    known = workload_of(snapshot.catalog, asked.api_version, asked.kind)
    if known is None or not known.describes_pods:
        return ()
    owner = Owner(api_version=asked.api_version, kind=asked.kind, name=asked.name, namespace=asked.namespace, workload=known)
    made = list(islice(pods_of(Document(file="", value=asked.workload), owner, snapshot.catalog, AROUND), MOST_TEMPLATES + 1))
    judged = made[:MOST_TEMPLATES]
    read = snapshot.facts_for(asked.namespace).reads
    if sum(_size(one, read) for one in judged) > MOST_SEEN:
        return ("BERTH-002: its pod templates are too large or too deep to be judged beforehand; berth try judges them",)
    facts = _for_advice(snapshot.facts_for(asked.namespace), len(judged))
    said = dict.fromkeys(s for one in judged for s in _sentences(one, asked, facts, several=len(made) > 1))
    if len(made) > MOST_TEMPLATES:
        said[f"BERTH-002: only its first {MOST_TEMPLATES} pod templates are judged beforehand; berth try judges them all"] = None
    return tuple(said)


def _for_advice(facts: Facts, templates: int) -> Facts:
    """With the policies of which something is said: those in Enforce, and as many in Warn as would be tried on one pod, shared out."""
    warns = [c for c in facts.policies if c.mode == "Warn"][: max(1, MOST_AUDITED // max(1, templates))]
    return replace(facts, policies=tuple(c for c in facts.policies if c.mode == "Enforce" or c in warns))


def _size(made: Templated | InputError, read: Reads) -> int:
    """Bytes that would be judged."""
    if isinstance(made, InputError):
        return 0
    try:
        return len(seen(made.pod, read)) if work.items(made.pod) <= work.MOST else MOST_SEEN + 1
    except ReviewError:
        return MOST_SEEN + 1


def answer(asked: Advised, sentences: Sequence[str]) -> dict[str, Any]:
    """The AdmissionReview to send back: allowed, with as many of the sentences as the API server keeps."""
    return review.sent({"uid": asked.uid, "allowed": True}, sentences)


def _sentences(made: Templated | InputError, asked: Advised, facts: Facts, *, several: bool) -> Iterator[str]:
    if isinstance(made, InputError):
        yield f"BERTH-002: {path_text(made.path)}: {made.message}; its pods are not judged beforehand"
        return
    for error in made.unread:
        yield f"BERTH-002: {path_text(error.path)}: {error.message}; it is not judged beforehand"
    request = Request(namespace=asked.namespace, user=made.user, pod=made.pod, dry_run=asked.dry_run)
    about = _Template(path_text(made.template), made.parts, several)
    yield from _said(about, both_phases.judge(request, facts), made.pod)


def _said(about: _Template, judged: Judgement, pod: dict[str, Any]) -> Iterator[str]:
    """In the order of the answer for a pod, after what refuses it."""
    yield from (about.refused(violation) for violation in judged.violations)
    yield from (about.remark(remark) for remark in audience.warned(judged.remarks, judged.violations, pod))
    for would in judged.mutate.would:
        if would.mode == "Warn":
            yield from (about.would(violation, review.would_be(would)) for violation in would.violations)


@dataclass(frozen=True, slots=True)
class _Template:
    """Sentences about pods of one template, as those who edit the template read them.

    Rules name paths of the pod. They are led by the template's path, or, where that makes a warning too long to be kept
    whole, stay as they are behind the name of the template.
    """

    path: str
    parts: Parts
    several: bool
    """the workload has other templates: the sentence says which one is meant"""

    def refused(self, violation: Violation) -> str:
        """With what else the refusal of a pod says, as far as it fits."""
        fact = f"{violation.fact}; {violation.fix}"
        ways = self._ways(violation.code, fact, "its pods will be refused", f"its pods from {self.path} will be refused")
        sentence = _first_whole(*ways, f"{violation.code} ({self.path}): {fact}")
        asked = f" (asked by {', '.join(violation.policies)})" if violation.policies else ""
        detail = f" {self._placed(violation.detail)}" if violation.detail else ""
        fuller = [f"{sentence}.{more}" for more in (detail + asked, asked, detail) if more]
        return _first_whole(*fuller, sentence)

    def would(self, violation: Violation, would_be: str) -> str:
        fact = f"{violation.fact}; {violation.fix}"
        return _first_whole(*self._ways(violation.code, fact, would_be, f"pods from {self.path} {would_be}"))

    def remark(self, remark: Remark) -> str:
        return _first_whole(f"{remark.code}: {self._placed(remark.text)}", f"{remark.code} ({self.path}): {remark.text}")

    def _ways(self, code: str, fact: str, opening: str, named: str) -> Iterator[str]:
        """The template is named once: by the paths in the fact, or before it."""
        placed = self._placed(fact)
        yield f"{code} ({named if self.several and placed == fact else opening}): {placed}"
        yield f"{code} ({named}): {fact}"

    def _placed(self, text: str) -> str:
        return parts.placed(text, self.parts)


def _first_whole(*sentences: str) -> str:
    """The first that a warning holds uncut, else the last."""
    return next((sentence for sentence in sentences if len(sentence) <= WARNING_LENGTH), sentences[-1])


def _expect_workload(request: dict[str, Any]) -> None:
    resource = request.get("resource")
    if not isinstance(resource, dict):
        raise ReviewError(400, f"request.resource is {review.shown(resource)}; a group, version and resource were wanted")
    if resource.get("group", "") == "" and resource.get("resource") == "pods":
        raise ReviewError(400, "request.resource is pods; send them to /mutate and /validate, and workloads here")
    if request.get("subResource"):
        raise ReviewError(400, f"request.subResource is {review.shown(request['subResource'])}; send only workloads themselves here")


def _kind(request: dict[str, Any]) -> tuple[str, str]:
    """apiVersion and kind of the object under review, which an equivalent one may have been converted to."""
    kind = request.get("kind")
    texts = [kind.get(field) for field in ("group", "version", "kind")] if isinstance(kind, dict) else []
    match texts:
        case [str(group), str(version), str(name)] if version and name:
            return (f"{group}/{version}" if group else version), name
    raise ReviewError(400, f"request.kind is {review.shown(kind)}; a group, version and kind were wanted")


def _name(request: dict[str, Any], workload: dict[str, Any]) -> str:
    metadata = workload.get("metadata")
    written = (metadata.get("name"), metadata.get("generateName")) if isinstance(metadata, dict) else ()
    return next((name for name in (request.get("name"), *written) if isinstance(name, str) and name), "")
