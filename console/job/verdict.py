"""The verdict on a pod in one sentence."""

from __future__ import annotations

from typing import Literal, NamedTuple

from analysis.admission import report
from analysis.admission.manifest_results import ManifestResult
from analysis.why.explanation import Explanation
from analysis.why.gates import describe_gates
from analysis.why.sentences import list_some
from policies.verdict import Violation

Tone = Literal["good", "warn", "bad", "plain"]
CLAIMS = "resourceClaims"
WORDS = {"good": "OK", "warn": "Warning", "bad": "Error", "plain": "Note"}


class VerdictSentence(NamedTuple):
    """One sentence, and how good it is."""

    tone: Tone
    sentence: str


_PROPOSED: dict[str | None, VerdictSentence] = {
    "now": VerdictSentence("good", "and a node has room for it now."),
    "made": VerdictSentence("good", "and Karpenter would create a node for it now."),
    "later": VerdictSentence("warn", "but it must wait: all nodes that can run it are full."),
    "never": VerdictSentence("bad", "but it can never be scheduled as written: nothing in the cluster can run it."),
    "unknown": VerdictSentence("warn", "but it is unknown whether the cluster can run it."),
    None: VerdictSentence("warn", "but it is unknown where it would run, because nodes were not read. Ask for the right to list nodes."),
}
"""After ``Admitted with 2 edits,``."""
_PENDING: dict[str | None, VerdictSentence] = {
    "now": VerdictSentence("warn", "It is pending, but no blocker was found. It should start soon."),
    "made": VerdictSentence("warn", "It is pending until Karpenter creates a node for it."),
    "later": VerdictSentence(
        "warn", "It is pending because all nodes that can run it are full. It needs no change and starts when one is free."
    ),
    "never": VerdictSentence("bad", "It can never be scheduled as written: nothing in the cluster can run it."),
    "unknown": VerdictSentence("warn", "It is pending, and it is unknown whether the cluster can run it."),
    None: VerdictSentence("warn", "It is pending. The reason is unknown, because nodes were not read. Ask for the right to list nodes."),
}


def of_manifest(outcome: ManifestResult, found: Explanation | None) -> VerdictSentence:
    """Return the verdict on a manifest that is not created: as `berth try` says it, and where it would run."""
    said = report.describe_verdict(outcome)
    said = said[:1].upper() + said[1:]
    if outcome.denied:
        claimed = outcome.claim.violations if outcome.claim is not None else ()
        return _denied("Denied", [*(one for pod in outcome.pods for one in pod.violations), *claimed])
    if found is not None and found.invalid:
        return _denied("Denied by Kubernetes itself", list(found.denials))
    if found is None or not any(pod.is_evaluated for pod in outcome.pods):
        return VerdictSentence("plain", f"{said}.")
    tone, words = _as_far_as_checked(_PROPOSED[_soon(found)], found)
    return VerdictSentence(tone, f"{said}, {words}")


def of_object(found: Explanation) -> VerdictSentence:
    """Return the verdict on an object of the cluster."""
    match found.state:
        case "admitted":
            if found.outgrown:
                first = found.outgrown[0]
                return VerdictSentence("warn", f"It is scheduled, but it would be denied if created today: {first.fact}.")
            if found.node:
                return VerdictSentence("good", f"It was admitted and scheduled on node {found.node}.")
            return VerdictSentence("plain", f"It has finished ({list_some(found.phases)}).")
        case "pending" if found.gates:
            return VerdictSentence("warn", f"It is pending because of its scheduling gates: {list_some(describe_gates(found.gates))}.")
        case "pending":
            return _as_far_as_checked(_PENDING[_soon(found)], found)
        case "denied" if found.unanswered:
            return VerdictSentence("warn", "Its pods are denied while Berth does not answer. They are created once a replica is ready.")
        case "denied" if found.denials:
            return _denied("Its pods are denied", list(found.denials))
        case "denied":
            return VerdictSentence("bad", "Its pods are denied. No policy that is known here would deny them now. See the message below.")
        case "waiting" if found.suspended:
            return VerdictSentence("warn", "It is suspended. It creates no pods until a user or a queue resumes it.")
    return VerdictSentence("plain", "It has no pods, and none was denied.")


def _denied(what: str, violations: list[Violation]) -> VerdictSentence:
    if len(violations) == 1:
        return VerdictSentence("bad", f"{what}: {violations[0].fact}.")
    return VerdictSentence("bad", f"{what} for {len(violations)} reasons. The first: {violations[0].fact}.")


def _as_far_as_checked(verdict: VerdictSentence, explanation: Explanation) -> VerdictSentence:
    """Return a verdict that promises a place only as far as it was checked (law 15); the page lists the rest."""
    if explanation.outlook != "now" or not explanation.unchecked:
        return verdict
    return verdict._replace(sentence=f"{verdict.sentence.removesuffix('.')}, as far as was checked.")


def _soon(found: Explanation) -> str | None:
    if found.outlook != "now":
        return found.outlook
    if CLAIMS in found.unchecked:  # devices: whether one is free is what the claim decides
        return "unknown"
    return "now" if any(one.outlook == "now" and not one.pool for one in found.where) or not found.where else "made"
