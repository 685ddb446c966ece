"""The patch for edits: RFC 6902 operations, and the annotation that records what they wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kube.tree import Path, TreePatch, pointer, value_at
from policies.patch.record import RECORD, Entry, digest, digest_at, write_record
from policies.verdict import Edit


def build_patch(pod: Mapping[str, Any], edits: Sequence[Edit], true: Sequence[Entry]) -> tuple[dict[str, Any], ...]:
    """Return the operations for ``edits`` and for the annotation that records them.

    ``true`` are the true entries of the annotation as it came with the pod, retained as long as the value at their path
    still matches their digest.
    """
    came = value_at(pod, RECORD)
    if not edits and came is None:
        return ()
    patch = TreePatch(pod)
    added = apply_edits(patch, edits)
    kept = [entry for entry in true if digest_at(patch.tree, entry["path"]) == entry["is"]]
    text = write_record([*kept, *added], came, added=bool(added))
    if text is None and isinstance(came, str):
        patch.apply(Edit(op="remove", path=RECORD, rule="applied", policies=()))
    elif text is not None and text != came:
        patch.apply(Edit(op="add", path=RECORD, value=text, rule="applied", policies=()))
    return tuple(patch.operations)


def apply_edits(patch: TreePatch, edits: Iterable[Edit]) -> list[Entry]:
    """Apply the edits and return them as entries, without those that removed something."""
    applied = [(edit, patch.apply(edit), patch.container) for edit in edits]
    # An edit may add to what another one created: the final value is recorded.
    return [
        {"by": list(edit.policies), "rule": edit.rule, "path": pointer(path), "is": digest(value_at(*_place(patch, path, container)))}
        for edit, path, container in applied
        if edit.op != "remove"
    ]


def _place(patch: TreePatch, path: Path, container: Any) -> tuple[Any, Path]:
    """Return where the value of an applied edit is found."""
    return (patch.tree, path) if container is None else (container, path[-1:])
