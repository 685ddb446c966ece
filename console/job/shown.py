"""An answer as the template shows it: sentences made last, of data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from analysis.admission import report
from analysis.fixes.alternatives import AlternativePod
from analysis.fixes.cautions import Caution
from analysis.fixes.placement import Placement
from analysis.why import sentences
from analysis.why.explanation import Explanation
from console.job.answer import JobAnswer
from console.job.verdict import WORDS
from kube.tree import dotted
from policies.placement import unchecked

MOST_OFFERED = 500
"""Names in a list to choose from."""
SOON = {"now": "free now", "made": "Karpenter creates a node", "later": "waits for capacity", "never": "never as written"}


AS_WRITTEN = {
    "now": "a node has room for it now",
    "made": "Karpenter creates a node for it",
    "later": "it waits for capacity",
    "never": "no node or NodePool is known that can run it",
}


def show_answer(one: JobAnswer, now: datetime) -> Mapping[str, Any]:
    """Return what the template reads besides the answer itself. ``head``: of an object of the cluster, since when it waits, and its pods;
    ``wrote``: (path, by whom) of what policies wrote into a pod that exists."""
    found, searched = one.found, one.searched
    remedy = None if found is None else found.remedy
    now = max(now, datetime.now(UTC))
    return {
        "answer": one,
        "word": WORDS[one.verdict.tone],
        "head": "" if found is None or found.state == "proposed" else sentences.state(found, now),
        "warnings": [] if found is None else [report.warning_line(warning).strip() for warning in found.warnings],
        "told": [] if found is None else [(f"{t.who}, {t.reason}, {sentences.since(t.at, now)}", t.text) for t in found.told],
        "places": [] if found is None else found.where,
        "unchecked": "" if found is None else unchecked.words(found.unchecked),
        "steps": []
        if remedy is None
        else [*(sentences.edit(edit, remedy.place) for edit in remedy.edits), *map(sentences.edit, remedy.edits_beside)],
        "comes_to": [] if remedy is None or not remedy.edits else list(sentences.comes_to(remedy)),
        "notes": [] if found is None else list(_notes(found)),
        "as_written": "" if searched is None else _as_written(searched.as_written),
        "wrote": [(str(e["path"]), f"{sentences.list_some(e['by'])} ({e['rule']})") for e in (() if found is None else found.wrote)],
        "unread": [] if found is None else found.unread,
    }


def _notes(found: Explanation) -> Iterator[str]:
    """Yield what else there is to say of a fix."""
    remedy = found.remedy
    if remedy is None or found.state == "denied":
        return
    if remedy.anew:
        yield "Recreate it: Berth will add what is missing. It was created without the edits of policies in Enforce."
    if remedy.found.fix is None and not remedy.anew:
        yield sentences.no_change(found.outlook, remedy.found)
    for violation in remedy.found.forbidden[:2]:
        yield f"A smaller change would be denied by {sentences.list_some(violation.policies)}: {violation}"


def _as_written(placement: Placement) -> str:
    price = "" if placement.usd is None else f", at {_price(placement)}"
    return f"As written, {AS_WRITTEN[placement.soon]}{price}."


def _alternative(one: AlternativePod) -> str:
    """Return the devices of an alternative in words."""
    placement, device = one.placement, one.placement.device
    told = device is not None and device.shape == "whole" and f"{device.memory_gb}GB" in device.model
    memory = f"{device.memory_gb} GB" if device is not None and device.memory_gb and not told else ""
    model = device.model if device is not None and device.model else one.resource
    size, of_size = (f"{memory} ", f" ({memory})") if memory else ("", "")
    shape = {"slice": f"{size}slice of {model}", "shared": f"shared {model}"}.get(device.shape if device else "", f"{model}{of_size}")
    count = f"{one.count} × " if one.count > 1 else ""
    capacity = f", {placement.capacity}" if placement.capacity else ""
    return f"{count}{shape}{capacity}"


def _where(placement: Placement) -> str:
    if placement.pool:
        bought = f", instance type {placement.machine} (${placement.machine_usd:,.2f} per hour)" if placement.machine_usd else ""
        return f"NodePool {placement.pool}{bought}"
    return sentences.list_some(placement.nodes)


def _price(placement: Placement) -> str:
    if placement.usd is None:
        return "price unknown"
    if placement.capacity == "spot":
        return f"under ${placement.usd:,.2f} per hour"
    if placement.capacity == "reserved":
        return f"already paid for (${placement.usd:,.2f} per hour on-demand)"
    return f"${placement.usd:,.2f} per hour"


def _caution(one: Caution) -> str:
    """Return what a change takes back, as a sentence."""
    match one.kind:
        case "memory":
            return f"Less memory than requested: {one.after or 'an unknown amount'}{' GB' if one.after else ''} instead of {one.before} GB."
        case "slice":
            return f"A slice{f' of {one.after} GB' if one.after else ''} instead of a whole GPU."
        case "shared":
            return "Shared GPU: other pods use its memory and compute too."
        case "spot":
            return "Spot capacity: the node can be reclaimed within minutes. Save checkpoints."
        case "label":
            return f"Changes {one.key} from {one.before} to {one.after}."
        case "taint":
            value = f"={one.after}" if one.after else ""
            return f"These nodes are reserved by the taint {one.key}{value}. Ask their owner before you use them."


WORDED = {
    "alternative": _alternative,
    "caution": _caution,
    "dotted": dotted,
    "price": _price,
    "sentences": sentences,
    "soon": SOON,
    "where": _where,
}
"""What the template makes words with."""
