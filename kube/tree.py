"""Trees of maps and lists, as JSON and YAML have them: paths, JSON Pointers, reading what was never validated, and
changes.

A change leaves the old tree as it was: parts off its path are shared, not copied, so ``is`` identifies the parts that
did not change, and a diff can skip them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Protocol

Raw = dict[str, Any]
"""A map of JSON or YAML, as it was read."""
ReadOnly = Mapping[str, Any]
"""The same, where it is only read."""
Path = tuple[str | int, ...]
"""A path in an object: ``("spec", "tolerations", "-")``. ``"-"`` at the end appends to a list (RFC 6901)."""

MISSING = object()
"""The result of a look-up where there is no value."""
LARGEST = 2**63
"""Integers of Kubernetes are smaller (int64); Python rejects to print those of more than 4,300 digits."""


def dotted(path: Path) -> str:
    """Return ``spec.containers[0].resources.limits["nvidia.com/gpu"]``, the form that messages use; a key that dots or digits would
    break is quoted."""
    out = ""
    for part in path:
        if isinstance(part, int):
            out += f"[{part}]"
        elif part.replace("-", "").isidentifier():
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


def texts_at(thing: Any, *keys: str) -> dict[str, str]:
    """Return the map of texts under these keys, such as labels; an empty one where there is none."""
    return {text_of(key): text_of(value) for key, value in map_at(thing, *keys).items()}


def maps_in(thing: Any) -> Iterator[Mapping[Any, Any]]:
    """The maps in a list."""
    return (item for item in thing if isinstance(item, Mapping)) if isinstance(thing, list) else iter(())


def condition_status(thing: Any, kind: str) -> str | None:
    """Return the status of an object's condition of this type: ``True``, ``False`` or ``Unknown``; None if it has none."""
    conditions = maps_in(map_at(thing, "status").get("conditions"))
    return next((text_of(condition.get("status")) for condition in conditions if condition.get("type") == kind), None)


def text_of(value: Any) -> str:
    """A string, and what YAML makes of one that is written bare; "" for anything else, as for null."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, float) or (isinstance(value, int) and abs(value) < LARGEST) else ""


def value_at(tree: Any, path: Path, default: Any = None) -> Any:
    """Return the value at a path, or ``default`` if there is none."""
    try:
        for part in path:
            if isinstance(tree, str):
                return default
            tree = tree[part]
    except (LookupError, TypeError):  # a list has no such index, or no keys
        return default
    return tree


_LONGEST_STEP = 317
"""Characters of the longest key of a label (253 for the prefix, 63 for the name): pointers that end in a longer one are not cached."""


def pointer(path: Path) -> str:
    """Return the path as a JSON Pointer (RFC 6901), with ``~`` and ``/`` escaped."""
    last = path[-1] if path else 0
    return _pointer(path) if isinstance(last, str) and len(last) > _LONGEST_STEP else _cached_pointer(path)


def _pointer(path: Path) -> str:
    return "".join(["/" + str(part).replace("~", "~0").replace("/", "~1") for part in path])


_cached_pointer = functools.lru_cache(maxsize=2048)(_pointer)


def path_of(tree: Any, text: str) -> Path:
    """Return a JSON Pointer as a path in ``tree``, where a number is an index only in a list."""
    path: list[str | int] = []
    for raw in text.split("/")[1:]:
        part: str | int = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(tree, list) and part != "-":
            part = int(part)
        tree = value_at(tree, (part,))
        path.append(part)
    return tuple(path)


Op = Literal["add", "replace", "remove"]


class Change(Protocol):
    """One change of a tree: ``add`` sets a key, inserts before an index or appends at ``-``."""

    @property
    def op(self) -> Op: ...
    @property
    def path(self) -> Path: ...
    @property
    def value(self) -> Any: ...


class _PlainChange(NamedTuple):
    op: Op
    path: Path
    value: Any = None


class TreePatch:
    """Changes to a tree, as operations of RFC 6902, and the tree after them.

    The original is never changed: containers on the path of a change are copied once, the rest is shared.
    """

    def __init__(self, tree: Any) -> None:
        self.tree: Any = list(tree) if isinstance(tree, list) else dict(tree)
        self.operations: list[dict[str, Any]] = []
        self._own: dict[int, Any] = {id(self.tree): self.tree}
        self._last: tuple[Path, Any] = (), self.tree
        """The parent of the last change's path, and its container: most changes append to the list of the one before."""
        self.container: Any = self.tree
        """The map or list that has the value of the last change; None where parents were created: a later change copies these,
        since they stand in the operation."""

    def apply(self, change: Change) -> Path:
        """Apply one change, creating missing parents, and return the path of its value (with an index in place
        of ``-``)."""
        op, wanted, value = change.op, change.path, change.value
        key = wanted[-1]
        before, parent = self._last
        if key == "-" and op == "add" and wanted[:-1] == before and isinstance(parent, list):
            parent.append(value)
            self.container = parent
            self.operations.append({"op": "add", "path": pointer(wanted), "value": value})
            return (*wanted[:-1], len(parent) - 1)
        container, path, value = self._place(wanted, value)
        self._last = path[:-1], container
        final = _change(container, op, path[-1], value)
        operation: dict[str, Any] = {"op": op, "path": pointer(path)}
        if op != "remove":
            operation["value"] = value
        self.operations.append(operation)
        if final == key:
            return wanted
        return (*path[:-1], final) if path == wanted else (*wanted[:-1], 0 if key == "-" else key)

    def _place(self, path: Path, value: Any) -> tuple[Any, Path, Any]:
        """Return the container to change, the path to write and the value.

        If a parent is missing or null, the path is that of the shallowest such parent and the value is nested
        in it.
        """
        here, own = self.tree, self._own
        for depth, part in enumerate(path[:-1]):
            try:
                child = here[part]
            except (LookupError, TypeError):
                child = None
            if child is None:
                self.container = None
                return here, path[: depth + 1], _nested(path[depth + 1 :], value)
            if id(child) not in own:
                child = here[part] = child.copy()
                own[id(child)] = child
            here = child
        self.container = here
        return here, path, value


