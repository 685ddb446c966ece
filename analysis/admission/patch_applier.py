"""JSON Patch (RFC 6902) applied by the jsonpatch library: the shown result of a patch comes from third-party
code."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jsonpatch


def apply_patch(tree: Any, operations: Iterable[Mapping[str, Any]]) -> Any:
    """Return ``tree`` after the operations.

    The given tree and the operations are not changed; parts that no operation touches are the same objects in
    both trees. Raises jsonpatch.JsonPatchException or LookupError for an operation that does not fit.
    """
    for operation in operations:
        opened = _opened(tree, jsonpatch.JsonPointer(operation["path"]).parts)
        tree = jsonpatch.apply_patch(opened, [copy.deepcopy(dict(operation))], in_place=True)
    return tree


def _opened(tree: Any, steps: Sequence[str]) -> Any:
    """Return the tree with copies of the containers along the path, as the library writes in place."""
    opened = copy.copy(tree)
    if len(steps) > 1:
        key: Any = int(steps[0]) if isinstance(tree, list) else steps[0]
        opened[key] = _opened(tree[key], steps[1:])
    return opened
