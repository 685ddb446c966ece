"""Edits as JSON Patch (RFC 6902): each as small as possible, on a working copy that shares unchanged
parts."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from catalog import LONGEST_NAME
from kube.tree import Path
from policies.verdict import Edit

MISSING = object()
"""the result of a look-up where the pod has no value"""


def pointer(path: Path) -> str:
    """Return the path as a JSON Pointer (RFC 6901), with ``~`` and ``/`` escaped."""
    last = path[-1] if path else 0
    return _pointer(path) if isinstance(last, str) and len(last) > LONGEST_NAME else _remembered(path)


def _pointer(path: Path) -> str:
    return "".join(["/" + str(part).replace("~", "~0").replace("/", "~1") for part in path])


_remembered = functools.lru_cache(maxsize=2048)(_pointer)


class PodPatch:
    """The operations so far and the pod after them.

    The original is never changed: containers on the path of an edit are copied once, the rest is shared.
    """

    def __init__(self, pod: Mapping[str, Any]) -> None:
        self.pod: dict[str, Any] = dict(pod)
        self.operations: list[dict[str, Any]] = []
        self._own: dict[int, Any] = {id(self.pod): self.pod}
        self._last: tuple[Path, Any] = (), self.pod
        """The parent of the last edit's path, and its container: most edits append to the list of the one before."""

    def apply(self, edit: Edit) -> Path:
        """Apply one edit, creating missing parents, and return the path of its value (with an index in place
        of ``-``)."""
        if edit.op == "add" and edit.path[-1] == "-" and edit.path[:-1] == self._last[0]:
            parent, path, value = self._last[1], edit.path, edit.value
        else:
            parent, path, value = self._place(edit)
            self._last = path[:-1], parent
        final = _change(parent, edit.op, path[-1], value)
        operation: dict[str, Any] = {"op": edit.op, "path": pointer(path)}
        self.operations.append(operation if edit.op == "remove" else operation | {"value": value})
        return (*path[:-1], final) if path == edit.path else (*edit.path[:-1], 0 if edit.path[-1] == "-" else edit.path[-1])

    def _place(self, edit: Edit) -> tuple[Any, Path, Any]:
        """Return the container to change, the path to write and the value.

        If a parent is missing or null, the path is that of the shallowest such parent and the value is nested
        in it.
        """
        path, value = edit.path, edit.value
        here: Any = self.pod
        for depth, part in enumerate(path[:-1]):
            child = here.get(part) if isinstance(here, dict) else here[part] if isinstance(part, int) else None
            if child is None:
                for rest in reversed(path[depth + 1 :]):
                    value = [value] if rest == "-" else {rest: value}
                return here, path[: depth + 1], value
            if id(child) not in self._own:
                child = here[part] = child.copy()
                self._own[id(child)] = child
            here = child
        return here, path, value


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
    """Return the value at a path, or MISSING if there is none."""
    try:
        for part in path:
            if isinstance(pod, str):
                return MISSING
            pod = pod[part]
    except (LookupError, TypeError):  # a list has no such index, or no keys
        return MISSING
    return pod
