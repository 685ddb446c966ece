"""Edits as JSON Patch (RFC 6902): each in the smallest place, on a working copy that shares what did not change."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from typing import Any

from policies.catalog import LONGEST_NAME
from policies.verdict import Edit, Path

MISSING = object()
"""stands where nothing does"""


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
    """What stands at a path, or MISSING where nothing does."""
    for part in path:
        here = part in pod if isinstance(pod, dict) else isinstance(pod, list) and isinstance(part, int) and part < len(pod)
        if not here:
            return MISSING
        pod = pod[part]
    return pod
