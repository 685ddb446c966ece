"""Changes to JSON-like trees that leave the old tree as it was: what is not on the way to a change is shared, not copied.

So ``is`` tells what a change left alone: a diff need not look there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from policies.verdict import Path

Place = Callable[[Any, "str | int"], None]


def set_at(tree: Any, path: Path, value: Any) -> Any:
    """``tree`` with ``value`` at ``path``; ``-`` at the end appends. Parents that are missing or null are made."""
    return _changed(tree, path, lambda parent, key: _set(parent, key, value))


def insert_at(tree: Any, path: Path, value: Any) -> Any:
    """As ``set_at``, but an index inserts before what is there (RFC 6902 ``add``)."""
    return _changed(tree, path, lambda parent, key: _insert(parent, key, value))


def remove_at(tree: Any, path: Path) -> Any:
    """``tree`` without what is at ``path``; unchanged when there is nothing."""
    return _changed(tree, path, _remove) if _exists(tree, path) else tree


def value_at(tree: Any, path: Path) -> Any:
    """What is at ``path``, or None."""
    for part in path:
        if isinstance(tree, Mapping):
            tree = tree.get(part)
        elif isinstance(tree, list) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
        else:
            return None
    return tree


def apply_patch(tree: Any, operations: Iterable[Mapping[str, Any]]) -> Any:
    """``tree`` after RFC 6902 ``add``, ``replace`` and ``remove``, the three that Berth writes."""
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
    """A JSON Pointer (RFC 6901) as a path in ``tree``: a number is an index only where a list stands."""
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
