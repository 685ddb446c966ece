"""The verdict on a claim at its creation: ResourceClaims and ResourceClaimTemplates, apart from the pods that
will use them.

Whoever may delete a claim and create it anew changes what a waiting pod gets, and no pod is reviewed again.
So what a pod may not have, a claim may not ask for, whoever creates it: the controller that makes claims from
templates is judged like everybody else, since a template may be older than the policy. The spec of both kinds is immutable
(k8s.io/kubernetes pkg/apis/resource/validation, ValidateResourceClaimUpdate), so only creations are judged.

Checked: counts, ``adminAccess``, tolerations of device taints, classes. /mutate writes what is required of devices, and defaults, as
selectors; /validate denies a claim without those that are required. Policies that choose pods by labels or
workload are left to the review of the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from kube.pod import CountInterval
from kube.tree import pointer
from policies.claims import cel, checks
from policies.claims.cel import Demand, OneOf
from policies.claims.claim_request import ClaimPart, ClaimRequest, EvaluatedClaim, parts
from policies.claims.confinement import Confinement, Lacking, Wanted, required
from policies.claims.defaults import RULE, choose_defaults, chosen, is_certain, silent
from policies.facts.device_requests import selected_values
from policies.messages import OF_EDITS, cut_text, phrase
from policies.offers.constraints import Compiled, fields, who
from policies.patch.build import build_patch
from policies.patch.record import Entry, digest, intact_entries
from policies.planning.devices import of_claim
from policies.planning.outcome import PolicyOutcome, enforced_of, evaluate_under
from policies.policy import Policy
from policies.state.snapshot import NamespaceFacts
from policies.verdict import MOST_FOUND, Edit, Remark, Verdict, Violation


def evaluate_claim(request: ClaimRequest, facts: NamespaceFacts) -> Verdict:
    """Return the verdict on one claim; not judged if all that it asks for is known to be no accelerator."""
    found = tuple(parts(request, facts))
    if not found:
        return Verdict(is_evaluated=False)
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
    confined = [(part, find_required(claim, policies, part)) for part in (() if request.chosen else claim.parts)]
    contradicted = [list(deny_contradicted(part, confinement.wanted)) for part, confinement in confined]
    allocatable = {part.request for (part, _), violations in zip(confined, contradicted, strict=True) if not violations}
    for (part, confinement), violations in zip(confined, contradicted, strict=True):
        if part.request not in allocatable:
            denied += violations
            continue
        if not is_mutated:
            if not denied:
                denied += deny_unconfined(part, confinement.wanted)
            continue
        default = find_defaults(claim, policies, part, confinement)
        wanted = (*confinement.wanted, *default.wanted)
        denied += deny_overflow(part, wanted)
        edits += write_selectors(part, wanted)
        theirs.append((part, [one.demand.text for one in wanted]))
        remarks |= dict.fromkeys(default.remarks)
        unsaid |= dict.fromkeys(remark_unsaid(part, (*confinement.lacking, *default.lacking)))
    if denied:
        return PolicyOutcome((), tuple(denied), tuple(remark for remark in remarks if remark.code not in OF_EDITS))
    patch = build_patch(request.made, edits, _valid_entries(request.made, theirs)) if is_mutated else ()
    return PolicyOutcome(tuple(edits), (), (*remarks, *unsaid), patch)


def _valid_entries(made: Mapping[str, Any], theirs: Iterable[tuple[ClaimPart, list[str]]]) -> list[Entry]:
    """Return the entries of ``berth.dev/applied`` that are true: of a selector that stands at their path, and that the policies in
    force write there."""
    written = {(pointer((*part.path, "selectors"))): {digest(selector(text)) for text in texts} for part, texts in theirs}
    return [entry for entry in intact_entries(made) if entry["is"] in written.get(entry["path"].rpartition("/")[0], ())]


# --- selectors: appended to the author's own, with which Kubernetes ANDs them (k8s.io/api/resource/v1 ExactDeviceRequest) --


def find_required(claim: EvaluatedClaim, policies: Sequence[Compiled], part: ClaimPart) -> Confinement:
    """Return what these policies require of a part: found once for each driver and set of policies."""
    if part.devices is None:
        return Confinement()
    key = "claims.required", part.devices.driver, tuple(policies)
    confinement: Confinement | None = claim.merged.get(key)
    if confinement is None:
        confinement = required(part.devices, claim.catalog, policies)
        claim.merged.keep(key, confinement, _size(confinement.wanted))
    return confinement


def find_defaults(claim: EvaluatedClaim, policies: Sequence[Compiled], part: ClaimPart, confinement: Confinement) -> Confinement:
    """Return the defaults for a part on which ``policies`` require ``confinement``: found once for each driver, type of devices and set
    of policies."""
    defaulting = [c for c in policies if is_certain(c.policy, claim.least)]
    if part.devices is None or not defaulting or not silent(part):
        return Confinement()
    key = "claims.offered", part.devices.driver, part.type, tuple(policies), tuple(defaulting)
    offers: tuple[Confinement, ...] | None = claim.merged.get(key)
    if offers is None:
        offers = choose_defaults(part.devices, part.type, claim.catalog, policies, defaulting)
        claim.merged.keep(key, offers, _size([wanted for offer in offers for wanted in offer.wanted]))
    return chosen(part, offers, confinement)


def _size(wanted: Sequence[Wanted]) -> int:
    return 1024 + sum(3 * len(one.demand.text) for one in wanted)


def missing(part: ClaimPart, wanted: Iterable[Wanted]) -> list[Wanted]:
    """Return what the selectors of a part don't demand yet."""
    given: list[Demand] = [demand for text in part.texts if (demand := cel.parse_demand(text)) is not None]
    found = []
    for one in wanted:
        if not cel.implied(one.demand, given):
            found.append(one)
            given.append(one.demand)
    return found


