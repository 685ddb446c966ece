"""The difference between two JSON-like trees as RFC 6902 operations, in as few of them as the places that differ."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from kube.tree import Path
from policies.patch.json_patch import pointer


def operations(before: Any, after: Any, whole: Collection[str] = (), path: Path = ()) -> Iterator[dict[str, Any]]:
    """Yield the operations that turn ``before`` into ``after``: a map or list that was not there is one of them, and so is each
    item at the end of a list. A list that got shorter is replaced, and one whose name is in ``whole`` where that is shorter; a
    null is added to, since a projection may have one where the pod has nothing. The same trees give the same order."""
    if before is after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from ({"op": "remove", "path": pointer((*path, key))} for key in before if key not in after)
        for key, value in after.items():
            if before.get(key) is not None or (value is None and key in before):
                yield from operations(before[key], value, whole, (*path, key))
            else:
                yield {"op": "add", "path": pointer((*path, key)), "value": value}
    elif isinstance(before, list) and isinstance(after, list) and len(before) <= len(after):
        of_items = list(_of_items(before, after, whole, path))
        at_once = [{"op": "replace", "path": pointer(path), "value": after}]
        shorter = path and path[-1] in whole and len(json.dumps(at_once)) < len(json.dumps(of_items))
        yield from at_once if shorter else of_items
    elif before != after or type(before) is not type(after):
        yield {"op": "replace", "path": pointer(path), "value": after}


def _of_items(before: list[Any], after: list[Any], whole: Collection[str], path: Path) -> Iterator[dict[str, Any]]:
    for index, (old, new) in enumerate(zip(before, after, strict=False)):
        yield from operations(old, new, whole, (*path, index))
    for value in after[len(before) :]:
        yield {"op": "add", "path": pointer((*path, "-")), "value": value}
