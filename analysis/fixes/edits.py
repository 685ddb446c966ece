"""Edits of a pod that nobody asked for but who reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from kube.tree import Path, TreePatch
from policies.verdict import Edit

RULE = "mend"


def put(path: Path, value: Any, op: Literal["add", "replace"] = "add") -> Edit:
    """Return the edit that writes a value."""
    return Edit(op=op, path=path, value=value, rule=RULE, policies=())


def remove(path: Path) -> Edit:
    """Return the edit that takes a value away."""
    return Edit(op="remove", path=path, rule=RULE, policies=())


def changed(pod: Mapping[str, Any], edits: Iterable[Edit]) -> dict[str, Any]:
    """Return the pod with the edits."""
    patch = TreePatch(pod)
    for edit in edits:
        patch.apply(edit)
    return dict(patch.tree)
