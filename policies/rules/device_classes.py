"""Devices that a pod asks for by a DeviceClass: by a claim, or by an extended resource that DRA serves. Nothing is edited.

Their model is known by the vendor of the class alone, so a pod is refused if nobody knows the class, or if no model of the vendor is
inside of what is required. Which of the class's devices a claim gets is decided by its selectors (``policies.claims``), and which a pod
gets by the class's resource name, by the nodes where it may run (``policies.offers.served``).
"""

from __future__ import annotations

from collections.abc import Iterator

from policies.claims.confinement import FIELDS, device_fields, has_such
from policies.messages import Phrase, phrase
from policies.offers.constraints import Compiled, Constraint, fields, who
from policies.planning.devices import Asked
from policies.planning.plan import Plan
from policies.reasons import open_counts, refusal_messages
from policies.verdict import Path, Violation

NAME = "device_counts"
"""Its rule: both judge what is asked for, and not where."""


def check(plan: Plan) -> Iterator[Violation]:
    """Yield a violation for the first device of an unknown class or missing claim, if machines are
    constrained, which satisfies no ``in`` and no ``notIn``; and one for the first of a known class that is outside."""
    demands = [c for c in plan.constraints if c.axis == "machine"]
    if not demands:
        return
    unknown = next(open_counts.of_no_known_class(plan), None)
    if unknown is not None:
        found, advice, path = unknown
        yield _violation(phrase("open", open=found, demands=refusal_messages.joined(demands)), advice, path, demands)
    yield from (_violation(*one) for one in _first(_outside(plan)))


def _first(found: Iterator[tuple[Phrase, Phrase, Path, list[Constraint]]]) -> list[tuple[Phrase, Phrase, Path, list[Constraint]]]:
    one = next(found, None)
    return [] if one is None else [one]


def _outside(plan: Plan) -> Iterator[tuple[Phrase, Phrase, Path, list[Constraint]]]:
    by_class = [asked for asked in plan.asked if asked.resource.kind == "dra" and asked.resource.vendor and not _placed(plan, asked)]
    claims = [claim for claim in plan.devices.claimed if claim.vendors - {""}]
    for compiled in plan.policies if by_class or claims else ():
        demands = [c for c in compiled.require if c.axis == "machine" and c.field.rpartition(".")[2] in FIELDS]
        said = refusal_messages.joined(demands)
        for asked in by_class:
            if not _has(plan, compiled, asked.resource.vendor):
                place = open_counts.amount(asked.containers[0], asked.resource.name)
                yield phrase("device", name=asked.resource.name, demands=said), phrase("ask for device"), place, demands
        for claim in claims:
            if not all(_has(plan, compiled, vendor) for vendor in claim.vendors - {""}):
                found = phrase("claim outside", kind=claim.kind, claim=claim.name, demands=said)
                yield found, phrase("ask for class"), ("spec", "resourceClaims"), demands


def _placed(plan: Plan, asked: Asked) -> bool:
    """Return whether what is required is judged by the nodes where the pod may run (``policies.rules.node_affinity``)."""
    return plan.snapshot.lists(asked.resource.name) and plan.actor.affinity != "no"


def _has(plan: Plan, compiled: Compiled, vendor: str) -> bool:
    """Return whether a model of the vendor, known or not, is inside of what the policy requires."""
    return has_such(vendor, [device_fields(compiled.policy.require.machine)], plan.snapshot.catalog)


def _violation(found: Phrase, advice: Phrase, about: Path, demands: list[Constraint]) -> Violation:
    more, by, on = (refusal_messages.required(demands),), who(demands), fields(demands)
    return Violation(code="BERTH-126", found=found, advice=advice, more=more, rule=NAME, policies=by, about=about, fields=on)
