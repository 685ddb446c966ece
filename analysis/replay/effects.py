"""What a patch does to a pod, whatever form it is written in: two patches with the same effects make the same pod.

A toleration appended to a list and the same one in a list that was missing are one effect; the record of who
wrote what (``berth.dev/applied``) is none, so that policies may be renamed or split and do the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kube.pod import CONTAINERS
from kube.tree import Path
from policies.patch.record import APPLIED, index_of, recorded, steps
from policies.verdict import Edit

ITEM = "-"
"""Stands for any index of a list of which the order does not matter."""
_WHOLE = ("tolerations", "matchExpressions", "matchFields", "values")
"""Lists whose items are one effect each; the values of one expression are part of it."""


class EditEffect(NamedTuple):
    """One value that is set, appended or removed."""

    path: tuple[str, ...]
    value: str
    """As JSON; "" for one that is removed."""


def of_edits(edits: Iterable[Edit]) -> dict[EditEffect, tuple[str, ...]]:
    """Return the effects of edits, each with the policies that ask for it."""
    found: dict[EditEffect, tuple[str, ...]] = {}
    for edit in edits:
        for effect in _effects(edit.op, edit.path, edit.value):
            found[effect] = tuple(sorted({*found.get(effect, ()), *edit.policies}))
    return found


def of_patch(operations: object) -> Counter[EditEffect]:
    """Return the effects of a JSON Patch as it was recorded; what is no operation has none."""
    found: Counter[EditEffect] = Counter()
    for operation in operations if isinstance(operations, list | tuple) else ():
        match operation:
            case {"op": ("add" | "replace" | "remove") as op, "path": str(pointer)}:
                path: Path = tuple(step if (at := index_of(step)) is None else at for step in steps(pointer))
                found.update(_effects(op, path, operation.get("value")))
    return found


def policies_by_path(operations: object) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return what a recorded patch says of who wrote which path; nothing where it says nothing, or only a count."""
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for operation in operations if isinstance(operations, list | tuple) else ():
        for entry in recorded(_applied(operation)):
            path = _path(tuple(step if (at := index_of(step)) is None else at for step in steps(entry["path"])))
            found[path] = tuple(sorted({*found.get(path, ()), *entry["by"]}))
    return found


def writers(effect: EditEffect, by_path: Mapping[tuple[str, ...], tuple[str, ...]]) -> tuple[str, ...]:
    """Return the policies that wrote an effect, by its path or the path of what it is a part of."""
    return tuple(sorted({name for path, names in by_path.items() if effect.path[: len(path)] == path for name in names}))


def _applied(operation: object) -> object:
    match operation:
        case {"path": str(pointer), "value": str(text)} if steps(pointer) == ["metadata", "annotations", APPLIED]:
            return text
        case {"path": "/metadata/annotations", "value": {**annotations}}:
            return annotations.get(APPLIED)
    return None


def _effects(op: str, path: Path, value: Any) -> Iterator[EditEffect]:
    if path[:3] == ("metadata", "annotations", APPLIED):
        return
    if op == "remove":
        yield EditEffect(_path(path), "")
    else:
        yield from _leaves(_path(path), value)


def _path(path: Path) -> tuple[str, ...]:
    """Return the path with indices of lists whose order does not matter as ``ITEM``."""
    return tuple(
        str(step) if not isinstance(step, int) or (number and path[number - 1] in CONTAINERS) else ITEM for number, step in enumerate(path)
    )


def _leaves(path: tuple[str, ...], value: Any) -> Iterator[EditEffect]:
    """Yield what is set below a path. It does not recurse: a recorded value may be nested as deep as JSON may be."""
    todo: list[tuple[tuple[str, ...], Any]] = [(path, value)]
    while todo:
        path, value = todo.pop()
        whole = len(path) > 1 and path[-1] == ITEM and path[-2] in _WHOLE
        if isinstance(value, dict) and not whole:
            todo += [((*path, str(key)), one) for key, one in value.items() if (*path, key) != ("metadata", "annotations", APPLIED)]
        elif isinstance(value, list) and not whole:
            placed = path[-1] in CONTAINERS
            todo += [((*path, str(at) if placed else ITEM), one) for at, one in enumerate(value)]
        else:
            yield EditEffect(path, _text(value))


def _text(value: Any) -> str:
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        return "..."
