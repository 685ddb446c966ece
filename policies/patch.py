"""Edits as JSON Patch (RFC 6902): each in the smallest place, on a working copy that shares what did not change."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from policies.catalog import LONGEST_NAME
from policies.policy import GROUP
from policies.verdict import Edit, Path

APPLIED = f"{GROUP}/applied"
_MOST_APPLIED = 1024
"""bytes of the annotation (design section 5); past it, a count and a hash stand for the entries"""
_MISSING = object()
_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_COMPACT = json.JSONEncoder(separators=(",", ":")).encode
"""encoders made once: ``json.dumps`` with arguments makes one each time"""


def pointer(path: Path) -> str:
    """RFC 6901: ``~`` and ``/`` escaped."""
    return _pointer(path) if path and len(str(path[-1])) > LONGEST_NAME else _remembered(path)


def _pointer(path: Path) -> str:
    return "".join(["/" + str(part).replace("~", "~0").replace("/", "~1") for part in path])


_remembered = functools.lru_cache(maxsize=2048)(_pointer)


class Patch:
    """Operations so far and the pod as they leave it. The original is never changed: what lies on an edit's way is
    copied once, the rest is shared."""

    def __init__(self, pod: Mapping[str, Any]) -> None:
        self.pod: dict[str, Any] = dict(pod)
        self.operations: list[dict[str, Any]] = []
        self._own: dict[int, Any] = {id(self.pod): self.pod}

    def apply(self, edit: Edit) -> Path:
        """Apply one edit, making the parents that are missing; the path that it ended at (``-`` as an index)."""
        path, value = edit.path, edit.value
        if edit.op != "remove":
            path, value = self._from_missing(path, value)
        parent = self._parent(path)
        final = _change(parent, edit.op, path[-1], value)
        operation: dict[str, Any] = {"op": edit.op, "path": pointer(path)}
        self.operations.append(operation if edit.op == "remove" else operation | {"value": value})
        return (*path[:-1], final) if path == edit.path else (*edit.path[:-1], 0 if edit.path[-1] == "-" else edit.path[-1])

    def _from_missing(self, path: Path, value: Any) -> tuple[Path, Any]:
        """The shallowest missing parent, and the value nested down from there. A null parent counts as missing."""
        here: Any = self.pod
        for depth, part in enumerate(path[:-1]):
            here = here.get(part) if isinstance(here, dict) else here[part] if isinstance(part, int) else None
            if here is None:
                for rest in reversed(path[depth + 1 :]):
                    value = [value] if rest == "-" else {rest: value}
                return path[: depth + 1], value
        return path, value

    def _parent(self, path: Path) -> Any:
        here: Any = self.pod
        for part in path[:-1]:
            child = here[part]
            if id(child) not in self._own:
                child = here[part] = copy.copy(child)
                self._own[id(child)] = child
            here = child
        return here


def _change(parent: Any, op: str, key: str | int, value: Any) -> str | int:
    if isinstance(parent, list):
        index = len(parent) if key == "-" else int(key)
        if op == "add":
            parent.insert(index, value)
        elif op == "replace":
            parent[index] = value
        else:
            del parent[index]
        return index
    if op == "remove":
        del parent[key]
    else:
        parent[key] = value
    return key


def value_at(pod: Any, path: Path) -> Any:
    """What stands at a path, or a private marker where nothing does."""
    for part in path:
        here = part in pod if isinstance(pod, dict) else isinstance(pod, list) and isinstance(part, int) and part < len(pod)
        if not here:
            return _MISSING
        pod = pod[part]
    return pod


# --- berth.dev/applied -------------------------------------------------------------------------------------------------


def digest(value: Any) -> str:
    """Eight hex digits that stand for a value."""
    return hashlib.sha256(_SORTED(value).encode()).hexdigest()[:8]


def finish(pod: Mapping[str, Any], edits: Iterable[Edit], standing: Any, policies: frozenset[str]) -> tuple[dict[str, Any], ...]:
    """The operations for ``edits`` and the annotation that records them.

    ``standing``: the annotation as it came. Its entries are kept while their policy is in force for the namespace and
    the value at their path is what they say. It is never read for a decision.
    """
    patch = Patch(pod)
    applied = [(edit, patch.apply(edit)) for edit in edits]
    # What one edit has made another may fill: what stands there in the end is what is recorded.
    added = [_entry(edit, path, value_at(patch.pod, path)) for edit, path in applied if edit.op != "remove"]
    kept = _kept(patch.pod, standing, policies)
    text = _text([*kept, *added], standing, bool(added))
    if text is None and isinstance(standing, str):
        patch.apply(Edit(op="remove", path=("metadata", "annotations", APPLIED), rule="applied", policies=()))
    elif text is not None and text != standing:
        patch.apply(Edit(op="add", path=("metadata", "annotations", APPLIED), value=text, rule="applied", policies=()))
    return tuple(patch.operations)


def _entry(edit: Edit, path: Path, value: Any) -> dict[str, Any]:
    return {"by": list(edit.policies), "rule": edit.rule, "path": pointer(path), "is": digest(value)}


def _kept(pod: Mapping[str, Any], standing: Any, policies: frozenset[str]) -> list[dict[str, Any]]:
    entries = _entries(standing)
    return [e for e in entries if policies.issuperset(e["by"]) and digest_at(pod, e["path"]) == e["is"]]


def _entries(standing: Any) -> list[dict[str, Any]]:
    try:
        entries = json.loads(standing) if isinstance(standing, str) else []
    except (ValueError, RecursionError):
        return []
    shape = {"by": list, "rule": str, "path": str, "is": str}
    whole = isinstance(entries, list) and all(
        isinstance(e, dict)
        and e.keys() == shape.keys()
        and all(isinstance(e[k], t) for k, t in shape.items())
        and all(isinstance(p, str) for p in e["by"])
        for e in entries
    )
    return entries if whole else []


def digest_at(pod: Any, text: str) -> str | None:
    """The digest of what stands at a JSON pointer; None where nothing does."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]
    for part in parts:
        if isinstance(pod, list):
            pod = pod[int(part)] if part.isdecimal() and int(part) < len(pod) else _MISSING
        else:
            pod = pod.get(part, _MISSING) if isinstance(pod, dict) else _MISSING
        if pod is _MISSING:
            return None
    return digest(pod)


def _text(entries: list[dict[str, Any]], standing: Any, added: bool) -> str | None:
    """The annotation's value; None for none. Too long: how many edits, and a hash of them."""
    summary = _summary(standing)
    if not entries:
        return standing if summary is not None and not added else None
    text = _COMPACT(entries)
    if summary is None and len(text.encode()) <= _MOST_APPLIED:
        return text
    before, chain = (summary["edits"], summary["sha256"]) if summary is not None else (0, "")
    whole = {"edits": before + len(entries), "sha256": hashlib.sha256((chain + text).encode()).hexdigest()}
    return _COMPACT(whole)


def _summary(standing: Any) -> dict[str, Any] | None:
    try:
        found = json.loads(standing) if isinstance(standing, str) else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.keys() != {"edits", "sha256"}:
        return None
    return found if type(found["edits"]) is int and isinstance(found["sha256"], str) else None
