"""Trees of maps and lists, as JSON and YAML have them: paths, JSON Pointers, reading what was never validated, and
changes.

A change leaves the old tree as it was: parts off its path are shared, not copied, so ``is`` identifies the parts that
did not change, and a diff can skip them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Path = tuple[str | int, ...]
"""A path in an object: ``("spec", "tolerations", "-")``. ``"-"`` at the end appends to a list (RFC 6901)."""
Place = Callable[[Any, "str | int"], None]

LARGEST = 2**63
"""Integers of Kubernetes are smaller (int64); Python rejects to print those of more than 4,300 digits."""


def dotted(path: Path) -> str:
    """``spec.containers[0].resources.limits["nvidia.com/gpu"]``, the form that messages use."""
    out = ""
    for part in path:
        if isinstance(part, int):
            out += f"[{part}]"
        elif part.replace("_", "").replace("-", "").isalnum():
            out += f".{part}" if out else part
        else:
            out += f'["{part}"]'
    return out


def kind_of(value: object) -> str:
    """Return the kind of a value in the words of messages: ``the text "hopper"``, ``a list``, ``nothing
    (null)``."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return f"the boolean {str(value).lower()}"
        case int() | float():
            return f"the number {value}"
        case str():
            return f'the text "{value if len(value) <= 60 else value[:57] + "..."}"'
        case list():
            return "a list"
    return "a map"


def map_at(thing: Any, *keys: str) -> Mapping[Any, Any]:
    """The map under these keys; an empty one where there is none."""
    for key in keys:
        thing = thing.get(key) if isinstance(thing, Mapping) else None
    return thing if isinstance(thing, Mapping) else {}


def maps_in(thing: Any) -> Iterator[Mapping[Any, Any]]:
    """The maps in a list."""
    return (item for item in thing if isinstance(item, Mapping)) if isinstance(thing, list) else iter(())


def text_of(value: Any) -> str:
    """A string, and what YAML makes of one that is written bare; "" for anything else, as for null."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, float) or (isinstance(value, int) and abs(value) < LARGEST) else ""


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
    """Return ``tree`` after operations of RFC 6902, which are ``add``, ``replace`` and ``remove``."""
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
