"""The laws of the differential test: for each case whether it holds, is broken, or says nothing about such a pod, and why not.

Who is not like the others: a pod that names its node passes kube-scheduler, and is inside where that node is; one that is pinned by
matchFields is bound by kube-scheduler, with nothing written; what another scheduler would place, or a gate holds, goes to kube-scheduler
as it was stored; a mirror is left alone; one with resource claims waits for ever, and tells only of what is stored. An accelerator of which
Berth knows no machine is inside everywhere. What defaults mean is judged where ``differential_defaults`` can say it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.e2e.differential_asked import Asked
from tests.e2e.differential_forms import Case, cleaned, is_inside
from tests.e2e.differential_nodes import FLEET, FleetNode
from tests.e2e.differential_offline import Said
from tests.e2e.differential_run import Run

KEPT = "kept"
PLACEMENT = ("BERTH-121", "BERTH-122", "BERTH-123", "BERTH-124", "BERTH-125")
"""Refusals that say where a pod may run (docs/codes.md)"""
MENDED = ("must be equal to", "Limit must be set for non overcommitable resources")
"""What the API server says of requests that a policy may repair"""
_CODE = re.compile(r"BERTH-1\d\d")


@dataclass(frozen=True, slots=True)
class Broken:
    """How a law was broken."""

    how: str


Finding = str | Broken
"""KEPT, how it is broken, or why the law says nothing of the pod"""


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that is known of one case."""

    run: Run
    case: Case
    said: Said | None
    """by berth try; None where the API server does not take the pod"""

    @property
    def sentences(self) -> tuple[str, ...]:
        """With which Berth refused it, in order; none where it was stored."""
        lines = self.case.judged.message.partition("denied the request: ")[2].splitlines()
        return tuple(line for text in lines if _CODE.match(line := text.removeprefix("- ")))

    @property
    def refused(self) -> tuple[str, ...]:
        """The codes of these."""
        return tuple(sentence[: len("BERTH-101")] for sentence in self.sentences)

    @property
    def stored(self) -> Asked:
        return Asked(self.case.stored)

    def node(self, kind: str) -> FleetNode | None:
        return self.run.node(self.case, kind)


def no_error(seen: Seen) -> Finding:
    """Creating a pod with Berth never ends in an internal error, a call that failed, or an answer that the API server can't use."""
    reply = seen.case.judged
    return KEPT if reply.status < 500 else Broken(f"{reply.status} {reply.message}")


def nothing_broken(seen: Seen) -> Finding:
    """A pod that the API server takes is taken with Berth too, or refused by Berth in its own words."""
    if not seen.case.plain.ok:
        return "the API server does not take it"
    if seen.case.judged.ok or seen.refused:
        return KEPT
    return Broken(f"{seen.case.judged.status} {seen.case.judged.message}")


def nothing_let_in(seen: Seen) -> Finding:
    """A pod that the API server does not take is not stored, unless a policy mends its requests."""
    if seen.case.plain.ok:
        return "the API server takes it"
    if not seen.case.judged.ok:
        return KEPT
    mended = seen.case.world.repairs and any(wrong in seen.case.plain.message for wrong in MENDED)
    return KEPT if mended else Broken(f"stored, and without Berth: {seen.case.plain.message}")


def as_offline(seen: Seen) -> Finding:
    """What is stored is what berth try makes of the same pod; what is refused is refused there in the same sentences."""
    if seen.said is None:
        return "the API server does not take it"
    if seen.case.asked.names_devices and not seen.case.asked.reaches:
        return "no condition names what it asks for"
    if (there := seen.said.refusals) != seen.sentences:
        return Broken(f"on the cluster: {seen.case.judged.message or 'stored'}; by berth try: {there or 'admitted'}")
    if seen.refused:
        return KEPT
    told = [w for w in seen.case.judged.warnings if w.startswith("BERTH-2") and not _among(w, seen.said.warnings)]
    if told:
        return Broken(f"warned on the cluster and not by berth try: {told}; there: {seen.said.warnings}")
    stored, tried = (cleaned(pod, applied=False) for pod in (seen.case.stored, seen.said.pod))
    return KEPT if stored == tried else Broken(f"on the cluster: {json.dumps(stored)}; by berth try: {json.dumps(tried)}")


def _among(warning: str, sentences: tuple[str, ...]) -> bool:
    """A long one is cut on its way through the API server."""
    return any(sentence.startswith(warning.removesuffix("...")) for sentence in sentences)


def settled(seen: Seen) -> Finding:
    """What was stored, created again, is stored as it is."""
    again = seen.case.again
    if again is None:
        return "nothing was stored"
    if not again.ok:
        return Broken(f"{again.status} {again.message}")
    first, second = cleaned(seen.case.stored), cleaned(again.body)
    return KEPT if first == second else Broken(f"first: {json.dumps(first)}; then: {json.dumps(second)}")


