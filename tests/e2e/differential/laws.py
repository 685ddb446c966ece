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

from tests.e2e.differential.forms import Case, cleaned, is_inside
from tests.e2e.differential.nodes import FLEET, FleetNode
from tests.e2e.differential.offline import TryResult
from tests.e2e.differential.requested import RequestedPod
from tests.e2e.differential.run import Run

KEPT = "kept"
PLACEMENT = ("BERTH-121", "BERTH-122", "BERTH-123", "BERTH-124", "BERTH-125")
"""Denials that say where a pod may run (docs/codes.md)"""
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
class Observed:
    """Everything that is known of one case."""

    run: Run
    case: Case
    by_try: TryResult | None
    """by berth try; None where the API server does not take the pod"""

    @property
    def sentences(self) -> tuple[str, ...]:
        """With which Berth denied it, in order; none where it was stored."""
        lines = self.case.judged.message.partition("denied the request: ")[2].splitlines()
        return tuple(line for text in lines if _CODE.match(line := text.removeprefix("- ")))

    @property
    def denied(self) -> tuple[str, ...]:
        """The codes of these."""
        return tuple(sentence[: len("BERTH-101")] for sentence in self.sentences)

    @property
    def stored(self) -> RequestedPod:
        return RequestedPod(self.case.stored)

    def node(self, kind: str) -> FleetNode | None:
        return self.run.node(self.case, kind)


def no_error(observed: Observed) -> Finding:
    """Creating a pod with Berth never ends in an internal error, a call that failed, or an answer that the API server can't use."""
    reply = observed.case.judged
    return KEPT if reply.status < 500 else Broken(f"{reply.status} {reply.message}")


def nothing_broken(observed: Observed) -> Finding:
    """A pod that the API server takes is taken with Berth too, or denied by Berth in its own words."""
    if not observed.case.plain.ok:
        return "the API server does not take it"
    if observed.case.judged.ok or observed.denied:
        return KEPT
    return Broken(f"{observed.case.judged.status} {observed.case.judged.message}")


def nothing_let_in(observed: Observed) -> Finding:
    """A pod that the API server does not take is not stored, unless a policy mends its requests."""
    if observed.case.plain.ok:
        return "the API server takes it"
    if not observed.case.judged.ok:
        return KEPT
    fixed = observed.case.world.repairs and any(wrong in observed.case.plain.message for wrong in MENDED)
    return KEPT if fixed else Broken(f"stored, and without Berth: {observed.case.plain.message}")


def as_offline(observed: Observed) -> Finding:
    """What is stored is what berth try makes of the same pod; what is denied is denied there in the same sentences."""
    if observed.by_try is None:
        return "the API server does not take it"
    if observed.case.requested.names_devices and not observed.case.requested.reaches:
        return "no condition names what it asks for"
    if (there := observed.by_try.denials) != observed.sentences:
        return Broken(f"on the cluster: {observed.case.judged.message or 'stored'}; by berth try: {there or 'admitted'}")
    if observed.denied:
        return KEPT
    unmatched = [w for w in observed.case.judged.warnings if w.startswith("BERTH-2") and not _among(w, observed.by_try.warnings)]
    if unmatched:
        return Broken(f"warned on the cluster and not by berth try: {unmatched}; there: {observed.by_try.warnings}")
    stored, tried = (cleaned(pod, applied=False) for pod in (observed.case.stored, observed.by_try.pod))
    return KEPT if stored == tried else Broken(f"on the cluster: {json.dumps(stored)}; by berth try: {json.dumps(tried)}")


def _among(warning: str, sentences: tuple[str, ...]) -> bool:
    """A long one is cut on its way through the API server."""
    return any(sentence.startswith(warning.removesuffix("...")) for sentence in sentences)


def settled(observed: Observed) -> Finding:
    """What was stored, created again, is stored as it is."""
    again = observed.case.again
    if again is None:
        return "nothing was stored"
    if not again.ok:
        return Broken(f"{again.status} {again.message}")
    first, second = cleaned(observed.case.stored), cleaned(again.body)
    return KEPT if first == second else Broken(f"first: {json.dumps(first)}; then: {json.dumps(second)}")


def none_denied_that_fits(observed: Observed) -> Finding:
    """A pod that kube-scheduler binds inside the policy is not denied for where it may run."""
    if not observed.case.plain.ok:
        return "the API server does not take it"
    inside = observed.node("inside")
    if inside is None:
        return "no node inside the policy takes it"
    codes = set(PLACEMENT).intersection(observed.denied)
    return Broken(f"{inside.name} takes it; {observed.case.judged.message}") if codes else KEPT


def none_outside(observed: Observed) -> Finding:
    """A pod that was admitted is on a node inside the policy, by what the node truly is."""
    if not (observed.case.plain.ok and observed.case.judged.ok):
        return "not admitted"
    devices = observed.stored.devices
    if not devices:
        return "asks for no device"
    node = observed.node("judged")
    if node is None:
        return "not bound"
    if (why := _not_held(observed, node)) is not None:
        return why
    inside = is_inside(observed.case.world, observed.case.required, node, devices)
    return KEPT if inside else Broken(f"on {node.name} ({node.card}, {node.capacity}, {node.sharing})")


