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
from functools import partial
from itertools import islice
from typing import Any

from kube.pod import CountInterval
from kube.tree import pointer
from policies.claims import checks, selectors
from policies.claims.claim_request import ClaimPart, ClaimRequest, EvaluatedClaim, parts
from policies.messages import OF_EDITS
from policies.offers.constraints import Compiled
from policies.patch import applied
from policies.patch.applied import digest
from policies.planning.devices import of_claim
from policies.planning.outcome import PolicyOutcome, enforced_of, evaluate_under
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
    claim = EvaluatedClaim(
        request=request,
        parts=found,
        least=count.least,
        most=count.most,
        catalog=facts.snapshot.catalog,
        merged=facts.snapshot.merged,
    )
    return evaluate_under(matched, enforced_of(matched), partial(_outcome, claim), len(found) if request.phase == "mutate" else None)


def _may_match(policy: Policy, count: CountInterval) -> bool:
    """Return whether a pod with this claim alone can match the policy. Its labels and workload are not known; a pod of which the
    claims match together is denied (``policies.rules.device_counts``)."""
    match = policy.match
    if match.pod_selector is not None or match.workloads:
        return False
    return match.gpus is None or count.possibly(match.gpus.min, match.gpus.max)


def _outcome(claim: EvaluatedClaim, policies: Sequence[Compiled]) -> PolicyOutcome:
    """Return what comes of the claim under these policies together."""
    request, is_mutated = claim.request, claim.request.phase == "mutate"
    denied = list(islice(checks.violations(claim, policies), MOST_FOUND))
    edits: list[Edit] = []
    remarks: dict[Remark, None] = {}
    unsaid: dict[Remark, None] = {}
    theirs: list[tuple[ClaimPart, list[str]]] = []
    for part in () if request.chosen else claim.parts:
        confinement = selectors.require(claim, policies, part)
        if not is_mutated:
            if not denied:
                denied += selectors.unconfined(part, confinement.wanted)
            continue
        default = selectors.default(claim, policies, part, confinement)
        wanted = (*confinement.wanted, *default.wanted)
        denied += selectors.without_room(part, wanted)
        edits += selectors.edits(part, wanted)
        theirs.append((part, [one.demand.text for one in wanted]))
        remarks |= dict.fromkeys(default.remarks)
        unsaid |= dict.fromkeys(selectors.unsaid(part, (*confinement.lacking, *default.lacking)))
    if denied:
        return PolicyOutcome((), tuple(denied), tuple(remark for remark in remarks if remark.code not in OF_EDITS))
    patch = applied.finish(request.made, edits, _valid_entries(request.made, theirs)) if is_mutated else ()
    return PolicyOutcome(tuple(edits), (), (*remarks, *unsaid), patch)


def _valid_entries(made: Mapping[str, Any], theirs: Iterable[tuple[ClaimPart, list[str]]]) -> list[applied.Entry]:
    """Return the entries of ``berth.dev/applied`` that are true: of a selector that stands at their path, and that the policies in
    force write there."""
    written = {(pointer((*part.path, "selectors"))): {digest(selectors.selector(text)) for text in texts} for part, texts in theirs}
    return [entry for entry in applied.intact_entries(made) if entry["is"] in written.get(entry["path"].rpartition("/")[0], ())]
