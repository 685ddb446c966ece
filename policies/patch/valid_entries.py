"""The entries of ``berth.dev/applied`` that a pod arrives with, and the pod without what they record.

The annotation is already there where another webhook has changed the pod and /mutate is called again, where a
pod is created from a copy of another, where an author writes it, and in every pod that is stored. So an entry
counts only if it is true: its digest matches the value at its path, and the policies in force write that very
value into the pod without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kube.pod import GRACE
from kube.tree import Path, Raw, TreePatch, pointer, remove_at, set_at, value_at
from policies.patch.build import apply_edits
from policies.patch.record import APPLIED, RECORD, Entry, index_of, intact_entries, steps
from policies.pods.projection import is_written
from policies.verdict import Edit

DEFAULT_GRACE = 30
"""seconds that the API server fills in where the author sets none (k8s.io/api/core/v1)"""
_SHORTEST = 0
"""seconds: below every floor, which is at least a second"""
_GRACE: Path = ("spec", GRACE)
Whole = Callable[[str], str | None]
"""Returns the resource name of the whole GPU for that of a slice; None for any other name."""
Write = Callable[[Raw], Iterable[Edit]]
"""Returns the edits that the policies in force make to a pod."""


class ValidEntries(NamedTuple):
    """The true entries, and the grace period that the pod had before."""

    entries: list[Entry]
    grace: Any


def find_valid_entries(pod: Raw, whole: Whole, write: Write) -> ValidEntries:
    """Return what is true of the annotation in the pod.

    ``write`` is called only if the value at some entry's path matches its digest: once, and once more for a
    grace period whose former value can't be known.
    """
    claimed = intact_entries(pod)
    paths = _paths(claimed)
    best, found = (-1, False), ValidEntries([], None)
    for grace in _former_graces(pod, paths) if paths else ():
        without = _without(pod, paths, grace, whole)
        theirs = Counter(_likeness(e) for e in apply_edits(TreePatch(without), write(without)))
        tried = ValidEntries(_kept(claimed, theirs), grace)
        rank = (any(e["path"] == pointer(_GRACE) for e in tried.entries), not theirs.total())
        best, found = max((best, found), (rank, tried), key=lambda one: one[0])
        if _GRACE not in paths or rank == (True, True):  # nothing would have been written that is not recorded
            break
    return found


def before(pod: Raw, found: ValidEntries, whole: Whole) -> Raw:
    """Return the pod as it arrived before Berth wrote what ``found`` records, and without the annotation.

    Maps and lists that are left empty were made for what was written: the API server stores no empty ones, and
    fills requests from limits. Of annotations, labels and affinity, a projection does not tell whether they are.
    """
    paths = _paths(found.entries)
    without = dict(remove_at(_without(pod, paths, found.grace, whole), RECORD))
    for path in (path for path in paths if path[0] == "spec" and "requests" not in path):
        for length in range(len(path) - 1, 2 if path[1] == "affinity" else 1, -1):
            if value_at(without, path[:length]) in ({}, []):
                without = dict(remove_at(without, path[:length]))
    return without


def _paths(entries: Iterable[Entry]) -> dict[Path, str]:
    """Return the rule of each entry, by path."""
    return {path: e["rule"] for e in entries if (path := _path(e["path"])) is not None}


def _without(pod: Raw, paths: Mapping[Path, str], grace: Any, whole: Whole) -> Raw:
    without = pod
    for path, rule in sorted(paths.items(), reverse=True):  # what lies deeper, or further back in a list, goes first
        without = _undone(without, path, grace)
        if rule == "mig_resources" and "resources" in path:
            gpu = whole(str(path[-1]))
            without = dict(set_at(without, (*path[:-1], gpu), value_at(pod, path))) if gpu else without
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


def _path(text: str) -> Path | None:
    """Return a JSON pointer as a path if it leads to something that Berth may have written, else None."""
    parts: Path = tuple(part if (index := index_of(part)) is None else index for part in steps(text))
    if len(parts) >= 3 and parts[0] == "metadata":
        parts = (*parts[:2], steps(text)[2])
        return parts if parts[1] in ("annotations", "labels") and len(steps(text)) == 3 and parts[2] != APPLIED else None
    return parts if is_written(parts) else None


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
        return dict(set_at(pod, path, grace if path == _GRACE else None))
    return dict(remove_at(pod, path))