def _not_held(observed: Observed, node: FleetNode) -> str | None:
    """Why policies do not hold this pod to nodes, where they don't."""
    asked, devices, platforms = observed.case.requested, observed.stored.devices, observed.case.world.platforms
    if asked.left_alone:
        return "a mirror of what a kubelet runs already"
    if asked.node and any(node.offer(name) is None for name in devices):
        return "names a node that has no such device"
    known = any(n.platform in platforms and all(n.offer(name) for name in devices) for n in FLEET)
    if node.platform not in platforms and not (known and asked.written):
        return "of a platform that Berth is not told of"
    return None


def none_made_pending(observed: Observed) -> Finding:
    """A pod that kube-scheduler binds inside the policy, and inside what defaults mean, is bound with Berth too."""
    if not (observed.case.plain.ok and observed.case.judged.ok):
        return "not admitted"
    if observed.case.wish is None:
        return "what defaults mean for it is not judged"
    by_hand = observed.node(observed.case.by_hand)
    if by_hand is None:
        return "no node inside the policy takes it"
    if any(by_hand.offer(name) is None for name in _of_which(observed)):
        return "a part of a GPU, of which that node has none"
    if observed.node("judged") is not None:
        return KEPT
    return Broken(f"{by_hand.name} takes it by hand; with Berth: {observed.run.why(observed.case, 'judged')}")


def _of_which(observed: Observed) -> Mapping[str, int]:
    """The devices that it asks for by name, else the GPU of which it asks for a part by annotation."""
    in_part = not observed.stored.devices and observed.case.requested.is_fraction
    return {"nvidia.com/gpu": 1} if in_part else observed.stored.devices


def none_inside_closed(observed: Observed) -> Finding:
    """Each node inside the policy, and inside what defaults mean, that takes a pod without Berth takes what was stored of it."""
    wish = observed.case.wish
    if not observed.case.held or wish is None:
        return "not tried on single nodes"
    regions = [*observed.case.required, *wish.regions]
    inside = [node for node in observed.case.held if is_inside(observed.case.world, regions, node, _of_which(observed))]
    taking = [node for node in inside if observed.run.takes(observed.case, "bare", node)]
    if closed := [node.name for node in taking if not observed.run.takes(observed.case, "held", node)]:
        return Broken(f"closed to what was stored: {', '.join(closed)}")
    return KEPT if taking else "no node inside takes it"


def none_outside_open(observed: Observed) -> Finding:
    """No node outside the policy takes what was stored, also of those that take the pod without Berth."""
    case = observed.case
    if not case.held:
        return "not tried on single nodes"
    outside = [node for node in case.held if not is_inside(case.world, case.required, node, observed.stored.devices)]
    outside = [node for node in outside if _not_held(observed, node) is None]
    if opened := [node.name for node in outside if observed.run.takes(case, "held", node)]:
        return Broken(f"open to what was stored: {', '.join(opened)}")
    return KEPT if any(observed.run.takes(case, "bare", node) for node in outside) else "no node outside would take it"


def untouched(observed: Observed) -> Finding:
    """A pod that asks for no accelerator, or only mirrors what a kubelet runs, is stored as it is without Berth."""
    if not observed.case.plain.ok:
        return "the API server does not take it"
    asked = observed.case.requested
    if not asked.left_alone and (asked.names_devices or asked.is_fraction or asked.spec.get("resourceClaims")):
        return "Berth may act"
    if not observed.case.judged.ok:
        return Broken(observed.case.judged.message)
    stored, plain = cleaned(observed.case.stored), cleaned(observed.case.plain.body)
    return KEPT if stored == plain else Broken(f"without Berth: {json.dumps(plain)}; with it: {json.dumps(stored)}")


def defaults_hold(observed: Observed) -> Finding:
    """A pod that is silent, and could be bound inside what defaults mean, is bound there."""
    wish = observed.case.wish
    if wish is None or not wish.regions or not observed.case.judged.ok:
        return "no default places it"
    node = observed.node("judged")
    if observed.node("wished") is None or node is None:
        return "no node inside the defaults takes it"
    inside = is_inside(observed.case.world, wish.regions, node, observed.stored.devices)
    return KEPT if inside else Broken(f"on {node.name}, outside {', '.join(wish.regions)}")


LAWS: Mapping[str, Callable[[Observed], Finding]] = {
    law.__name__: law
    for law in (
        no_error,
        nothing_broken,
        nothing_let_in,
        as_offline,
        settled,
        none_denied_that_fits,
        none_outside,
        none_made_pending,
        none_inside_closed,
        none_outside_open,
        untouched,
        defaults_hold,
    )
}
