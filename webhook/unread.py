"""Reviews that were not read, or not to the end: what their first bytes tell, and the answers to them.

An error status would let such a pod pass where the entry's failurePolicy is Ignore, so that whoever writes one that can't be read would
escape: it is answered, with a refusal where anything is enforced.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from policies.snapshot import Snapshot
from policies.work import MOST
from webhook.review import printable, sent
from webhook.seen import MOST_SEEN

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_UID = re.compile(rb'"request"\s*:\s*\{\s*"uid"\s*:\s*"([0-9A-Za-z-]{1,128})"')
_NAMESPACE = re.compile(
    rb'\{"kind":"AdmissionReview","apiVersion":' + _STRING + rb',"request":\{"uid":' + _STRING
    + rb'(?:,"(?:kind|resource|requestKind|requestResource)":\{"[^{}]*+\}|,"(?:subResource|requestSubResource|name)":' + _STRING + rb")*+"
    + rb',"namespace":"([a-z0-9-]{1,63})","operation":',
)  # fmt: skip
"""Everything before it, field by field in the order of k8s.io/api/admission/v1 AdmissionRequest, from the first byte: of these an author
writes the name alone, which is one text, whatever is in it."""


class Head(NamedTuple):
    """What the first bytes of a review tell."""

    uid: str
    namespace: str | None
    """None where it can't be told, as behind a name of kilobytes"""

    def enforced(self, snapshot: Snapshot) -> bool:
        """Whether a policy may refuse there: any policy, where it is not known which are for the namespace."""
        return snapshot.enforces if self.namespace is None else enforced(snapshot, self.namespace)


def enforced(snapshot: Snapshot, namespace: str) -> bool:
    """Whether a policy may refuse in this namespace: another's policies are nothing to it."""
    return snapshot.facts_for(namespace).enforces if snapshot.knows(namespace) else snapshot.enforces


def head_of(body: bytes) -> Head | None:
    """The head of an AdmissionReview as the API server writes it, from its first bytes; None of anything else."""
    uid = _UID.search(body)
    if uid is None:
        return None
    namespace = _NAMESPACE.match(body)
    return Head(uid[1].decode(), namespace[1].decode() if namespace else None)


def oversized(uid: str, *, size: int, limit: int, refused: bool) -> dict[str, Any]:
    """The answer to a review over the body cap."""
    sentence = (
        f"BERTH-003: the review of this object has {size} bytes, more than the {limit} that are read;"
        " move large values out of its env, args and annotations, into a ConfigMap"
    )
    return _not_judged(uid, sentence, refused=refused)


def overgrown(uid: str, *, size: int, refused: bool) -> dict[str, Any]:
    """The answer to a review of which more would have to be judged than is."""
    sentence = (
        f"BERTH-004: the containers, resources, node affinity and tolerations of this object have {size} bytes, more than {MOST_SEEN},"
        f" or more than {MOST} items together, which are not judged; write fewer of them"
    )
    return _not_judged(uid, sentence, refused=refused)


def unreadable(uid: str, why: str, fix: str, *, refused: bool) -> dict[str, Any]:
    """The answer to a review of which something is not understood."""
    sentence = f"BERTH-005: this object can't be read, so it is not judged: {printable(why, 300)}; {fix}"
    return _not_judged(uid, sentence, refused=refused, code=403, reason="Forbidden")


def over_share(uid: str, *, refused: bool) -> dict[str, Any]:
    """The answer to a review whose namespace has had more than its share of this replica's time."""
    sentence = (
        "BERTH-006: this object is not judged, because the reviews of its namespace take more than their share of Berth's time;"
        " create it again in a while (controllers do so by themselves)"
    )
    return _not_judged(uid, sentence, refused=refused, code=429, reason="TooManyRequests")


def failed(uid: str, *, refused: bool) -> dict[str, Any]:
    """The answer to a review that could not be judged, by a mistake of ours."""
    sentence = (
        "BERTH-007: this object is not judged, by a mistake of Berth's own; report it to the platform team, with the object and the time"
        " (the log has it as event=failed)"
    )
    return _not_judged(uid, sentence, refused=refused, code=403, reason="Forbidden")


def _not_judged(uid: str, sentence: str, *, refused: bool, code: int = 413, reason: str = "RequestEntityTooLarge") -> dict[str, Any]:
    if not refused:
        return sent({"uid": uid, "allowed": True}, [sentence])
    status = {"status": "Failure", "code": code, "reason": reason, "message": f"{sentence}."}
    return sent({"uid": uid, "allowed": False, "status": status}, [])
