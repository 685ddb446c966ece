"""The verdict on a claim at its creation: ResourceClaims and ResourceClaimTemplates, apart from the pods that
will use them.

Whoever may delete a claim and create it anew changes what a waiting pod gets, and no pod is reviewed again.
So what a pod may not have, a claim may not ask for, whoever creates it: the controller that makes claims from
templates is judged like everybody else, since a template may be older than the policy. The spec of both kinds is immutable
(k8s.io/kubernetes pkg/apis/resource/validation, ValidateResourceClaimUpdate), so only creations are judged.

Judged: counts, ``adminAccess``, tolerations of device taints, classes. /mutate writes what is required of devices, and defaults, as
selectors; /validate denies a claim without those that are required. Policies that choose pods by labels or
workload are left to the review of the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from kube.pod import CountInterval
from kube.tree import pointer
from policies.claims import checks, selectors
from policies.claims.checks import EvaluatedParts
from policies.claims.claim_request import ClaimPart, ClaimRequest, parts
from policies.claims.defaults import is_certain
from policies.messages import OF_EDITS
from policies.offers.constraints import Compiled
from policies.patch import applied
from policies.patch.applied import digest
from policies.planning.devices import of_claim
from policies.planning.outcome import PolicyOutcome, audit_outcomes, enforced_of
from policies.policy import Policy
from policies.state.snapshot import Facts
from policies.verdict import MOST_FOUND, Edit, Remark, Verdict


def evaluate_claim(request: ClaimRequest, facts: Facts) -> Verdict:
    """Return the verdict on one claim; not judged if all that it asks for is known to be no accelerator."""
    found = tuple(parts(request, facts))
    if not found:
        return Verdict(judged=False)
    count = of_claim(request.claim, facts.snapshot)
    matched = tuple(c for c in facts.policies if request.user not in c.policy.exclude_users and _may_match(c.policy, count))
    several = any(part.path[-2] == "firstAvailable" for part in found)
    asked = _Claim(request, EvaluatedParts(found, count.most, several, facts.snapshot.catalog, facts.snapshot.merged), count.least)
    outcome = asked.under(enforced_of(matched))
    audited, uncounted = audit_outcomes(matched, outcome, asked.under, len(found)) if request.phase == "mutate" else ((), 0)
    return Verdict(
        edits=outcome.edits,
        violations=outcome.violations,
        remarks=outcome.remarks,
        audit_outcomes=audited,
        uncounted=uncounted,
        matched=tuple(c.policy.id for c in matched),
        patch=outcome.patch,
    )


def _may_match(policy: Policy, count: CountInterval) -> bool:
    """Return whether a pod with this claim alone can match the policy. Its labels and workload are not known; a pod of which the
    claims match together is denied (``policies.rules.device_counts``)."""
    match = policy.match
    if match.pod_selector is not None or match.workloads:
        return False
    return match.gpus is None or count.possibly(match.gpus.min, match.gpus.max)


@dataclass(frozen=True, slots=True)
class _Claim:
    request: ClaimRequest
    asked: EvaluatedParts
    least: int

    def under(self, policies: Sequence[Compiled]) -> PolicyOutcome:
        """Return what comes of it under these policies together."""
        denied = list(islice(checks.violations(self.asked, policies), MOST_FOUND))
        defaulting = [c for c in policies if is_certain(c.policy, self.least)]
        edits: list[Edit] = []
        remarks: dict[Remark, None] = {}
        unsaid: dict[Remark, None] = {}
        theirs: list[tuple[ClaimPart, list[str]]] = []
        together = selectors.Together(self.asked.catalog, policies, defaulting, self.asked.merged)
        for part in () if self.request.chosen else self.asked.parts:
            confinement, default = together.required(part), together.chosen(part)
            if self.request.phase == "validate":
                if not denied:
                    denied += selectors.unconfined(part, confinement.wanted)
                continue
            wanted = (*confinement.wanted, *default.wanted)
            denied += selectors.without_room(part, wanted)
            edits += selectors.edits(part, wanted)
            theirs.append((part, [one.demand.text for one in wanted]))
            remarks |= dict.fromkeys(default.remarks)
            unsaid |= dict.fromkeys(selectors.unsaid(part, (*confinement.lacking, *default.lacking)))
        if denied:
            return PolicyOutcome((), tuple(denied), tuple(remark for remark in remarks if remark.code not in OF_EDITS))
        return PolicyOutcome(tuple(edits), (), (*remarks, *unsaid), self._patch(edits, theirs))

    def _patch(self, edits: Sequence[Edit], theirs: Iterable[tuple[ClaimPart, list[str]]]) -> tuple[dict[str, Any], ...]:
        made = self.request.made
        return applied.finish(made, edits, _valid_entries(made, theirs)) if self.request.phase == "mutate" else ()


def _valid_entries(made: Mapping[str, Any], theirs: Iterable[tuple[ClaimPart, list[str]]]) -> list[applied.Entry]:
    """Return the entries of ``berth.dev/applied`` that are true: of a selector that stands at their path, and that the policies in
    force write there."""
    written = {(pointer((*part.path, "selectors"))): {_digest(text) for text in texts} for part, texts in theirs}
    return [entry for entry in applied.intact_entries(made) if entry["is"] in written.get(entry["path"].rpartition("/")[0], ())]


def _digest(text: str) -> str:
    return digest({"cel": {"expression": text}})
