"""``berth.dev/applied``: an annotation for people that records which policy and rule wrote which path of a
pod.

No decision depends on it. It is already in the pod where another webhook has changed the pod and /mutate is
called again, where a pod is created from a copy of another, and where an author writes it. So an existing
entry is retained only if it is true: its digest matches the value at its path, and the policies in force
write that very value into the pod without it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any

from policies.lru import LruCache
from policies.patch import json_tree
from policies.patch.json_patch import MISSING, Patch, pointer, value_at
from policies.pods.view import GRACE, PROBES, TERMS, Raw
from policies.policy import GROUP
from policies.verdict import Edit, Path

APPLIED = f"{GROUP}/applied"
LONGEST = 1024
"""bytes of the annotation (design section 5); past it, a count and a hash replace the entries"""
DEFAULT_GRACE = 30
"""seconds that the API server fills in where the author sets none (k8s.io/api/core/v1)"""
_SHORTEST = 0
"""seconds: below every floor, which is at least a second"""
_GRACE: Path = ("spec", GRACE)
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


def finish(pod: Mapping[str, Any], edits: Iterable[Edit], standing: Any, true: Sequence[Entry]) -> tuple[dict[str, Any], ...]:
    """Return the operations for ``edits`` and for the annotation that records them.

    ``standing`` is the annotation as it came with the pod; ``true`` are its true entries, retained as long as
    the value at their path still matches their digest.
    """
    patch = Patch(pod)
    added = _written(patch, edits)
    kept = [entry for entry in true if digest_at(patch.pod, entry["path"]) == entry["is"]]
    text = _text([*kept, *added], standing, bool(added))
    if text is None and isinstance(standing, str):
        patch.apply(Edit(op="remove", path=("metadata", "annotations", APPLIED), rule="applied", policies=()))
    elif text is not None and text != standing:
        patch.apply(Edit(op="add", path=("metadata", "annotations", APPLIED), value=text, rule="applied", policies=()))
    return tuple(patch.operations)


def _written(patch: Patch, edits: Iterable[Edit]) -> list[Entry]:
    """Apply the edits and return them as entries."""
    applied = [(edit, patch.apply(edit)) for edit in edits]
    # An edit may add to what another one created: the final value is recorded.
    return [
        {"by": list(edit.policies), "rule": edit.rule, "path": pointer(path), "is": digest(value_at(patch.pod, path))}
        for edit, path in applied
        if edit.op != "remove"
    ]


# --- what came with the pod ---------------------------------------------------------------------------------


def true_entries(pod: Raw, standing: Any, whole: Callable[[str], str | None], write: Callable[[Raw], Iterable[Edit]]) -> list[Entry]:
    """Return those entries of the annotation in the pod that are true.

    ``write`` returns the edits that the policies in force make to a pod. ``whole`` returns the resource name
    of the whole GPU for that of a slice. ``write`` is called only if the value at some entry's path matches
    its digest: once, and once more for a grace period whose former value can't be known.
    """
    claimed = [e for e in _entries(standing) if digest_at(pod, e["path"]) == e["is"]]
    paths = {path: e["rule"] for e in claimed if (path := _path(pod, e["path"])) is not None}
    kept: list[Entry] = []
    for grace in _former_graces(pod, paths) if paths else ():
        without = _without(pod, paths, grace, whole)
        kept = _kept(claimed, Counter(_likeness(e) for e in _written(Patch(without), write(without))))
        if _GRACE not in paths or any(e["path"] == pointer(_GRACE) for e in kept):
            break
    return kept


def _without(pod: Raw, paths: Mapping[Path, str], grace: Any, whole: Callable[[str], str | None]) -> Raw:
    without = pod
    for path, rule in sorted(paths.items(), reverse=True):  # what lies deeper, or further back in a list, goes first
        without = _undone(without, path, grace)
        if rule == "mig_resources" and "resources" in path:
            gpu = whole(str(path[-1]))
            without = dict(json_tree.set_at(without, (*path[:-1], gpu), value_at(pod, path))) if gpu else without
    return without


def _kept(claimed: Iterable[Entry], theirs: Counter[tuple[str, ...]]) -> list[Entry]:
    kept = []
    for e in claimed:
        if theirs[_likeness(e)] > 0:
            theirs[_likeness(e)] -= 1
            kept.append(e)
    return kept


def _likeness(entry: Entry) -> tuple[str, ...]:
    """Return the entry as a key without indices, which move when another webhook inserts items."""
    place = "/".join("#" if part.isdecimal() else part for part in entry["path"].split("/"))
    return entry["rule"], place, entry["is"], *entry["by"]


def _path(pod: Raw, text: str) -> Path | None:
    """Return a JSON pointer as a path if it leads to something that Berth may have written, else None."""
    parts: Path = tuple(part if (index := _index(part)) is None else index for part in _parts(text))
    if len(parts) >= 3 and parts[0] == "metadata":
        parts = (*parts[:2], _parts(text)[2])
        return parts if parts[1] in ("annotations", "labels") and len(_parts(text)) == 3 and parts[2] != APPLIED else None
    return parts if parts[:1] == ("spec",) and _is_written(parts[1:]) else None


def _is_written(path: Path) -> bool:
    match path:
        case (str(field),):
            return field == GRACE
        case ("tolerations", int()):
            return True
        case ("containers" | "initContainers", int(), str(probe), str(field)):
            return probe in PROBES and field == GRACE
        case ("containers" | "initContainers", int(), "resources", "limits" | "requests", str()):
            return True
    rest = path[len(TERMS) - 1 :]
    if ("spec", *path[: len(TERMS) - 1]) != TERMS:
        return ("spec", *path) == TERMS[:-1]
    return len(rest) in (1, 2, 3) and rest[1:2] in ((), ("matchExpressions",))


def _former_graces(pod: Raw, paths: Iterable[Path]) -> tuple[Any, ...]:
    """Return the candidates for the former grace period.

    It is the one that probes preserve; else the value that a default raises, then one that only a floor
    raises.
    """
    pinned = next((value_at(pod, path) for path in sorted(paths) if path[-1] == GRACE and path != _GRACE), None)
    return (pinned,) if pinned else (DEFAULT_GRACE, _SHORTEST)


def _undone(pod: Raw, path: Path, grace: Any) -> Raw:
    """Return the pod as it may have been before this path was written: without it, or with the former grace
    period."""
    if path[-1] == GRACE:  # a probe's remains too, as null: an empty probe would count as none
        return dict(json_tree.set_at(pod, path, grace if path == _GRACE else None))
    return dict(json_tree.remove_at(pod, path))


def _entries(standing: Any) -> list[Entry]:
    if not isinstance(standing, str) or len(standing.encode(errors="replace")) > LONGEST:
        return []
    try:
        entries = json.loads(standing)
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


def _parts(text: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(part: str) -> int | None:
    return int(part) if part.isdecimal() and len(part) <= _LONGEST_INDEX else None


def digest_at(pod: Any, text: str) -> str | None:
    """Return the digest of the value at a JSON pointer, or None if there is none."""
    for part in _parts(text):
        if isinstance(pod, list):
            index = _index(part)
            pod = pod[index] if index is not None and index < len(pod) else MISSING
        else:
            pod = pod.get(part, MISSING) if isinstance(pod, dict) else MISSING
        if pod is MISSING:
            return None
    return digest(pod)


# --- its text -----------------------------------------------------------------------------------------------


def _text(entries: list[Entry], standing: Any, added: bool) -> str | None:
    """Return the annotation's value, or None if there is to be none. A count and a hash of the edits replace
    a long one."""
    summary = _summary(standing)
    if not entries:
        return standing if summary is not None and not added else None
    text = f"[{','.join(map(_json, entries))}]"
    if summary is None and len(text.encode()) <= LONGEST:
        return text
    before, chain = (summary["edits"], summary["sha256"]) if summary is not None else (0, "")
    whole = {"edits": before + len(entries), "sha256": hashlib.sha256((chain + text).encode()).hexdigest()}
    return _COMPACT(whole)


def _json(entry: Entry) -> str:
    """Return an entry as compact JSON: those made by ``_written`` in a third of the encoder's time."""
    if tuple(entry) != _FIELDS:
        return _COMPACT(entry)
    rule, path, digest_ = map(_quoted, (entry["rule"], entry["path"], entry["is"]))
    return f'{{"by":[{",".join(map(_quoted, entry["by"]))}],"rule":{rule},"path":{path},"is":{digest_}}}'


def _summary(standing: Any) -> dict[str, Any] | None:
    try:
        found = json.loads(standing) if isinstance(standing, str) and len(standing) <= LONGEST else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.keys() != {"edits", "sha256"}:
        return None
    return found if type(found["edits"]) is int and isinstance(found["sha256"], str) else None