def _nested(path: Path, value: Any) -> Any:
    """Return the value in new maps and lists along the path."""
    for part in reversed(path):
        value = [value] if part == "-" or isinstance(part, int) else {part: value}
    return value


def _change(parent: Any, op: Op, key: str | int, value: Any) -> str | int:
    if isinstance(parent, list):
        index = len(parent) if key == "-" else int(key)
        if op == "remove":
            del parent[index]
        elif op == "add" or index == len(parent):
            parent.insert(index, value)
        else:
            parent[index] = value
        return index
    if op == "remove":
        del parent[key]
    else:
        parent[key] = value
    return key


def set_at(tree: Any, path: Path, value: Any) -> Any:
    """Return ``tree`` with ``value`` at ``path``; ``-`` at the end appends. Missing or null parents are
    created."""
    return _changed(tree, _PlainChange("replace", path, value))


def remove_at(tree: Any, path: Path) -> Any:
    """Return ``tree`` without the value at ``path``, or ``tree`` itself if there is none."""
    return tree if value_at(tree, path, MISSING) is MISSING else _changed(tree, _PlainChange("remove", path))


def _changed(tree: Any, change: Change) -> Any:
    first = change.path[0]
    patch = TreePatch(tree if tree is not None else [] if first == "-" or isinstance(first, int) else {})
    patch.apply(change)
    return patch.tree


def apply_patch(tree: Any, operations: Iterable[Mapping[str, Any]]) -> Any:
    """Return ``tree`` after operations of RFC 6902, which are ``add``, ``replace`` and ``remove``."""
    patch = TreePatch(tree)
    for operation in operations:
        change = _PlainChange(operation["op"], path_of(patch.tree, operation["path"]), operation.get("value"))
        if change.op != "remove" or value_at(patch.tree, change.path, MISSING) is not MISSING:
            patch.apply(change)
    return patch.tree


def diff(before: Any, after: Any, whole: Collection[str] = (), path: Path = ()) -> Iterator[dict[str, Any]]:
    """Yield the operations that turn ``before`` into ``after``: a map or list that was not there is one of them, and so is each
    item at the end of a list. A list that got shorter is replaced, and one whose name is in ``whole`` where that is shorter; a
    null is added to, since a projection may have one where the pod has nothing. The same trees give the same order."""
    if before is after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from ({"op": "remove", "path": pointer((*path, key))} for key in before if key not in after)
        for key, value in after.items():
            if before.get(key) is not None or (value is None and key in before):
                yield from diff(before[key], value, whole, (*path, key))
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
        yield from diff(old, new, whole, (*path, index))
    for value in after[len(before) :]:
        yield {"op": "add", "path": pointer((*path, "-")), "value": value}
