"""What becomes of a pod or a claim: each is evaluated as the two webhooks would, one after the other.

A created pod passes mutate, then validate with the patch applied. An updated pod passes validate only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, overload

import orjson

from analysis.audit.stored_pod import StoredPod
from kube.pod import Pod, PodError
from kube.tree import Raw, ReadOnly, apply_patch
from policies import work_budget
from policies.claims import claim_verdict
from policies.claims.claim_request import ClaimRequest
from policies.engine import evaluate
from policies.lru import LruCache
from policies.messages import phrase
from policies.planning.devices import needs_evaluation
from policies.pods.projection import extract
from policies.request import Request
from policies.rules.requests_match_limits import undecodable
from policies.state.snapshot import NamespaceFacts, Snapshot
from policies.verdict import AuditOutcome, Edit, Remark, Verdict, Violation
from policies.work_budget import MOST_READ

Applier = Callable[[Any, Iterable[Mapping[str, Any]]], Any]
"""Returns a tree after the operations of a JSON Patch; the given tree stays as it was."""
_MOST_CACHED = 16 * 2**20
"""Bytes of the admitted pods that one ``Admission`` keeps."""
_OVERHEAD = 4096
"""Bytes of an admitted pod, besides its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedPod:
    """The result of both phases for one pod."""

    request: Request
    mutate: Verdict
    """the answer at /mutate"""
    violations: tuple[Violation, ...]
    """the violations of the phase that denied the pod"""
    remarks: tuple[Remark, ...]
    """the remarks of both phases, each once"""
    is_evaluated: bool
    """False if the pod requests no accelerator"""
    pod: Raw
    """The pod as admitted; as it came if it is denied. Parts that no edit touches are the same objects as in the request."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits to apply: none if the pod is denied, or the request is an UPDATE."""
        return () if self.violations or self.request.operation != "CREATE" else self.mutate.edits

    @property
    def patch(self) -> tuple[Mapping[str, Any], ...]:
        """The JSON Patch of the edits."""
        return self.mutate.patch if self.edits else ()

    @property
    def matched(self) -> tuple[str, ...]:
        """The ids of the policies that apply to the pod."""
        return self.mutate.matched

    @property
    def audit_outcomes(self) -> tuple[AuditOutcome, ...]:
        return self.mutate.audit_outcomes


class _Key(NamedTuple):
    """Everything that an answer on a pod depends on."""

    text: bytes
    others: tuple[Hashable, ...]


class Admission:
    """Answers what becomes of pods and claims under one snapshot. Pods that are alike are evaluated once."""

    def __init__(self, snapshot: Snapshot, apply: Applier = apply_patch) -> None:
        """``apply``: applies the patch of the first phase, as the API server does before the second."""
        self.snapshot = snapshot
        self._apply = apply
        self._known: LruCache[AdmittedPod] = LruCache(_MOST_CACHED)

    @overload
    def of(self, subject: Request | StoredPod) -> AdmittedPod: ...
    @overload
    def of(self, subject: ClaimRequest, namespace: str) -> Verdict: ...
    def of(self, subject: Request | StoredPod | ClaimRequest, namespace: str = "") -> AdmittedPod | Verdict:
        """Return what becomes of a subject.

        A pod that exists is taken as though it were created now. Raises PodError for a request whose pod is none; of a pod
        that exists, such a one is admitted as it is.
        """
        if isinstance(subject, ClaimRequest):
            return self._of_claim(subject, self.snapshot.facts_for(namespace))
        key = _key(subject)
        known = None if key is None else self._known.get(key)
        if known is None:
            known = self._of_stored(subject) if isinstance(subject, StoredPod) else self._of_request(subject)
            if key is not None:
                self._known.keep(key, known, _OVERHEAD + 2 * len(key.text))
        return known

    def changes_of(self, request: Request, *, edited: bool = True) -> Callable[[ReadOnly], AdmittedPod]:
        """Return a function from another pod in place of the request's to what becomes of it. ``edited``: False where Berth is
        not called for it, so that its pod stays as it is."""

        def admit(pod: ReadOnly) -> AdmittedPod:
            admitted = self.of(replace(request, pod=dict(pod)))
            return admitted if edited else replace(admitted, pod=dict(pod))

        return admit

    def _of_request(self, request: Request) -> AdmittedPod:
        return preview_admission(request, self.snapshot.facts_for(request.namespace), self._apply)

    def _of_stored(self, stored: StoredPod) -> AdmittedPod:
        request = stored.request()
        try:
            return self._of_request(request)
        except PodError:
            return AdmittedPod(
                request=request, mutate=Verdict(is_evaluated=False), violations=(), remarks=(), is_evaluated=False, pod=request.pod
            )

    def _of_claim(self, request: ClaimRequest, facts: NamespaceFacts) -> Verdict:
        """Return the verdict at /mutate, with the denials of /validate if it admits the claim."""
        verdict = claim_verdict.evaluate_claim(request, facts)
        if not verdict.is_evaluated or verdict.violations:
            return verdict
        edited = self._apply(dict(request.made), verdict.patch)
        return replace(verdict, violations=claim_verdict.evaluate_claim(replace(request, made=edited, phase="validate"), facts).violations)