def none_refused_that_fits(seen: Seen) -> Finding:
    """A pod that kube-scheduler binds inside the policy is not refused for where it may run."""
    if not seen.case.plain.ok:
        return "the API server does not take it"
    inside = seen.node("inside")
    if inside is None:
        return "no node inside the policy takes it"
    codes = set(PLACEMENT).intersection(seen.refused)
    return Broken(f"{inside.name} takes it; {seen.case.judged.message}") if codes else KEPT


def none_outside(seen: Seen) -> Finding:
    """A pod that was admitted is on a node inside the policy, by what the node truly is."""
    if not (seen.case.plain.ok and seen.case.judged.ok):
        return "not admitted"
    devices = seen.stored.devices
    if not devices:
        return "asks for no device"
    node = seen.node("judged")
    if node is None:
        return "not bound"
    if (why := _not_held(seen, node)) is not None:
        return why
    inside = is_inside(seen.case.world, seen.case.required, node, devices)
    return KEPT if inside else Broken(f"on {node.name} ({node.card}, {node.capacity}, {node.sharing})")


def _not_held(seen: Seen, node: FleetNode) -> str | None:
    """Why policies do not hold this pod to nodes, where they don't."""
    asked, devices, platforms = seen.case.asked, seen.stored.devices, seen.case.world.platforms
    if asked.left_alone:
        return "a mirror of what a kubelet runs already"
    if asked.node and any(node.offer(name) is None for name in devices):
        return "names a node that has no such device"
    known = any(n.platform in platforms and all(n.offer(name) for name in devices) for n in FLEET)
    if node.platform not in platforms and not (known and asked.written):
        return "of a platform that Berth is not told of"
    return None


def none_made_pending(seen: Seen) -> Finding:
    """A pod that kube-scheduler binds inside the policy, and inside what defaults mean, is bound with Berth too."""
    if not (seen.case.plain.ok and seen.case.judged.ok):
        return "not admitted"
    if seen.case.wish is None:
        return "what defaults mean for it is not judged"
    by_hand = seen.node(seen.case.by_hand)
    if by_hand is None:
        return "no node inside the policy takes it"
    if seen.node("judged") is not None:
        return KEPT
    return Broken(f"{by_hand.name} takes it by hand; with Berth: {seen.run.why(seen.case, 'judged')}")


def none_inside_closed(seen: Seen) -> Finding:
    """Each node inside the policy, and inside what defaults mean, that takes a pod without Berth takes what was stored of it."""
    wish = seen.case.wish
    if not seen.case.held or wish is None:
        return "not tried on single nodes"
    regions = [*seen.case.required, *wish.regions]
    inside = [node for node in seen.case.held if is_inside(seen.case.world, regions, node, seen.stored.devices)]
    told = [node for node in inside if seen.run.takes(seen.case, "bare", node)]
    if closed := [node.name for node in told if not seen.run.takes(seen.case, "held", node)]:
        return Broken(f"closed to what was stored: {', '.join(closed)}")
    return KEPT if told else "no node inside takes it"


def none_outside_open(seen: Seen) -> Finding:
    """No node outside the policy takes what was stored, also of those that take the pod without Berth."""
    case = seen.case
    if not case.held:
        return "not tried on single nodes"
    outside = [node for node in case.held if not is_inside(case.world, case.required, node, seen.stored.devices)]
    outside = [node for node in outside if _not_held(seen, node) is None]
    if opened := [node.name for node in outside if seen.run.takes(case, "held", node)]:
        return Broken(f"open to what was stored: {', '.join(opened)}")
    return KEPT if any(seen.run.takes(case, "bare", node) for node in outside) else "no node outside would take it"


def untouched(seen: Seen) -> Finding:
    """A pod that asks for no accelerator, or only mirrors what a kubelet runs, is stored as it is without Berth."""
    if not seen.case.plain.ok:
        return "the API server does not take it"
    asked = seen.case.asked
    if not asked.left_alone and (asked.names_devices or asked.is_fraction or asked.spec.get("resourceClaims")):
        return "Berth may act"
    if not seen.case.judged.ok:
        return Broken(seen.case.judged.message)
    stored, plain = cleaned(seen.case.stored), cleaned(seen.case.plain.body)
    return KEPT if stored == plain else Broken(f"without Berth: {json.dumps(plain)}; with it: {json.dumps(stored)}")


def defaults_hold(seen: Seen) -> Finding:
    """A pod that is silent, and could be bound inside what defaults mean, is bound there."""
    wish = seen.case.wish
    if wish is None or not wish.regions or not seen.case.judged.ok:
        return "no default places it"
    node = seen.node("judged")
    if seen.node("wished") is None or node is None:
        return "no node inside the defaults takes it"
    inside = is_inside(seen.case.world, wish.regions, node, seen.stored.devices)
    return KEPT if inside else Broken(f"on {node.name}, outside {', '.join(wish.regions)}")


LAWS: Mapping[str, Callable[[Seen], Finding]] = {
    law.__name__: law
    for law in (
        no_error,
        nothing_broken,
        nothing_let_in,
        as_offline,
        settled,
        none_refused_that_fits,
        none_outside,
        none_made_pending,
        none_inside_closed,
        none_outside_open,
        untouched,
        defaults_hold,
    )
}
