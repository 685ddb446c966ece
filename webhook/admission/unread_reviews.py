"""Reviews that were not read, or not to the end: the facts in their first bytes, and the answers to them.

With failurePolicy Ignore an error status would let such a pod pass, so that whoever writes an unreadable one
would escape the policies: it is answered, with a denial where any policy is in Enforce.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from analysis.reviews.claim_review import GROUP
from analysis.reviews.decoding import MOST_READ
from analysis.reviews.review import flatten_text, sent
from policies.messages import Phrase, phrase
from policies.pods.permissions import FRACTION_ENDS, FRACTIONS
from policies.pods.unlisted_accelerators import may_contain_name
from policies.state.snapshot import Snapshot
from policies.verdict import Remark
from policies.work_budget import MOST
from registration.match_conditions import PatternError, prefixes

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_UID = re.compile(rb'"request"\s*:\s*\{\s*"uid"\s*:\s*"([0-9A-Za-z-]{1,128})"(?:\s*,\s*"kind"\s*:\s*\{\s*"group"\s*:\s*"([a-z0-9.-]*)")?')
_NAMESPACE = re.compile(
    rb'\{"kind":"AdmissionReview","apiVersion":' + _STRING + rb',"request":\{"uid":' + _STRING
    + rb'(?:,"(?:kind|resource|requestKind|requestResource)":\{"[^{}]*+\}|,"(?:subResource|requestSubResource|name)":' + _STRING + rb")*+"
    + rb',"namespace":"([a-z0-9-]{1,63})","operation":',
)  # fmt: skip
"""Matches everything before the namespace, field by field in the order of k8s.io/api/admission/v1
AdmissionRequest, from the first byte.

Of these fields an author writes only the name, which is one string, whatever it contains.
"""


class Head(NamedTuple):
    """The fields in the first bytes of a review."""

    uid: str
    namespace: str | None
    """None where it cannot be determined, for example behind a name of kilobytes."""
    of_claim: bool = False
    """Whether it is about a claim or its template. A claim names devices by its class, which may have any name."""

    def enforced(self, snapshot: Snapshot) -> bool:
        """Return whether a policy may deny in its namespace; if that is unknown, whether any policy may
        deny."""
        return snapshot.enforces if self.namespace is None else enforced(snapshot, self.namespace)


def enforced(snapshot: Snapshot, namespace: str) -> bool:
    """Return whether a policy may deny in this namespace: policies of another namespace do not count."""
    return snapshot.facts_for(namespace).enforces if snapshot.knows(namespace) else snapshot.enforces


def names_accelerator(body: bytes, snapshot: Snapshot) -> bool:
    """Return whether a pod may ask for what is judged, by the text of its review: the API server writes letters as they are."""
    return may_contain_name(body) or any(name.encode() in body for name in _names(snapshot))


def _names(snapshot: Snapshot) -> Iterator[str]:
    """Yield texts of which every review that is judged has one, besides names that look like accelerators; every review has "",
    where a pattern may begin with anything."""
    catalog = snapshot.catalog
    for known in catalog.resources:
        try:
            yield from [known.name] if known.name is not None else prefixes(known.pattern.pattern)
        except PatternError:
            yield ""
    yield from (known.extended for known in snapshot.cluster.device_classes.values() if known.extended)
    yield from (f"{domain}/" for domain in catalog.accelerator_domains)
    yield from (*catalog.misspellings, *FRACTIONS, *FRACTION_ENDS, '"resourceClaims"')


def head_of(body: bytes) -> Head | None:
    """Return the head of an AdmissionReview as the API server writes it, from its first bytes; None for
    anything else."""
    uid = _UID.search(body)
    if uid is None:
        return None
    namespace = _NAMESPACE.match(body)
    return Head(uid[1].decode(), namespace[1].decode() if namespace else None, uid[2] == GROUP.encode())


def answer_too_large(uid: str, *, size: int, limit: int | None, denied: bool) -> dict[str, Any]:
    """Return the answer to a review over the body cap (``limit``, in bytes), or (``limit`` None) of which
    more would have to be judged than is allowed."""
    if limit is not None:
        return _not_judged(uid, "BERTH-003", phrase("text", size=size, limit=limit), denied=denied)
    return _not_judged(uid, "BERTH-004", phrase("text", size=size, most=MOST_READ, items=MOST), denied=denied)


def unreadable(uid: str, why: str, fix: str, *, denied: bool) -> dict[str, Any]:
    """Return the answer to a review that cannot be read."""
    found = phrase("text", why=flatten_text(why, 300), fix=fix)
    return _not_judged(uid, "BERTH-005", found, denied=denied, status=403, reason="Forbidden")


def answer_over_share(uid: str, *, denied: bool) -> dict[str, Any]:
    """Return the answer to a review whose namespace is over its share of this replica's time."""
    return _not_judged(uid, "BERTH-006", phrase("text"), denied=denied, status=429, reason="TooManyRequests")


def not_now(uid: str, why: str, *, denied: bool) -> dict[str, Any]:
    """Return the answer to a review that can't be judged now. ``why``: the name of a phrase of BERTH-008."""
    return _not_judged(uid, "BERTH-008", phrase(why), denied=denied, status=429, reason="TooManyRequests")


def failed(uid: str, *, denied: bool) -> dict[str, Any]:
    """Return the answer to a review that could not be judged because of a bug in Berth."""
    return _not_judged(uid, "BERTH-007", phrase("text"), denied=denied, status=403, reason="Forbidden")


def _not_judged(
    uid: str, code: str, found: Phrase, *, denied: bool, status: int = 413, reason: str = "RequestEntityTooLarge"
) -> dict[str, Any]:
    notice = Remark(code=code, found=found)
    if not denied:
        return sent({"uid": uid, "allowed": True}, [str(notice)])
    failure = {"status": "Failure", "code": status, "reason": reason, "message": f"{notice}."}
    return sent({"uid": uid, "allowed": False, "status": failure}, [])
