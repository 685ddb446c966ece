"""``berth.dev/applied``: an annotation for people that records which policy and rule wrote which path of a
pod.

No decision depends on it. Which of its entries are true is the business of ``policies.patch.valid_entries``.
"""

from __future__ import annotations

import functools
import hashlib
import json
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any

from kube.tree import MISSING, Path, value_at
from policies.lru import LruCache
from policies.policy import GROUP

APPLIED = f"{GROUP}/applied"
RECORD: Path = ("metadata", "annotations", APPLIED)
LONGEST = 1024
"""bytes of the annotation (``docs/laws.md``, "The record of edits"); past it, a count and a hash replace the entries"""
_LONGEST_INDEX = 6
"""digits: a pod of 3 MiB has no list of a million"""
_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_COMPACT = json.JSONEncoder(separators=(",", ":")).encode
"""encoders created once: ``json.dumps`` with arguments creates one each time"""
_DIGEST = 256
"""bytes that a cached digest takes, besides its key"""
_DIGESTS: LruCache[str] = LruCache(2**20)

_FIELDS = ("by", "rule", "path", "is")
Entry = dict[str, Any]
"""``{"by": ["ClusterGPUPolicy/a"], "rule": "tolerations", "path": "/spec/tolerations/0", "is":
"ec582b1c"}``"""


def digest(value: Any) -> str:
    """Return eight hex digits of a value's hash.

    Policies write the same values into most pods, so digests are cached by the ``repr`` of the value.
    """
    shown = repr(value)
    found = _DIGESTS.get(shown)
    if found is None:
        found = hashlib.sha256(_SORTED(value).encode()).hexdigest()[:8]
        _DIGESTS.keep(shown, found, _DIGEST + len(shown))
    return found


def intact_entries(thing: Any) -> list[Entry]:
    """Return the entries of an object's annotation whose digest matches the value at their path."""
    return [entry for entry in recorded(value_at(thing, RECORD)) if digest_at(thing, entry["path"]) == entry["is"]]


def steps(text: str) -> list[str]:
    """Return the steps of a JSON pointer, as texts."""
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def index_of(step: str) -> int | None:
    """Return a step of a JSON pointer as an index of a list, or None if it is none."""
    return int(step) if step.isdecimal() and len(step) <= _LONGEST_INDEX else None


def digest_at(pod: Any, text: str) -> str | None:
    """Return the digest of the value at a JSON pointer, or None if there is none."""
    for part in steps(text):
        if isinstance(pod, list):
            index = index_of(part)
            pod = pod[index] if index is not None and index < len(pod) else MISSING
        else:
            pod = pod.get(part, MISSING) if isinstance(pod, dict) else MISSING
        if pod is MISSING:
            return None
    return digest(pod)


# --- its text -----------------------------------------------------------------------------------------------


def write_record(entries: list[Entry], came: Any, *, added: bool) -> str | None:
    """Return the annotation's value, or None if there is to be none. A count and a hash of the edits replace
    a long one."""
    summary = read_summary(came)
    if not entries:
        return came if summary is not None and not added else None
    text = f"[{','.join(map(_json, entries))}]"
    if summary is None and len(text.encode()) <= LONGEST:
        return text
    before, chain = (summary["edits"], summary["sha256"]) if summary is not None else (0, "")
    whole = {"edits": before + len(entries), "sha256": hashlib.sha256((chain + text).encode()).hexdigest()}
    return _COMPACT(whole)


def _json(entry: Entry) -> str:
    """Return an entry as compact JSON: those of ``policies.patch.build`` in a third of the encoder's time."""
    if tuple(entry) != _FIELDS:
        return _COMPACT(entry)
    return f'{_until_path(tuple(entry["by"]), entry["rule"])}{_quoted(entry["path"])},"is":{_quoted(entry["is"])}}}'


@functools.lru_cache(maxsize=1024)
def _until_path(by: tuple[str, ...], rule: str) -> str:
    return f'{{"by":[{",".join(map(_quoted, by))}],"rule":{_quoted(rule)},"path":'


def read_summary(came: Any) -> dict[str, Any] | None:
    """Return the number of edits and the hash that stand for a long record; None for any other annotation."""
    try:
        found = json.loads(came) if isinstance(came, str) and len(came) <= LONGEST else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.keys() != {"edits", "sha256"}:
        return None
    return found if type(found["edits"]) is int and isinstance(found["sha256"], str) else None


def recorded(came: Any) -> list[Entry]:
    """Return the entries of an annotation, true or not; [] for a text that is none, or only a count."""
    if not isinstance(came, str) or len(came.encode(errors="replace")) > LONGEST:
        return []
    try:
        entries = json.loads(came)
    except (ValueError, RecursionError):
        return []
    shape = {"by": list, "rule": str, "path": str, "is": str}
    ours = isinstance(entries, list) and all(
        isinstance(e, dict)
        and e.keys() == shape.keys()
        and all(isinstance(e[k], t) for k, t in shape.items())
        and all(isinstance(p, str) for p in e["by"])
        for e in entries
    )
    return entries if ours else []
