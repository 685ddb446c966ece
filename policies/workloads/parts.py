"""Map the parts of pods to their places in a manifest: for messages, which name the manifest's own paths, and
for edits, which go there.

A pod template is one part, the whole pod. If a manifest describes its pods in fields of its own, each field
is one part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kube.tree import Path, dotted, remove_at, set_at, value_at
from policies.verdict import Edit


@dataclass(frozen=True, slots=True)
class PodPart:
    """One part of a pod."""

    pod: Path
    """The path in the pod; () is all of it."""
    at: Path
    """The path in the manifest where it is read."""
    own: Path | None
    """The path in the manifest where an edit of it belongs; None if there is no such field."""
    within: bool = False
    """True if it is part of a text that is at ``at``."""


Parts = tuple[PodPart, ...]


def template(path: Path) -> Parts:
    """Return the parts of a pod template at ``path``."""
    return (PodPart((), path, path),)


def moved(parts: Parts, start: Path) -> Parts:
    """Return the same parts of a manifest that is itself at ``start``."""
    return tuple(replace(part, at=start + part.at, own=None if part.own is None else start + part.own) for part in parts)


def in_pod(path: Path, parts: Iterable[PodPart]) -> tuple[Path, ...]:
    """Return the paths of the pod for ``path`` of the manifest: none, one, or as many as a patch has in
    one text."""
    return tuple(part.pod + path[len(part.at) :] for part in parts if path[: len(part.at)] == part.at)


def at(path: Path, parts: Iterable[PodPart]) -> Path | None:
    """Return the manifest's path for a path of the pod, or None if the manifest has no such field."""
    part = _narrowest(path, parts)
    return None if part is None else part.at + path[len(part.pod) :]


def own(path: Path, parts: Iterable[PodPart]) -> Path | None:
    """Return the manifest's path where an edit at a path of the pod belongs, or None if there is no such
    field."""
    part = _narrowest(path, parts)
    return None if part is None or part.own is None else part.own + path[len(part.pod) :]


def _narrowest(path: Path, parts: Iterable[PodPart]) -> PodPart | None:
    around = [part for part in parts if path[: len(part.pod)] == part.pod]
    return max(around, key=lambda part: len(part.pod), default=None)


def placed(path: Path, parts: Parts) -> str:
    """Return the text by which messages name a path of the pod.

    It is the manifest's own path; the pod's path and that of the text, if it is in a text; or the pod's path,
    if the manifest has none.
    """
    part = _narrowest(path, parts)
    if part is None:
        return dotted(path)
    return f"{dotted(path)} in {dotted(part.at)}" if part.within else dotted(part.at + path[len(part.pod) :])


def write_parts(value: Any, before: Any, after: Any, parts: Parts) -> Any:
    """Return the manifest with the edits of its pod, of which ``before`` is the tree made of the parts, and
    ``after`` the edited one.

    What no edit touched is shared.
    """
    mapped = {part.pod for part in parts}
    for part in sorted(parts, key=lambda part: -len(part.pod)):
        old, new = value_at(before, part.pod), value_at(after, part.pod)
        if part.own is None or old is new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            value = _fields(value, part, old, new, mapped)
        else:
            value = remove_at(value, part.own) if new is None else set_at(value, part.own, new)
    return value


def _fields(value: Any, part: PodPart, old: dict[str, Any], new: dict[str, Any], mapped: set[Path]) -> Any:
    """Write field by field: what was added to a part to make it a pod's (a container's name) is not the
    author's."""
    assert part.own is not None
    place = part.own
    if part.own != part.at:  # read elsewhere: the overriding field takes the whole value
        return set_at(value, place, new)
    for key in dict.fromkeys((*new, *old)):
        if (*part.pod, key) in mapped or old.get(key) is new.get(key):
            continue
        value = set_at(value, (*place, key), new[key]) if key in new else remove_at(value, (*place, key))
    return value


def unshown(edits: Sequence[Edit], parts: Parts) -> tuple[Edit, ...]:
    """Return the edits for which the manifest has no field."""
    return tuple(edit for edit in edits if own(edit.path, parts) is None)