def write_selectors(part: ClaimPart, wanted: Iterable[Wanted]) -> Iterator[Edit]:
    """Yield one edit for each selector that the part lacks."""
    for one in missing(part, wanted):
        yield Edit(op="add", path=(*part.path, "selectors", "-"), rule=RULE, policies=who(one.constraints), value=selector(one.demand.text))


def selector(text: str) -> dict[str, Any]:
    """Return the text of a demand as a DeviceSelector."""
    return {"cel": {"expression": text}}


def deny_contradicted(part: ClaimPart, wanted: Iterable[Wanted]) -> Iterator[Violation]:
    """Yield a violation for each demand that no device meets which the author's selectors leave: with both, no claim is ever allocated."""
    selected = selected_values(part.texts)
    for confined in wanted:
        values = selected.get("/".join((confined.demand.domain, confined.demand.attribute))) if isinstance(confined.demand, OneOf) else None
        if values is None or not isinstance(confined.demand, OneOf) or any(confined.demand.admits(value) for value in values):
            continue
        text = " and ".join(c.text for c in confined.constraints)
        yield Violation(
            code="BERTH-126",
            found=phrase(
                "selector outside",
                request=part.where,
                attribute=confined.demand.attribute,
                values=tuple(sorted(values)),
                wanted=cut_text(text, 48),
            ),
            advice=phrase("select allowed"),
            more=(phrase("wanted", wanted=text), phrase("text", text=confined.demand.text)),
            rule=RULE,
            fields=fields(confined.constraints),
        )


def deny_unconfined(part: ClaimPart, wanted: Iterable[Wanted]) -> Iterator[Violation]:
    """Yield a violation for each demand that the part of a stored claim lacks."""
    for one in missing(part, wanted):
        text = " and ".join(c.text for c in one.constraints)
        yield Violation(
            code="BERTH-127",
            found=phrase("open", request=part.where, wanted=cut_text(text, 48)),
            advice=phrase("again"),
            more=(phrase("wanted", wanted=text), phrase("undone"), phrase("text", text=one.demand.text)),
            rule=RULE,
            fields=fields(one.constraints),
        )


def deny_overflow(part: ClaimPart, wanted: Sequence[Wanted]) -> Iterator[Violation]:
    """Yield a violation if more would be written than a request may have."""
    new, number = missing(part, wanted), len(part.texts)
    if new and number + len(new) > cel.MOST:
        constraints = [c for one in new for c in one.constraints]
        yield Violation(
            code="BERTH-127",
            found=phrase("full", request=part.where, number=number, wanted=cut_text(" and ".join(c.text for c in constraints), 48)),
            advice=phrase("fewer", most=cel.MOST - len(new)),
            rule=RULE,
            fields=fields(constraints),
        )


def remark_unsaid(part: ClaimPart, lacking: Iterable[Lacking]) -> Iterator[Remark]:
    """Yield a remark for what the driver's attributes can't say."""
    for one in lacking:
        texts, driver = tuple(dict.fromkeys(c.text for c in one.constraints)), part.devices.driver if part.devices is not None else ""
        if one.models:
            found = phrase("models", constraints=texts, driver=driver, models=one.models, request=part.where)
        else:
            found = phrase("text", constraints=texts, driver=driver, request=part.where)
        yield Remark(code="BERTH-242", found=found, rule=RULE, fields=fields(one.constraints))
