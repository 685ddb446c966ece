"""Where in a manifest the parts of its pods stand: for messages, which name the manifest's own paths, and for edits, which go there.

A pod template is one part, the whole pod. Where a manifest says in fields of its own what its pods are like, each field is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from policies.document import path_text
from policies.edit_tree import remove_at, set_at, value_at
from policies.verdict import Edit, Path
from policies.workloads.shape import POD

_TOP = "|".join(rf"{part}\.(?:{'|'.join(fields)})" for part, fields in POD.items())
_IN_POD = re.compile(rf'"[^"]*"|(?<![\w.\]])(?:{_TOP})\b((?:\.\w+|\[\d+\]|\["[^"]*"\])*)')
"""a path in a pod, of the fields that rules read (those of policies are others), or a quoted text, which may hold anything"""
_STEP = re.compile(r'\.?(\w+)|\[(\d+)\]|\["([^"]*)"\]')


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a pod."""

    pod: Path
    """where in the pod; () is all of it"""
    at: Path
    """where in the manifest it is read"""
    own: Path | None
    """where in the manifest an edit of it belongs; None where there is no such field"""
    within: bool = False
    """it stands in a text that is at ``at``"""


Parts = tuple[Part, ...]


def template(path: Path) -> Parts:
    """Of a pod template that stands at ``path``."""
    return (Part((), path, path),)


def moved(parts: Parts, start: Path) -> Parts:
    """The same parts of a manifest that itself stands at ``start``."""
    return tuple(replace(part, at=start + part.at, own=None if part.own is None else start + part.own) for part in parts)


def in_pod(path: Path, parts: Iterable[Part]) -> tuple[Path, ...]:
    """The paths of the pod that stand at ``path`` of the manifest: none, one, or as many as a patch has in one text."""
    return tuple(part.pod + path[len(part.at) :] for part in parts if path[: len(part.at)] == part.at)


def at(path: Path, parts: Iterable[Part]) -> Path | None:
    """Where in the manifest a path of the pod is; None where the manifest has no such field."""
    part = _narrowest(path, parts)
    return None if part is None else part.at + path[len(part.pod) :]


def own(path: Path, parts: Iterable[Part]) -> Path | None:
    """Where in the manifest an edit at a path of the pod belongs; None where there is no such field."""
    part = _narrowest(path, parts)
    return None if part is None or part.own is None else part.own + path[len(part.pod) :]


def _narrowest(path: Path, parts: Iterable[Part]) -> Part | None:
    around = [part for part in parts if path[: len(part.pod)] == part.pod]
    return max(around, key=lambda part: len(part.pod), default=None)


def placed(text: str, parts: Parts) -> str:
    """A sentence about the pod with the manifest's paths in it; a path that the manifest lacks stays the pod's."""
    return _IN_POD.sub(lambda match: match[0] if match[0].startswith('"') else _placed(match[0], parts), text)


def _placed(text: str, parts: Parts) -> str:
    path: Path = tuple(int(number) if number else name or key for name, number, key in _STEP.findall(text))
    part = _narrowest(path, parts)
    if part is None:
        return text
    return f"{text} in {path_text(part.at)}" if part.within else path_text(part.at + path[len(part.pod) :])


def written(value: Any, before: Any, after: Any, parts: Parts) -> Any:
    """The manifest with what became of its pod: of the tree ``before``, made of the parts, ``after``. What no edit touched is shared."""
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


def _fields(value: Any, part: Part, old: dict[str, Any], new: dict[str, Any], mapped: set[Path]) -> Any:
    """Field by field: what the part was given to be a pod's (a container's name) is not the author's."""
    assert part.own is not None
    place = part.own
    if part.own != part.at:  # what counts stands elsewhere: the field that would hide it takes all of it
        return set_at(value, place, new)
    for key in dict.fromkeys((*new, *old)):
        if (*part.pod, key) in mapped or old.get(key) is new.get(key):
            continue
        value = set_at(value, (*place, key), new[key]) if key in new else remove_at(value, (*place, key))
    return value


def unshown(edits: Sequence[Edit], parts: Parts) -> tuple[Edit, ...]:
    """The edits for which the manifest has no field."""
    return tuple(edit for edit in edits if own(edit.path, parts) is None)
