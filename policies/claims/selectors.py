"""The selectors that a claim gets, and those that it lacks: appended to the author's own, with which Kubernetes ANDs them
(k8s.io/api/resource/v1 ExactDeviceRequest), so that they can only narrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from policies.claims import cel
from policies.claims.cel import Demand
from policies.claims.claim_request import ClaimPart, EvaluatedClaim
from policies.claims.confinement import Confinement, Lacking, Wanted, required
from policies.claims.defaults import RULE, choose_defaults, chosen, is_certain, silent
from policies.messages import cut_text, phrase
from policies.offers.constraints import Compiled, fields, who
from policies.verdict import Edit, Remark, Violation


def require(claim: EvaluatedClaim, policies: Sequence[Compiled], part: ClaimPart) -> Confinement:
    """Return what these policies require of a part: found once for each driver and set of policies."""
    if part.devices is None:
        return Confinement()
    key = "claims.required", part.devices.driver, tuple(policies)
    confinement: Confinement | None = claim.merged.get(key)
    if confinement is None:
        confinement = required(part.devices, claim.catalog, policies)
        claim.merged.keep(key, confinement, _size(confinement.wanted))
    return confinement


def default(claim: EvaluatedClaim, policies: Sequence[Compiled], part: ClaimPart, confinement: Confinement) -> Confinement:
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


def edits(part: ClaimPart, wanted: Iterable[Wanted]) -> Iterator[Edit]:
    """Yield one edit for each selector that the part lacks."""
    for one in missing(part, wanted):
        yield Edit(op="add", path=(*part.path, "selectors", "-"), rule=RULE, policies=who(one.constraints), value=selector(one.demand.text))


def selector(text: str) -> dict[str, Any]:
    """Return the text of a demand as a DeviceSelector."""
    return {"cel": {"expression": text}}


def unconfined(part: ClaimPart, wanted: Iterable[Wanted]) -> Iterator[Violation]:
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


def without_room(part: ClaimPart, wanted: Sequence[Wanted]) -> Iterator[Violation]:
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


def unsaid(part: ClaimPart, lacking: Iterable[Lacking]) -> Iterator[Remark]:
    """Yield a remark for what the driver's attributes can't say."""
    for one in lacking:
        texts, driver = tuple(dict.fromkeys(c.text for c in one.constraints)), part.devices.driver if part.devices is not None else ""
        if one.models:
            found = phrase("models", constraints=texts, driver=driver, models=one.models, request=part.where)
        else:
            found = phrase("text", constraints=texts, driver=driver, request=part.where)
        yield Remark(code="BERTH-242", found=found, rule=RULE, fields=fields(one.constraints))
