"""The verdict on a pod in one sentence."""

from __future__ import annotations

from typing import Literal, NamedTuple

from cli.explaining.explanation import Explanation
from cli.explaining.text import listed
from cli.judging.judge import Outcome
from cli.output import report
from policies.verdict import Violation

Tone = Literal["good", "warn", "bad", "plain"]
CLAIMS = "resourceClaims"
WORDS = {"good": "Good", "warn": "Look", "bad": "Stop", "plain": "Note"}


class Verdict(NamedTuple):
    """One sentence, and how good it is."""

    tone: Tone
    sentence: str


_PROPOSED: dict[str | None, Verdict] = {
    "now": Verdict("good", "and a node has room for it now."),
    "made": Verdict("good", "and Karpenter would make a node for it now."),
    "later": Verdict("warn", "and waits: every place that can run it is taken now."),
    "never": Verdict("bad", "but as it is, nothing in the cluster can ever run it."),
    "unknown": Verdict("warn", "but whether something in the cluster can run it is not known."),
    None: Verdict("warn", "but nodes are not known here, so where it would run is not: ask for the right to list nodes."),
}
"""After ``Admitted with 2 edits,``."""
_PENDING: dict[str | None, Verdict] = {
    "now": Verdict("warn", "It waits, and nothing that is judged is in its way: it should start soon."),
    "made": Verdict("warn", "It waits for Karpenter, which can make a node for it."),
    "later": Verdict("warn", "It waits: every place that can run it is taken now. It needs no change to start once one is free."),
    "never": Verdict("bad", "It waits in vain: as it is, nothing in the cluster can ever run it."),
    "unknown": Verdict("warn", "It waits, and whether something in the cluster can run it is not known."),
    None: Verdict("warn", "It waits. Nodes are not known here, so why is not: ask for the right to list nodes."),
}


def of_manifest(outcome: Outcome, found: Explanation | None) -> Verdict:
    """Return the verdict on a manifest that is not created: as `berth try` says it, and where it would run."""
    said = report.decision(outcome)
    said = said[:1].upper() + said[1:]
    if outcome.denied:
        claimed = outcome.claim.violations if outcome.claim is not None else ()
        return _denied("Denied", [*(one for pod in outcome.pods for one in pod.violations), *claimed])
    if found is None or not any(pod.judged for pod in outcome.pods):
        return Verdict("plain", f"{said}.")
    tone, words = _PROPOSED[_soon(found)]
    return Verdict(tone, f"{said}, {words}")


def of_object(found: Explanation) -> Verdict:
    """Return the verdict on an object of the cluster."""
    match found.state:
        case "admitted":
            if found.outgrown:
                first = found.outgrown[0]
                return Verdict("warn", f"It has its place, and would be denied if it came today: {first.fact}.")
            if found.node:
                return Verdict("good", f"It was admitted, and has its place on node {found.node}.")
            return Verdict("plain", f"It has ended ({listed(found.phases)}).")
        case "pending" if found.gates:
            return Verdict("warn", f"It waits because of its scheduling gates: {listed(found.gates)}.")
        case "pending":
            return _PENDING[_soon(found)]
        case "denied" if found.denials:
            return _denied("Its pods are denied", list(found.denials))
        case "denied":
            return Verdict("bad", "Its pods are denied, and no policy of Berth that is known here does so: see the words below.")
        case "waiting" if found.suspended:
            return Verdict("warn", "It is suspended, and makes no pods until somebody or a queue resumes it.")
    return Verdict("plain", "It has no pods, and none was denied.")


def _denied(what: str, violations: list[Violation]) -> Verdict:
    if len(violations) == 1:
        return Verdict("bad", f"{what}: {violations[0].fact}.")
    return Verdict("bad", f"{what}, for {len(violations)} reasons: the first is that {violations[0].fact}.")


def _soon(found: Explanation) -> str | None:
    if found.outlook != "now":
        return found.outlook
    if CLAIMS in found.unjudged:  # devices: whether one is free is what the claim decides
        return "unknown"
    return "now" if any(one.outlook == "now" and not one.pool for one in found.where) or not found.where else "made"
