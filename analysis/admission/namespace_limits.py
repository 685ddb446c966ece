"""What the LimitRanges and ResourceQuotas of a namespace make of the pods of a manifest: amounts that are filled in before webhooks see
a pod, and refusals after them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from analysis.admission.manifests import Manifest, ManifestPod
from kube.namespace_limits.limit_range import LimitRange, limit_range_refusals, with_defaults
from kube.namespace_limits.refusal import Refusal
from kube.namespace_limits.resource_quota import OF_CLASS, ResourceQuota, quota_refusals, unit_of
from kube.requests import write_units
from kube.templates import pods_at_once
from kube.tree import Raw, map_at, maps_in, text_of
from policies.facts.cluster_facts import NAMESPACE_LIMITS, ClusterFacts
from policies.facts.device_requests import TEMPLATE
from policies.messages import At, Phrase, phrase
from policies.placement.unchecked import Unchecked
from policies.verdict import Remark

QUOTA_CODE, RANGE_CODE = "BERTH-251", "BERTH-252"
NAME = "namespace_limits"
_CLAIM_COUNT = "count/resourceclaims.resource.k8s.io"


def fill_amounts(subjects: Iterable[ManifestPod], known: ClusterFacts) -> tuple[ManifestPod, ...]:
    """Return the pods of a manifest with the defaults of the LimitRanges of their namespace. What came in a review has them already."""
    return tuple(
        replace(subject, review=replace(subject.review, pod=with_defaults(subject.review.pod, ranges)))
        if (ranges := _ranges(known, subject.review.namespace)) and subject.review.operation == "CREATE"
        else subject
        for subject in subjects
    )


def _ranges(known: ClusterFacts, namespace: str) -> list[LimitRange]:
    return [limits for (space, _), limits in sorted(known.limit_ranges.items()) if space == namespace]


def _quotas(known: ClusterFacts, namespace: str) -> list[ResourceQuota]:
    return [quota for (space, _), quota in sorted(known.quotas.items()) if space == namespace]


def find_refusals(manifest: Manifest, subject: ManifestPod, pod: Raw, known: ClusterFacts) -> tuple[Refusal, ...]:
    """Return what LimitRanges and ResourceQuotas refuse of a pod of a manifest. ``pod``: as policies leave it."""
    return _refusals(pod, subject.review.namespace, known, pods_at_once(manifest.value, subject.template))


def pod_refusals(pod: Raw, namespace: str, known: ClusterFacts, *, pods: int) -> tuple[Refusal, ...]:
    """Return what LimitRanges and ResourceQuotas of a namespace refuse of a pod that is about to be created: with its default amounts.
    ``pods``: as many as this one are created."""
    return _refusals(with_defaults(pod, _ranges(known, namespace)), namespace, known, pods)


def _refusals(pod: Raw, namespace: str, known: ClusterFacts, pods: int) -> tuple[Refusal, ...]:
    spec, quotas = map_at(pod, "spec"), _quotas(known, namespace)
    claimed = _claimed(spec, namespace, known) if quotas else {}
    return (*limit_range_refusals(spec, _ranges(known, namespace)), *quota_refusals(spec, quotas, pods=pods, claimed=claimed))


def _claimed(spec: Mapping[Any, Any], namespace: str, known: ClusterFacts) -> Mapping[str, int]:
    """Return what the claims count that are made for one pod: of each request the alternative with the most devices of each class
    (k8s.io/kubernetes 1.37 pkg/quota/v1/evaluator/core/resource_claims.go)."""
    claimed: Counter[str] = Counter()
    for reference in maps_in(spec.get("resourceClaims")):
        claim = known.claims.get((TEMPLATE, namespace, text_of(reference.get("resourceClaimTemplateName"))))
        if claim is None:
            continue
        claimed[_CLAIM_COUNT] += 1
        for ways in claim:
            most = {way.device_class: max(way.most or way.least for way in ways) for way in ways}
            claimed.update({f"{device_class}{OF_CLASS}": count for device_class, count in most.items() if device_class})
    return claimed


def find_unchecked(namespace: str, known: ClusterFacts) -> Iterator[Unchecked]:
    """Yield what is not known of a namespace's limits. A quota whose usage is not known is checked in part only."""
    of_quotas, of_ranges = NAMESPACE_LIMITS
    quotas = _quotas(known, namespace)
    if any(quota.used is None for quota in quotas) or not (quotas or known.followed.get(of_quotas)):
        yield "resourceQuotas"
    if not (known.followed.get(of_ranges) or _ranges(known, namespace)):
        yield "limitRanges"


def refusal_remarks(refusals: Iterable[Refusal]) -> Iterator[Remark]:
    """Yield a warning for each refusal."""
    for refusal in refusals:
        code = QUOTA_CODE if refusal.kind in ("exceeded", "some", "unset") else RANGE_CODE
        yield Remark(code=code, found=_describe(refusal), rule=NAME, path=refusal.path)


_BY_CLAIM = {"exceeded": "exceeded claimed", "never": "never claimed"}
_UNSET = {"max": "max unset", "min": "min unset", "ratio": "ratio unset"}


def _describe(refusal: Refusal) -> Phrase:
    """Return the sentence about a refusal."""
    unit = unit_of(refusal.resource)
    need = None if refusal.need is None else write_units(unit, refusal.need)
    hard, left = write_units(unit, refusal.hard), write_units(unit, max(0, refusal.hard - refusal.used))
    shown = {"name": refusal.name, "resource": refusal.resource, "need": need, "hard": hard, "path": At(refusal.path)}
    match refusal.kind:
        case "exceeded":
            name = "exceeded" if refusal.passing else "never"
            by_claim = refusal.resource == _CLAIM_COUNT or refusal.resource.endswith(OF_CLASS)
            return phrase(_BY_CLAIM[name] if by_claim else name, left=left, **shown)
        case "some":
            room = (refusal.hard - refusal.used) // refusal.need if refusal.need else 0
            return phrase("some", room=room, pods=refusal.pods, **shown)
        case "unset":
            return phrase("unset", container=refusal.container, **shown)
    whose = phrase("container", name=refusal.container) if refusal.container else phrase("pod")
    return phrase(_UNSET[refusal.kind] if need is None else refusal.kind, whose=whose, **shown)