def preview_admission(request: Request, facts: NamespaceFacts, apply: Applier = apply_patch) -> AdmittedPod:
    """Evaluate both phases for one pod; the second only if the first admits it. Raises PodError as ``evaluate`` does.

    A pod that the API server can't decode, which can happen with one from a template, is denied even if no policy denies it.
    """
    mutate = _mutated(request, facts)
    if request.operation == "CREATE" and (not mutate.is_evaluated or mutate.violations):
        return _result(request, mutate, mutate, mutate.remarks, request.pod)
    edited = request.operation == "CREATE" and mutate.patch
    pod = apply(request.pod, mutate.patch) if edited else request.pod
    final = evaluate(replace(request, phase="validate", pod=pod), facts)
    return _result(request, mutate, final, tuple(dict.fromkeys((*mutate.remarks, *final.remarks))), pod)


def _result(request: Request, mutate: Verdict, last: Verdict, remarks: tuple[Remark, ...], pod: Raw) -> AdmittedPod:
    return AdmittedPod(
        request=request,
        mutate=mutate,
        violations=last.violations,
        remarks=remarks,
        is_evaluated=last.is_evaluated,
        pod=request.pod if last.violations else pod,
    )


def _mutated(request: Request, facts: NamespaceFacts) -> Verdict:
    """Return the verdict at /mutate."""
    read = extract(request.pod, facts.reads)
    if _is_too_complex(read) and needs_evaluation(request.pod, facts.snapshot):
        return _too_complex(read, facts)
    verdict = _decoded(request, evaluate(request.in_phase("mutate"), facts, read), facts)
    fits = not verdict.edits or work_budget.fits_after(read, verdict.edits, work_budget.items(read))
    return verdict if fits else _too_complex(read, facts)


def _is_too_complex(read: Raw) -> bool:
    return work_budget.items(read) > work_budget.MOST or _bytes(read) > MOST_READ


def _too_complex(read: Raw, facts: NamespaceFacts) -> Verdict:
    """Return the verdict on a pod that is not evaluated: it is denied if any policy is in Enforce."""
    values = {"size": _bytes(read), "most": MOST_READ, "items": work_budget.MOST}
    if not facts.enforces:
        return Verdict(remarks=(Remark(code="BERTH-004", found=phrase("text", **values)),))
    return Verdict(violations=(Violation(code="BERTH-004", found=phrase("fact", **values), advice=phrase("fix"), rule="work_budget"),))


def _bytes(read: Raw) -> int:
    """Return the bytes of what is read of a pod; 0 for what is no JSON."""
    try:
        return len(orjson.dumps(read))
    except orjson.JSONEncodeError:
        return 0


def _decoded(request: Request, verdict: Verdict, facts: NamespaceFacts) -> Verdict:
    if request.operation != "CREATE" or not verdict.is_evaluated:
        return verdict
    violated = {violation.key for violation in verdict.violations}
    wrong = tuple(v for v in undecodable(Pod(request.pod), facts.snapshot) if v.key not in violated)
    return replace(verdict, violations=(*verdict.violations, *wrong), edits=(), patch=()) if wrong else verdict


def _key(subject: Request | StoredPod) -> _Key | None:
    """Return the key of a pod; None for a request that is no JSON."""
    if isinstance(subject, StoredPod):
        return _Key(subject.shared, (subject.namespace, subject.labels, subject.owner and subject.owner[:2]))
    try:
        text = orjson.dumps([subject.pod, subject.old_pod])
    except orjson.JSONEncodeError:
        return None
    return _Key(
        text, (subject.operation, subject.namespace, subject.user, subject.groups, subject.subresource, subject.dry_run, subject.single_run)
    )
