"""One body from another: its bytes changed, its document changed, or a new one from Kubernetes' schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

from tests.fuzz import donors, schema, trees

LARGEST = 6 * 2**10
"""Bytes that a body grows to: what is larger is tried by its shape (test_growth), not by chance."""
BYTEWISE, TREEWISE = 0.15, 0.7
"""part of all that have their bytes changed, and of the others that have their document changed"""
TOKENS = (
    b"{}", b"[]", b"null", b"true", b"0", b"-1", b"1e400", b"NaN", b'""', b"\\u0000", b"\\ud800", b"\xff", b"\xef\xbb\xbf", b"\x00", b",",
    b"[" * 300, b'{"a":' * 300, b"9" * 400, b'"nvidia.com/gpu":"1",',
    b":", b"/*", b"\xc3", b"\\", b"~1",
)  # fmt: skip
_PAIR = re.compile(rb'"[A-Za-z]{1,40}"\s*:')


def mutated(random: Random, body: bytes) -> bytes:
    """Any of the three ways."""
    changed = bytewise(random, body) if random.random() < BYTEWISE else documented(random, body)
    return changed[:LARGEST]


def documented(random: Random, body: bytes) -> bytes:
    """Its document changed, or a new one; bytes where there is no document, or it is nested too deep to be written."""
    try:
        return (treewise if random.random() < TREEWISE else schemawise)(random, body)
    except (ValueError, RecursionError):
        return bytewise(random, body)


def bytewise(random: Random, body: bytes) -> bytes:
    """A few bytes flipped, cut, doubled, or replaced by what breaks parsers."""
    for _ in range(random.choice((1, 1, 2, 4))):
        body = random.choice(_CUTS)(random, body, random.randrange(len(body) + 1))
    return body


def treewise(random: Random, body: bytes) -> bytes:
    """The document changed. Raises ValueError or RecursionError where there is none, or it is too deep."""
    return encoded(random, trees.mutate(random, json.loads(body), random.choice((1, 1, 2, 3, 5))))


def schemawise(random: Random, body: bytes) -> bytes:
    """Another pod, or a workload around one, in a review like ``body`` but for its object; mutated half of the time."""
    document: Any
    if random.random() < 0.1:
        document = donors.workload_review(random, random.choice(donors.KINDS))
    elif random.random() < 0.1:
        document = donors.manifest_review(random, random.choice(donors.written()))
    else:
        document = donors.review_of(random, schema.pod(random))
    return encoded(random, trees.mutate(random, document, random.choice((0, 0, 1, 2, 3))))


def encoded(random: Random, document: Any) -> bytes:
    """As JSON, escaped or not."""
    text = json.dumps(document, ensure_ascii=random.random() < 0.5, separators=(",", ":"))
    return text.encode(errors="surrogatepass")


def _flip(random: Random, body: bytes, at: int) -> bytes:
    return body[:at] + bytes([random.getrandbits(8)]) + body[at + 1 :]


def _cut(random: Random, body: bytes, at: int) -> bytes:
    return body[:at] + body[at + random.choice((1, 1, 4, 30, 400)) :]


def _end(random: Random, body: bytes, at: int) -> bytes:
    return body[:at]


def _double(random: Random, body: bytes, at: int) -> bytes:
    piece = body[at : at + random.choice((1, 4, 30, 400))]
    return body[:at] + piece * random.choice((2, 2, 3, 20)) + body[at + len(piece) :]


def _token(random: Random, body: bytes, at: int) -> bytes:
    return body[:at] + random.choice(TOKENS) + body[at + random.choice((0, 0, 1, 5)) :]


def _move(random: Random, body: bytes, at: int) -> bytes:
    piece = body[at : at + random.choice((1, 8, 60, 500))]
    to = random.randrange(len(body) + 1)
    return body[:to] + piece + body[to:]


def _second_key(random: Random, body: bytes, at: int) -> bytes:
    """A key given twice, of which the last counts."""
    found = _PAIR.search(body, at)
    if found is None:
        return body
    return body[: found.start()] + found[0] + random.choice((b"null,", b"{},", b"[],", b'"1",')) + body[found.start() :]


_CUTS: tuple[Callable[[Random, bytes, int], bytes], ...] = (_flip, _flip, _cut, _end, _double, _token, _token, _move, _second_key)
