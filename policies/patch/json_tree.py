"""Changes to JSON-like trees that leave the old tree as it was: parts off the path of a change are shared,
not copied.

So ``is`` identifies the parts that did not change, and a diff can skip them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from policies.verdict import Path

Place = Callable[[Any, "str | int"], None]


def set_at(tree: Any, path: Path, value: Any) -> Any:
    """Return ``tree`` with ``value`` at ``path``; ``-`` at the end appends. Missing or null parents are
    created."""
    return _changed(tree, path, lambda parent, key: _set(parent, key, value))


def insert_at(tree: Any, path: Path, value: Any) -> Any:
    """Do the same as ``set_at``, but insert at an index before the item that is there (RFC 6902 ``add``)."""
    return _changed(tree, path, lambda parent, key: _insert(parent, key, value))


def remove_at(tree: Any, path: Path) -> Any:
    """Return ``tree`` without the value at ``path``, or ``tree`` itself if there is none."""
    return _changed(tree, path, _remove) if _exists(tree, path) else tree


def value_at(tree: Any, path: Path) -> Any:
    """Return the value at ``path``, or None."""
    for part in path:
        if isinstance(tree, Mapping):
            tree = tree.get(part)
        elif isinstance(tree, list) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
        else:
            return None
    return tree


def apply_patch(tree: Any, operations: Iterable[Mapping[str, Any]]) -> Any:
    """Return ``tree`` after RFC 6902 ``add``, ``replace`` and ``remove``, the three operations that Berth
    writes."""
    for operation in operations:
        path = pointer(tree, operation["path"])
        if operation["op"] == "remove":
            tree = remove_at(tree, path)
        elif operation["op"] == "add":
            tree = insert_at(tree, path, operation["value"])
        else:
            tree = set_at(tree, path, operation["value"])
    return tree


def pointer(tree: Any, text: str) -> Path:
    """Return a JSON Pointer (RFC 6901) as a path in ``tree``, where a number is an index only in a list."""
    path: list[str | int] = []
    for raw in text.split("/")[1:]:
        part: str | int = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(tree, list) and part != "-":
            part = int(part)
        tree = value_at(tree, (part,))
        path.append(part)
    return tuple(path)


def _changed(tree: Any, path: Path, change: Place) -> Any:
    key = path[0]
    copy = _copy(tree, key)
    if len(path) == 1:
        change(copy, key)
    else:
        _set(copy, key, _changed(value_at(copy, (key,)), path[1:], change))
    return copy


def _copy(tree: Any, key: str | int) -> Any:
    if tree is None:
        return [] if isinstance(key, int) or key == "-" else {}
    return list(tree) if isinstance(tree, list) else dict(tree)


def _set(parent: Any, key: str | int, value: Any) -> None:
    if isinstance(parent, list) and (key == "-" or key == len(parent)):
        parent.append(value)
    else:
        parent[key] = value


def _insert(parent: Any, key: str | int, value: Any) -> None:
    if isinstance(parent, list) and isinstance(key, int):
        parent.insert(key, value)
    else:
        _set(parent, key, value)


def _remove(parent: Any, key: str | int) -> None:
    del parent[key]


def _exists(tree: Any, path: Path) -> bool:
    parent = value_at(tree, path[:-1])
    if isinstance(parent, list):
        return isinstance(path[-1], int) and path[-1] < len(parent)
    return isinstance(parent, Mapping) and path[-1] in parent
