"""Decoding of a body into a document, and encoding of what a decision reads of a pod, with limits: larger
inputs are not judged.

The limit on the items that are judged is in ``policies.work_budget``; the limit on the bytes of a body is the
server's (``--body``).
"""

from __future__ import annotations

import contextlib

import orjson

from documents import json_depth
from kube.tree import Raw

LARGEST_REPAIRED = 84 * 2**10
"""The most bytes of a review that is read again after orjson has rejected it: enough for the 10,000 levels
that Go reads. No review is that deep unless made so on purpose."""
MOST_REPAIRED = 11_000
"""The most commas and brackets of such a review: each takes a microsecond, and 1,000 are left beside those
levels."""
_FIX_JSON = "remove values nested over 1,000 levels deep or with invalid Unicode or numbers (also in managedFields), and create it again"
MOST_MARKS = 80_000
"""The most commas and brackets of a body that is read: each may begin a value, which takes up to a third of a
microsecond; counting takes 15 ms at most.

A pod of 3 MiB with ten thousand environment variables has 31,000, and its update twice as many.
"""


class ReviewError(Exception):
    """A body that is no review Berth can judge: the HTTP status, and one sentence for the caller."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class Unreadable(ReviewError):
    """Something that an author may have written cannot be read.

    It is answered by the review's head (``unevaluated_reviews``), and by status 400 only where there is no head.
    """

    def __init__(self, sentence: str, fix: str = "write it in the form that Kubernetes expects") -> None:
        super().__init__(400, sentence)
        self.fix = fix


class TooLong(Unreadable):
    """A body that takes too long to decode. What it holds can still be searched."""


def _marks(body: bytes) -> int:
    return body.count(b",") + body.count(b"{") + body.count(b"[")


def decode_body(body: bytes) -> object:
    """Return the JSON document in ``body``; parts that are nested too deep become null
    (``documents.json_depth``).

    Raises Unreadable.
    """
    if len(body) > MOST_MARKS and (marks := _marks(body)) > MOST_MARKS:
        raise TooLong(f"it has {marks} commas and brackets (limit {MOST_MARKS})", "move large values to a ConfigMap")
    try:
        return orjson.loads(body)
    except ValueError as error:
        return _repaired(body, error)


def _repaired(body: bytes, why: ValueError) -> object:
    if len(body) <= LARGEST_REPAIRED and _marks(body) <= MOST_REPAIRED:
        with contextlib.suppress(ValueError):
            return json_depth.loads(body)
    raise Unreadable(f"the body is not JSON: {why}", _FIX_JSON) from None


def encoded(read: Raw) -> bytes:
    """Return what a decision reads of a pod (``projection.extract``) as JSON: the key of the decision cache,
    and the measure of how long judging may take.

    Raises Unreadable.
    """
    try:
        return orjson.dumps(read)
    except orjson.JSONEncodeError:  # it reads 1,024 levels and writes 254; no field that is read has ten
        raise Unreadable("request.object is nested deeper than 254 levels") from None
