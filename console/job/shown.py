"""An answer as the template shows it: sentences made last, of data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from analysis.fixes.cautions import Caution
from analysis.fixes.placement import Placement
from analysis.why import sentences
from analysis.why.explanation import Explanation
from console.job.answer import JobAnswer, OfferedManifest
from console.job.verdict import WORDS
from kube.tree import dotted
from policies.state.objects import ObjectEntry, id_of

MOST_PLACES = 8
MOST_REASONS = 6
MOST_OFFERED = 500
"""Names in a list to choose from."""
SOON = {"now": "free now", "made": "Karpenter creates a node", "later": "waits for capacity", "never": "never as written"}


AS_WRITTEN = {
    "now": "a node has room for it now",
    "made": "Karpenter creates a node for it",
    "later": "it waits for capacity",
    "never": "no node or NodePool is known that can run it",
}


class DenialRow(NamedTuple):
    """Why it is denied."""

    code: str
    fact: str
    fix: str
    detail: str
    policies: str


class PlaceRow(NamedTuple):
    """One kind of place, and what keeps the pod off it."""

    title: str
    outlook: str
    reasons: Sequence[str]
    more: int


class AlternativeRow(NamedTuple):
    """One alternative."""

    what: str
    soon: str
    outlook: str
    usd: float | None
    price: str
    where: str
    edits: Sequence[str]
    cautions: Sequence[str]
    offer: OfferedManifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the template reads besides the answer itself."""

    answer: JobAnswer
    word: str
    reasons: Sequence[DenialRow]
    head: str
    """Of an object of the cluster: since when it waits, and its pods."""
    told: Sequence[tuple[str, str]]
    places: Sequence[PlaceRow]
    more_places: int
    unjudged: str
    steps: Sequence[str]
    """The smallest change, in words."""
    comes_to: Sequence[str]
    notes: Sequence[str]
    choices: Sequence[AlternativeRow]
    as_written: str
    wrote: Sequence[tuple[str, str]]
    """(path, by whom) of what policies wrote into a pod that exists."""
    unread: Sequence[str]


def show_answer(one: JobAnswer, now: datetime) -> Shown:
    """Return all of it."""
    found = one.found
    remedy = None if found is None else found.remedy
    searched = one.searched
    now = max(now, datetime.now(UTC))
    return Shown(
        answer=one,
        word=WORDS[one.verdict.tone],
        reasons=[DenialRow(v.code, v.fact_at(dotted), v.fix_at(dotted), v.detail, sentences.list_some(v.policies)) for v in one.denials],
        head="" if found is None or found.state == "proposed" else sentences.state(found, now),
        told=[] if found is None else [(f"{told.who}, {told.reason}, {sentences.since(told.at, now)}", told.text) for told in found.told],
        places=[] if found is None else list(_places(found)),
        more_places=0 if found is None else max(0, len(found.where) - MOST_PLACES),
        unjudged="" if found is None else sentences.list_some(sentences.UNJUDGED.get(name, name) for name in found.unjudged),
        steps=[] if remedy is None else [sentences.edit(edit) for edit in (*remedy.edits, *remedy.edits_beside)],
        comes_to=[] if remedy is None or not remedy.edits else list(sentences.comes_to(remedy)),
        notes=[] if found is None else list(_notes(found)),
        choices=[_choice(offer) for offer in one.offers],
        as_written="" if searched is None else _as_written(searched.as_written),
        wrote=[(str(e["path"]), f"{sentences.list_some(e['by'])} ({e['rule']})") for e in (() if found is None else found.wrote)],
        unread=[] if found is None else list(found.unread),
    )


def _places(found: Explanation) -> Iterator[PlaceRow]:
    for one in found.where[:MOST_PLACES]:
        reasons = []
        for blocker, count in one.blockers[:MOST_REASONS]:
            some = f" (on {count} of {len(one.names)})" if count < len(one.names) else ""
            reasons.append(f"{sentences.blocker(blocker)}{some}")
        yield PlaceRow(sentences.describe_place(one), one.outlook, reasons, max(0, len(one.blockers) - MOST_REASONS))


def _notes(found: Explanation) -> Iterator[str]:
    """Yield what else there is to say of a fix."""
    remedy = found.remedy
    if remedy is None or found.state == "denied":
        return
    if remedy.anew:
        yield "Recreate it: Berth will add what is missing. It was created without the edits of policies in Enforce."
    if remedy.found.fix is None and not remedy.anew:
        yield "No change to the pod alone fixes this: no toleration, label, amount or resource name helps."
    for violation in remedy.found.forbidden[:2]:
        yield f"A smaller change would be denied by {sentences.list_some(violation.policies)}: {violation}"


def _as_written(placement: Placement) -> str:
    price = "" if placement.usd is None else f", at {_price(placement)}"
    return f"As written, {AS_WRITTEN[placement.soon]}{price}."


def _choice(offer: OfferedManifest) -> AlternativeRow:
    one = offer.one
    placement, device = one.placement, one.placement.device
    told = device is not None and device.shape == "whole" and f"{device.memory_gb}GB" in device.model
    memory = f"{device.memory_gb} GB" if device is not None and device.memory_gb and not told else ""
    model = device.model if device is not None and device.model else one.resource
    size, of_size = (f"{memory} ", f" ({memory})") if memory else ("", "")
    shape = {"slice": f"{size}slice of {model}", "shared": f"shared {model}"}.get(device.shape if device else "", f"{model}{of_size}")
    count = f"{one.count} × " if one.count > 1 else ""
    capacity = f", {placement.capacity}" if placement.capacity else ""
    return AlternativeRow(
        what=f"{count}{shape}{capacity}",
        soon=placement.soon,
        outlook=SOON[placement.soon],
        usd=placement.usd,
        price=_price(placement),
        where=_where(placement),
        edits=[sentences.edit(edit) for edit in one.edits],
        cautions=[_caution(caution) for caution in one.cautions],
        offer=offer,
    )


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


def id_of_entry(entry: ObjectEntry) -> str:
    """Return the id of one of Berth's objects."""
    return id_of(entry.key)
