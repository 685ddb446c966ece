"""Edits of a pod, written into the template that the pod was made from.

The pod has what the API server defaulted; the template has what the author wrote. So an edit of a default becomes a new line in
the template, and a request that only defaulting would fill is not written: ``defaults(project(template, edits)) ==
patched pod``, in the fewest lines (a test holds it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from policies.edit_tree import insert_at, remove_at, set_at, value_at
from policies.verdict import Edit, Path


def project(template: Any, edits: Sequence[Edit]) -> Any:
    """The template with the edits; the given one stays as it was, and what no edit touched is shared."""
    after = _with_metadata_first(template, edits)
    for edit in edits:
        after = _applied(after, edit)
    for path in _edited_containers(edits):
        after = _without_defaulted_requests(template, after, path)
    return after


def _with_metadata_first(template: Any, edits: Sequence[Edit]) -> Any:
    """Metadata that the edits are about to make stands where people write it."""
    needed = "metadata" not in template and any(edit.path[0] == "metadata" for edit in edits)
    return {"metadata": {}, **template} if needed else template


def _applied(tree: Any, edit: Edit) -> Any:
    if edit.op == "remove":
        return remove_at(tree, edit.path)
    return insert_at(tree, edit.path, edit.value) if edit.op == "add" else set_at(tree, edit.path, edit.value)


def _edited_containers(edits: Sequence[Edit]) -> list[Path]:
    """Containers whose requests are edited, each once, in order."""
    return list(dict.fromkeys(edit.path[:3] for edit in edits if edit.path[3:5] == ("resources", "requests")))


def _without_defaulted_requests(before: Any, after: Any, container: Path) -> Any:
    """Drops requests that the author never wrote and that equal the limit of the same name."""
    path = (*container, "resources", "requests")
    written = _map_at(before, path)
    requests, limits = _map_at(after, path), _map_at(after, (*container, "resources", "limits"))
    if any(name not in requests for name in written):
        return after  # the author wrote the request that was renamed: the new one stays written too
    for name, amount in requests.items():
        if name not in written and limits.get(name) == amount:
            after = remove_at(after, (*path, name))
    if not _map_at(after, path) and value_at(before, path) is None:
        after = remove_at(after, path)
    return after


def _map_at(tree: Any, path: Path) -> Mapping[str, Any]:
    value = value_at(tree, path)
    return value if isinstance(value, Mapping) else {}
