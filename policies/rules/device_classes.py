"""Devices that a pod asks for by a DeviceClass: by a claim, or by an extended resource that DRA serves. Nothing is edited.

Their model is known by the vendor of the class alone, so a pod is denied if nobody knows the class, or if no model of the vendor is
inside of what is required. Which of the class's devices a claim gets is decided by its selectors (``policies.claims``), and which a pod
gets by the class's resource name, by the nodes where it may run (``policies.offers.served``).
"""

from __future__ import annotations

from collections.abc import Iterator

from kube.tree import Path
from policies.claims.claim_request import part_of
from policies.claims.confinement import FIELDS, device_fields, has_such, types_of
from policies.facts.device_requests import Claim, RequestChoice
from policies.messages import Phrase, phrase
from policies.offers.constraints import Compiled, Constraint, fields, who
from policies.planning.devices import RequestedDevice, of_claim
from policies.planning.plan import Plan
from policies.policy import Policy
from policies.reasons import open_counts
from policies.rules.node_affinity import denials
from policies.state.snapshot import Snapshot
from policies.verdict import Violation, at_field

UNKNOWN = "BERTH-126"
NAME = "device_counts"
"""Its rule: both judge what is asked for, and not where."""


def check(plan: Plan) -> Iterator[Violation]:
    """Yield a violation for the first device of an unknown class or missing claim, if machines are
    constrained, which satisfies no ``in`` and no ``notIn``; one for the first of a known class that is outside; and one for
    the first claim that was judged without a policy for pods with more devices, as this pod is."""
    yield from _apart(plan)
    demands = [c for c in plan.constraints if c.axis == "machine"]
    if not demands:
        return
    unknown = next(open_counts.of_no_known_class(plan), None)
    if unknown is not None:
        found, advice, path = unknown
        yield _violation(phrase("open", open=found, demands=denials.join_phrases(demands)), advice, path, demands)
    yield from (_violation(*one) for one in _first(_outside(plan)))


def _apart(plan: Plan) -> Iterator[Violation]:
    claims = {one: found for one in plan.pod.claims if (found := _stored(plan, *one)) is not None}
    for policy in (compiled.policy for compiled in plan.policies if claims):
        least = policy.match.gpus.min if policy.match.gpus is not None else None
        for (kind, name), claim in claims.items():
            count = of_claim(claim, plan.snapshot)
            if count.possibly(least, None) or all(_settles(choice, policy, plan.snapshot) for choices in claim for choice in choices):
                continue
            by = (policy.id,)
            yield Violation(
                code="BERTH-127",
                found=phrase("apart", kind=kind, claim=name, count=str(count), policies=by, least=least),
                advice=phrase("together", least=least),
                rule=NAME,
                policies=by,
                path=("spec", "resourceClaims"),
                fields=at_field("spec.match.gpus.min", by),
            )
            return


def _stored(plan: Plan, kind: str, name: str) -> Claim | None:
    return plan.snapshot.cluster.claims.get((kind, plan.facts.namespace, name))


def _settles(choice: RequestChoice, policy: Policy, snapshot: Snapshot) -> bool:
    """Return whether such a way to satisfy a claim is inside of what the policy requires of claims, whatever selectors the claim has: the
    policy is about none, or about what is read of claims, or of how the devices of a class are shared."""
    require, machine = policy.require, policy.require.machine
    if policy.match.pod_selector is not None or policy.match.workloads or not snapshot.counts(choice.device_class):
        return True
    if machine.families or machine.models or machine.gpu_memory or (require.forbid_tolerations and choice.tolerations):
        return False
    if choice.admin and (require.sharing or require.gpus_per_pod):
        return False
    part = part_of((), choice, (), snapshot)
    return not require.sharing or (part.devices is not None and part.type in types_of(part.devices, require.sharing))


def _first(found: Iterator[tuple[Phrase, Phrase, Path, list[Constraint]]]) -> list[tuple[Phrase, Phrase, Path, list[Constraint]]]:
    one = next(found, None)
    return [] if one is None else [one]


def _outside(plan: Plan) -> Iterator[tuple[Phrase, Phrase, Path, list[Constraint]]]:
    by_class = [asked for asked in plan.asked if asked.resource.kind == "dra" and asked.resource.vendor and not _placed(plan, asked)]
    claims = [claim for claim in plan.devices.claimed if claim.vendors - {""}]
    for compiled in plan.policies if by_class or claims else ():
        demands = [c for c in compiled.require if c.axis == "machine" and c.field.rpartition(".")[2] in FIELDS]
        said = denials.join_phrases(demands)
        for asked in by_class:
            if not _has(plan, compiled, asked.resource.vendor):
                place = open_counts.amount_path(asked.containers[0], asked.resource.name)
                yield phrase("device", name=asked.resource.name, demands=said), phrase("ask for device"), place, demands
        for claim in claims:
            if not all(_has(plan, compiled, vendor) for vendor in claim.vendors - {""}):
                found = phrase("claim outside", kind=claim.kind, claim=claim.name, demands=said)
                yield found, phrase("ask for class"), ("spec", "resourceClaims"), demands


def _placed(plan: Plan, asked: RequestedDevice) -> bool:
    """Return whether what is required is judged by the nodes where the pod may run (``policies.rules.node_affinity.rule``)."""
    return plan.snapshot.lists(asked.resource.name) and plan.actor.affinity != "no"


def _has(plan: Plan, compiled: Compiled, vendor: str) -> bool:
    """Return whether a model of the vendor, known or not, is inside of what the policy requires."""
    return has_such(vendor, [device_fields(compiled.policy.require.machine)], plan.snapshot.catalog)


def _violation(found: Phrase, advice: Phrase, path: Path, demands: list[Constraint]) -> Violation:
    more, by, on = (denials.required(demands),), who(demands), fields(demands)
    return Violation(code=UNKNOWN, found=found, advice=advice, more=more, rule=NAME, policies=by, path=path, fields=on)
