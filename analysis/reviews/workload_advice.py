"""Advice about the pods of a workload, for the user who applies it: warnings about pods only reach the logs
of controllers.

It reads the AdmissionReview of a workload that the catalog knows, and builds the pod of each of its
templates. The warnings list what policies in Enforce will deny, what those in Warn would deny, and the
remarks, with paths of the workload. It never denies or edits: whatever is wrong with the workload, it is
allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from analysis.admission_preview import AdmittedPod, preview_admission
from analysis.kueue import places
from analysis.reviews import audience as warnings
from analysis.reviews import review
from analysis.reviews.decoding import decode_body, encoded
from analysis.reviews.review import ObjectRequest, ReviewError, Unreadable
from documents.yaml_reader import one_value
from kube.review import PODS, WARNING_LENGTH, allow, object_kind, resource_of
from kube.tree import Path, Raw, dotted
from policies import work_budget
from policies.document import Document, InputError
from policies.messages import console_link, phrase
from policies.pods.projection import Reads, extract
from policies.request import Request
from policies.rules.queues import words
from policies.state.snapshot import NamespaceFacts, Snapshot
from policies.verdict import MOST_AUDITED, Remark, Violation
from policies.work_budget import MOST_READ
from policies.workloads import parts
from policies.workloads.in_queue import alone_in_kueue
from policies.workloads.parts import Parts
from policies.workloads.pods import Around, Templated, describing, pods_of

MOST_TEXT = 2**14
"""The most characters of a text in a workload that is read as YAML, at some 200 KB/s: a patch of a pod's spec
has a few hundred."""
AROUND = Around(texts=lambda text: one_value(text) if len(text) <= MOST_TEXT else None)
"""Other objects are not fetched while a review is being answered."""
MOST_TEMPLATES = 16
"""The most templates judged per workload, each as costly as two reviews of a pod: a RayCluster has two to
ten, a body of 3 MiB could hold 20,000."""


def parse(body: bytes) -> ObjectRequest:
    """Return the review in ``body``. Raises ReviewError(400) for what is no review, for pods, and for other operations than CREATE and
    UPDATE."""
    return from_document(decode_body(body))


def from_document(document: object) -> ObjectRequest:
    """Return the review in a decoded document, as ``parse`` does."""
    request = review.request_in(document)
    _expect_workload(document, request)
    known = object_kind(request)
    if known is None:
        raise ReviewError(400, f"request.kind is {review.show_json(request.get('kind'))}; expected a group, version and kind")
    api_version, kind = known
    workload = request.get("object")
    if not isinstance(workload, dict):
        raise Unreadable(f"request.object is {review.show_json(workload)}; expected a {kind}")
    return review.read_object(request, workload, kind, api_version)


class Advice(NamedTuple):
    """One sentence for the user who applies a workload."""

    code: str
    text: str


def _notice(variant: str, **values: object) -> Advice:
    return Advice(UNJUDGED, str(Remark(code=UNJUDGED, found=phrase(variant, **values))))


UNJUDGED = "BERTH-002"


def advise(request: ObjectRequest, snapshot: Snapshot) -> tuple[Advice, ...]:
    """Return the advice, each sentence once; none where its pods request no accelerator."""
    owner = describing(snapshot.catalog, request.api_version, request.kind, name=request.name, namespace=request.namespace)
    if owner is None:
        return ()
    templates = list(islice(pods_of(Document(file="", value=request.value), owner, snapshot.catalog, AROUND), MOST_TEMPLATES + 1))
    judged = templates[:MOST_TEMPLATES]
    read = snapshot.facts_for(request.namespace).reads
    if sum(_size(templated, read) for templated in judged) > MOST_READ:
        return (_notice("too large"),)
    facts = _for_advice(snapshot.facts_for(request.namespace), len(judged))
    advice = dict.fromkeys(
        sentence for templated in judged for sentence in _sentences(templated, request, facts, several=len(templates) > 1)
    )
    waits = places.remarks(request.value, owner, snapshot.facts_for(request.namespace), AROUND) if request.operation == "CREATE" else ()
    ignored = words.of_workload(request.value, snapshot.catalog, (item.template for item in judged if isinstance(item, Templated)))
    own = ignored if ignored and any(_requests_accelerator(templated, request, facts) for templated in judged) else ()
    advice |= dict.fromkeys(Advice(remark.code, str(remark)) for remark in (*waits, *own))
    if len(templates) > MOST_TEMPLATES:
        advice[_notice("too many", most=MOST_TEMPLATES)] = None
    return tuple(advice)


def _for_advice(facts: NamespaceFacts, templates: int) -> NamespaceFacts:
    """Return the facts with the policies that give advice: those in Enforce, and as many in Warn as would be
    tried on one pod, divided among the templates."""
    warns = [c for c in facts.policies if c.mode == "Warn"][: max(1, MOST_AUDITED // max(1, templates))]
    return replace(facts, policies=tuple(c for c in facts.policies if c.mode == "Enforce" or c in warns))


def _size(templated: Templated | InputError, read: Reads) -> int:
    """Return the bytes that would be judged."""
    if isinstance(templated, InputError):
        return 0
    try:
        return len(encoded(extract(templated.pod, read))) if work_budget.items(templated.pod) <= work_budget.MOST else MOST_READ + 1
    except ReviewError:
        return MOST_READ + 1


def answer_advice(request: ObjectRequest, advice: Sequence[Advice], console_url: str = "") -> dict[str, Any]:
    """Return the AdmissionReview to send back: allowed, with as many of the sentences as the API server
    keeps, and where to look once the workload is there."""
    wording = console_link.link_workload(request.namespace, request.kind, request.name)
    see = console_link.see(console_url, wording, advice[0].code) if console_url and advice else ""
    return review.sent(allow(request.uid), [sentence.text for sentence in advice], see)


def _sentences(templated: Templated | InputError, request: ObjectRequest, facts: NamespaceFacts, *, several: bool) -> Iterator[Advice]:
    if isinstance(templated, InputError):
        yield _notice("template", where=dotted(templated.path), message=templated.message)
        return
    for error in templated.unread:
        yield _notice("part", where=dotted(error.path), message=error.message)
    pod = alone_in_kueue(templated.pod, facts.snapshot.queues)
    wording = _TemplateWording(dotted(templated.template), templated.parts, several)
    yield from _advise_on_pod(wording, preview_admission(_pod_request(request, templated, pod), facts), pod)


def _requests_accelerator(templated: Templated | InputError, request: ObjectRequest, facts: NamespaceFacts) -> bool:
    """Return whether the pods of a template request an accelerator."""
    if isinstance(templated, InputError):
        return False
    return preview_admission(_pod_request(request, templated, templated.pod), facts).is_evaluated


def _pod_request(request: ObjectRequest, templated: Templated, pod: Raw) -> Request:
    """Return the request that creates a pod of a template."""
    return Request(namespace=request.namespace, user=templated.user, pod=pod, dry_run=request.dry_run, single_run=templated.single_run)


def _advise_on_pod(wording: _TemplateWording, judged: AdmittedPod, pod: dict[str, Any]) -> Iterator[Advice]:
    """Yield the advice in the order of the answer for a pod, after the denials."""
    yield from (Advice(violation.code, wording.denied(violation)) for violation in judged.violations)
    yield from (Advice(remark.code, wording.remark(remark)) for remark in warnings.warned(judged.remarks, judged.violations, pod))
    for outcome in judged.mutate.audit_outcomes:
        if outcome.mode == "Warn":
            yield from (
                Advice(violation.code, wording.audit_sentence(violation, warnings.describe_outcome(outcome)))
                for violation in outcome.violations
            )


@dataclass(frozen=True, slots=True)
class _TemplateWording:
    """Sentences about pods of one template, in the terms of those who edit the template.

    Rules name paths of the pod. These are prefixed with the template's path, or, where that makes a warning
    too long to be sent whole, stay as they are behind the name of the template.
    """

    path: str
    parts: Parts
    several: bool
    """True if the workload has other templates: the sentence then names the one that is meant."""

    def denied(self, violation: Violation) -> str:
        """Return the sentence of a violation, with as many details of a pod's denial as fit."""
        ways = self._ways(violation, "its pods will be denied", f"its pods from {self.path} will be denied")
        sentence = _first_whole(*ways, f"{violation.code} ({self.path}): {violation.fact}; {violation.fix}")
        sources = f" (required by {', '.join(violation.policies)})" if violation.policies else ""
        detail = f" {violation.detail_at(self._place)}" if violation.more else ""
        fuller = [f"{sentence}.{more}" for more in (detail + sources, sources, detail) if more]
        return _first_whole(*fuller, sentence)

    def audit_sentence(self, violation: Violation, would_be: str) -> str:
        return _first_whole(*self._ways(violation, would_be, f"pods from {self.path} {would_be}"))

    def remark(self, remark: Remark) -> str:
        return _first_whole(f"{remark.code}: {remark.text_at(self._place)}", f"{remark.code} ({self.path}): {remark.text}")

    def _ways(self, violation: Violation, opening: str, named: str) -> Iterator[str]:
        """Yield the sentence in two forms, each naming the template once: by the paths in the fact, or before it."""
        fact = f"{violation.fact}; {violation.fix}"
        placed = f"{violation.fact_at(self._place)}; {violation.fix_at(self._place)}"
        yield f"{violation.code} ({named if self.several and placed == fact else opening}): {placed}"
        yield f"{violation.code} ({named}): {fact}"

    def _place(self, path: Path) -> str:
        return parts.placed(path, self.parts)


def _first_whole(*sentences: str) -> str:
    """Return the first sentence that fits a warning uncut, else the last."""
    return next((sentence for sentence in sentences if len(sentence) <= WARNING_LENGTH), sentences[-1])


def _expect_workload(document: object, request: Raw) -> None:
    if not isinstance(resource := request.get("resource"), dict):
        raise ReviewError(400, f"request.resource is {review.show_json(resource)}; expected a group, version and resource")
    if resource_of(document) == PODS:
        raise ReviewError(400, "request.resource is pods; send pods to /mutate and /validate, and workloads here")
    review.expect_no_subresource(request, "workloads")
