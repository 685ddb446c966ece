"""What the shipped policies would have written into pods of which something is found: a diff for each workload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from analysis.scan.finding import Hit
from analysis.scan.remedies import Remedies
from cli.terminal.screen import PLAIN, Terminal
from documents.diff import unified
from documents.printable import counted, printable
from kube.tree import Raw
from policies.patch.applied import APPLIED


def format_scan_diff(hits: Sequence[Hit], remedies: Remedies, screen: Terminal = PLAIN) -> str:
    """Return the diffs; pods of a workload that get the same edits are one, with their number."""
    shown: dict[tuple[str, str], int] = {}
    for hit in _pods(hits):
        remedy = remedies.of(hit.pod.stored)
        workload = hit.pod.workload
        name = f"{workload.kind} {workload.namespace}/{workload.name}" if workload.kind != "Namespace" else f"Pod {_name(hit)}"
        if remedy.denied:
            body = "\n".join(f"! {screen.paint('bad', 'denied')}: {printable(str(one))}" for one in remedy.denied)
        elif remedy.edits:
            body = "\n".join(screen.paint_diff(unified(_shown(remedy.came), _shown(remedy.pod), name)))
        else:
            body = "  no change: these policies do not match the pod, or it already sets everything"
        shown[name, body] = shown.get((name, body), 0) + 1
    parts = [f"{printable(name)} ({counted(count, 'pod')})\n{body}" for (name, body), count in shown.items()]
    return "\n\n".join(parts) + ("\n" if parts else "")


def _pods(hits: Sequence[Hit]) -> Iterator[Hit]:
    """Yield one hit of each pod."""
    seen = set()
    for hit in hits:
        key = hit.pod.stored.namespace, hit.pod.stored.name
        if key not in seen:
            seen.add(key)
            yield hit


def _name(hit: Hit) -> str:
    return f"{hit.pod.stored.namespace}/{hit.pod.stored.name}"


def _shown(pod: Raw) -> dict[str, Any]:
    """Return a pod without its owners, and without the record of what was written."""
    shown = {part: {key: one for key, one in pod.get(part, {}).items() if key != "ownerReferences"} for part in ("metadata", "spec")}
    annotations = shown["metadata"].get("annotations")
    if annotations and APPLIED in annotations:
        others = {key: one for key, one in annotations.items() if key != APPLIED}
        shown["metadata"] = {key: one for key, one in shown["metadata"].items() if key != "annotations"} | (
            {"annotations": others} if others else {}
        )
    return {part: one for part, one in shown.items() if one}
