"""Reviews that were not read, or not to the end, and the answers to them.

With failurePolicy Ignore an error status would let such a pod pass, so that whoever writes an unreadable one
would escape the policies: it is answered, with a denial where any policy is in Enforce.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analysis.reviews.review import flatten_text, sent
from kube.review import deny
from policies.messages import Phrase, phrase
from policies.pods.permissions import FRACTION_ENDS, FRACTIONS
from policies.pods.unlisted_accelerators import may_contain_name
from policies.state.snapshot import Snapshot
from policies.verdict import Remark
from policies.work_budget import MOST, MOST_READ
from registration.match_conditions import PatternError, prefixes


def may_deny(snapshot: Snapshot, namespace: str | None) -> bool:
    """Return whether a policy may deny in this namespace: policies of another namespace do not count. If it is unknown (None), or
    its labels are, any policy may."""
    if namespace is None or not snapshot.knows(namespace):
        return snapshot.enforces
    return snapshot.facts_for(namespace).enforces


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
    return sent(deny(uid, f"{notice}.", code=status, reason=reason), [])
