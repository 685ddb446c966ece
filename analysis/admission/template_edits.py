"""Edits of a pod, written into the template that the pod was made from.

The pod has what the API server defaulted; the template has what the author wrote. So an edit of a default
becomes a new line in the template, and a request that only defaulting would fill is not written:
``defaults(project(template, edits)) == patched pod``, in the fewest lines (a test holds it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis.admission.patch_applier import apply_patch
from kube.tree import MISSING, Path, TreePatch, value_at
from policies.verdict import Edit

_REQUESTS: Path = ("resources", "requests")
"""The path of its requests in a container."""


def project(template: Any, edits: Sequence[Edit]) -> Any:
    """Return the template with the edits. The given one is not changed, and parts that no edit touches are
    shared."""
    start = _with_metadata_first(template, edits)
    return apply_patch(start, _operations(start, edits))


def written_edits(template: Any, edits: Sequence[Edit]) -> Iterator[Edit]:
    """Yield the edits of what stands in a template: without those of requests that defaulting fills in there, before and after."""
    after = project(template, edits)
    for edit in edits:
        before = value_at(template, edit.path, MISSING)
        if edit.path[3:5] != _REQUESTS or edit.path[:1] != ("spec",) or value_at(after, edit.path, MISSING) is not before:
            yield edit._replace(op="add") if edit.op == "replace" and before is MISSING else edit


def _with_metadata_first(template: Any, edits: Sequence[Edit]) -> Any:
    """Add empty metadata at the top, where people write it, if the edits are about to create it."""
    needed = "metadata" not in template and any(edit.path[0] == "metadata" for edit in edits)
    return {"metadata": {}, **template} if needed else template


def _operations(template: Any, edits: Sequence[Edit]) -> list[dict[str, Any]]:
    """Return the edits as a patch of the template.

    An edit that replaces a defaulted field becomes an addition; one that removes a defaulted field is
    dropped.
    """
    patch = TreePatch(template)
    for edit in edits:
        there = value_at(patch.tree, edit.path, MISSING) is not MISSING
        if there or edit.op == "add":
            patch.apply(edit)
        elif edit.op == "replace":
            patch.apply(edit._replace(op="add"))
    for container in dict.fromkeys(edit.path[:3] for edit in edits if edit.path[3:5] == _REQUESTS):
        for path in _defaulted_requests(template, patch.tree, container):
            patch.apply(Edit(op="remove", path=path, value=None, rule="defaults", policies=()))
    return patch.operations


def _defaulted_requests(before: Any, after: Any, container: Path) -> Iterator[Path]:
    """Yield the paths of requests that the author did not write and that equal the limit of the same name.

    If the author wrote no requests and all are such, yield the path of the whole map.
    """
    path = (*container, *_REQUESTS)
    written, requests = _map_at(before, path), _map_at(after, path)
    limits = _map_at(after, (*container, "resources", "limits"))
    if any(name not in requests for name in written):
        return  # the author wrote the request that was renamed: the new one stays written too
    defaulted = [name for name, amount in requests.items() if name not in written and limits.get(name) == amount]
    if len(defaulted) < len(requests) or value_at(before, path) is not None:
        yield from ((*path, name) for name in defaulted)
    elif value_at(after, path, MISSING) is not MISSING:
        yield path


def _map_at(tree: Any, path: Path) -> Mapping[str, Any]:
    value = value_at(tree, path)
    return value if isinstance(value, Mapping) else {}
