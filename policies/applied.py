"""``berth.dev/applied``: which policy and rule wrote which path of a pod. Words for people; no decision is made by it.

It comes back with the pod where another webhook has changed it and /mutate is called again, where a pod is made from a copy of another,
and where an author writes it. So an entry that came is kept only if it is true: the value at its path is what it says, and the policies
in force write that very value into the pod as it is without it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from policies import edit_tree
from policies.patch import MISSING, Patch, pointer, value_at
from policies.pod import GRACE, PROBES, TERMS, Raw
from policies.policy import GROUP
from policies.verdict import Edit, Path

APPLIED = f"{GROUP}/applied"
LONGEST = 1024
"""bytes of the annotation (design section 5); past it, a count and a hash stand for the entries. A longer one is not ours"""
DEFAULT_GRACE = 30
"""seconds that the API server writes where an author says nothing (k8s.io/api/core/v1)"""
_SHORTEST = 0
"""seconds: below every floor, which is at least a second"""
_GRACE: Path = ("spec", GRACE)
_LONGEST_INDEX = 6
"""digits: a pod of 3 MiB has no list of a million"""
_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_COMPACT = json.JSONEncoder(separators=(",", ":")).encode
"""encoders made once: ``json.dumps`` with arguments makes one each time"""

Entry = dict[str, Any]
"""``{"by": ["ClusterGPUPolicy/a"], "rule": "tolerations", "path": "/spec/tolerations/0", "is": "ec582b1c"}``"""


def digest(value: Any) -> str:
    """Eight hex digits that stand for a value."""
    return hashlib.sha256(_SORTED(value).encode()).hexdigest()[:8]


def finish(pod: Mapping[str, Any], edits: Iterable[Edit], standing: Any, true: Sequence[Entry]) -> tuple[dict[str, Any], ...]:
    """The operations for ``edits`` and the annotation that records them.

    ``standing``: the annotation as it came; ``true``: its entries that are to be kept, while the value at their path is what they say.
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
    """The edits, applied, as entries."""
    applied = [(edit, patch.apply(edit)) for edit in edits]
    # What one edit has made another may fill: what stands there in the end is what is recorded.
    return [_entry(edit, path, value_at(patch.pod, path)) for edit, path in applied if edit.op != "remove"]


def _entry(edit: Edit, path: Path, value: Any) -> Entry:
    return {"by": list(edit.policies), "rule": edit.rule, "path": pointer(path), "is": digest(value)}


# --- what came with the pod ---------------------------------------------------------------------------------------------


def true_entries(pod: Raw, standing: Any, whole: Callable[[str], str | None], write: Callable[[Raw], Iterable[Edit]]) -> list[Entry]:
    """Of the annotation as it came the entries that are true of this pod.

    ``write``: what the policies in force write into a pod. ``whole``: of a slice's resource name that of the whole GPU. ``write`` is called
    only where a value is what an entry says: once, and once more for a grace period of which nobody can tell what it was.
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
            without = dict(edit_tree.set_at(without, (*path[:-1], gpu), value_at(pod, path))) if gpu else without
    return without


def _kept(claimed: Iterable[Entry], theirs: Counter[tuple[str, ...]]) -> list[Entry]:
    kept = []
    for e in claimed:
        if theirs[_likeness(e)] > 0:
            theirs[_likeness(e)] -= 1
            kept.append(e)
    return kept


def _likeness(entry: Entry) -> tuple[str, ...]:
    """Without indices: what another webhook puts in between moves them."""
    place = "/".join("#" if part.isdecimal() else part for part in entry["path"].split("/"))
    return entry["rule"], place, entry["is"], *entry["by"]


def _path(pod: Raw, text: str) -> Path | None:
    """A JSON pointer as a path, where it leads to something that Berth may have written into this pod; else None."""
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
    """As probes have it, which keep the former one; else what a default raises, then what only a floor does."""
    pinned = next((value_at(pod, path) for path in sorted(paths) if path[-1] == GRACE and path != _GRACE), None)
    return (pinned,) if pinned else (DEFAULT_GRACE, _SHORTEST)


def _undone(pod: Raw, path: Path, grace: Any) -> Raw:
    """The pod as it may have been before this was written: without it, with the former grace."""
    if path[-1] == GRACE:  # of a probe too it stays, as null: a probe that is empty is none
        return dict(edit_tree.set_at(pod, path, grace if path == _GRACE else None))
    return dict(edit_tree.remove_at(pod, path))


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
    """The digest of what stands at a JSON pointer; None where nothing does."""
    for part in _parts(text):
        if isinstance(pod, list):
            index = _index(part)
            pod = pod[index] if index is not None and index < len(pod) else MISSING
        else:
            pod = pod.get(part, MISSING) if isinstance(pod, dict) else MISSING
        if pod is MISSING:
            return None
    return digest(pod)


# --- its text -----------------------------------------------------------------------------------------------------------


def _text(entries: list[Entry], standing: Any, added: bool) -> str | None:
    """The annotation's value; None for none. Too long: how many edits, and a hash of them."""
    summary = _summary(standing)
    if not entries:
        return standing if summary is not None and not added else None
    text = _COMPACT(entries)
    if summary is None and len(text.encode()) <= LONGEST:
        return text
    before, chain = (summary["edits"], summary["sha256"]) if summary is not None else (0, "")
    whole = {"edits": before + len(entries), "sha256": hashlib.sha256((chain + text).encode()).hexdigest()}
    return _COMPACT(whole)


def _summary(standing: Any) -> dict[str, Any] | None:
    try:
        found = json.loads(standing) if isinstance(standing, str) and len(standing) <= LONGEST else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.keys() != {"edits", "sha256"}:
        return None
    return found if type(found["edits"]) is int and isinstance(found["sha256"], str) else None
