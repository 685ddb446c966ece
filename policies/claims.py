"""A claim judged where it is made: ResourceClaims and ResourceClaimTemplates, apart from the pods that will rest on them.

Whoever may delete a claim and make it anew changes what a waiting pod gets, and no pod is asked again. So what a pod may not have,
a claim may not ask for, whoever makes it: the controller that makes claims from templates is judged as everybody is. The spec of both
kinds can't be changed (k8s.io/kubernetes pkg/apis/resource/validation, ValidateResourceClaimUpdate), so creations are all there is.

Reads   the requests of one claim, the policies of its namespace
Judges  counts, ``adminAccess``, tolerations of device taints, classes that nobody knows
Never   edits; judges by policies that choose pods by labels or workload, whose turn comes with the pod
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from policies.catalog import Catalog
from policies.cluster_facts import Choice, Claim
from policies.compiled import Compiled
from policies.devices import of_claim
from policies.engine import MOST_AUDITED
from policies.machine_fields import in_machine
from policies.offers import Host
from policies.policy import Machine, Policy, TolerationPattern
from policies.rules.tolerations import tolerates
from policies.snapshot import Facts
from policies.verdict import Verdict, Violation, Would
from policies.wording import cut

COUNTS, NODES, TOLERATIONS = "device_counts", "node_affinity", "tolerations"
"""the rules of pods under which the same is found of claims"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """One claim or template that is made."""

    user: str = ""
    claim: Claim
    path: str = "spec.devices.requests"
    """where the requests stand; of a template ``spec.spec.devices.requests``"""


class _Part(NamedTuple):
    """One way to meet one request, of an accelerator."""

    where: str
    """``spec.devices.requests[0]``, or ``spec.devices.requests[0].firstAvailable[1]``"""
    choice: Choice
    vendor: str
    """"" where nobody knows the class"""


def judge(request: ClaimRequest, facts: Facts) -> Verdict:
    """The verdict on one claim; not judged where all that it asks for is known to be no accelerator."""
    parts = tuple(_parts(request, facts))
    if not parts:
        return Verdict(judged=False)
    count = of_claim(request.claim, facts.snapshot)
    matched = tuple(c for c in facts.policies if request.user not in c.policy.exclude_users and _may_match(c.policy, count.least))
    enforced = [c for c in matched if c.mode == "Enforce"]
    softer = [c for c in matched if c.mode != "Enforce"]
    asked = _Asked(parts, count.most, any(len(choices) > 1 for choices in request.claim), facts.snapshot.catalog)
    refused = tuple(_violations(asked, enforced))
    known = {(v.code, v.fact) for v in refused}
    would = [
        Would(
            policy=one.policy.id,
            mode=one.mode,
            violations=tuple(v for v in _violations(asked, [*enforced, one]) if (v.code, v.fact) not in known),
        )
        for one in softer[:MOST_AUDITED]
    ]
    return Verdict(
        violations=refused,
        would=tuple(would),
        uncounted=max(0, len(softer) - MOST_AUDITED),
        matched=tuple(c.policy.id for c in matched),
    )


def _parts(request: ClaimRequest, facts: Facts) -> Iterator[_Part]:
    """Every way to meet every request, but those by devices that are no accelerators."""
    for i, choices in enumerate(request.claim):
        for j, choice in enumerate(choices):
            if facts.snapshot.counts(choice.device_class):
                where = f"{request.path}[{i}]" + (f".firstAvailable[{j}]" if len(choices) > 1 else "")
                yield _Part(where, choice, facts.snapshot.class_vendor(choice.device_class))


def _may_match(policy: Policy, least: int) -> bool:
    """Whether a pod with this claim, and with whatever else, can be one that the policy is for. Its labels and workload are not known."""
    match = policy.match
    if match.pod_selector is not None or match.workloads:
        return False
    return match.gpus is None or match.gpus.max is None or match.gpus.max >= least


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is judged."""

    parts: tuple[_Part, ...]
    most: int | None
    several: bool
    """a request may be met in several ways"""
    catalog: Catalog


def _violations(asked: _Asked, policies: Sequence[Compiled]) -> Iterator[Violation]:
    """Under these policies together."""
    if not policies:
        return
    yield from _too_many(asked, policies)
    yield from _admins(asked, policies)
    yield from _classes(asked, policies)
    yield from _tolerations(asked, policies)


def _too_many(asked: _Asked, policies: Sequence[Compiled]) -> Iterator[Violation]:
    limits = [(limit.max, c.policy.id) for c in policies if (limit := c.policy.require.gpus_per_pod) and limit.max is not None]
    lists = [(set(limit.one_of), c.policy.id) for c in policies if (limit := c.policy.require.gpus_per_pod) and limit.one_of]
    most = min((value for value, _ in limits), default=None)
    allowed = [n for n in set.intersection(*(values for values, _ in lists)) if most is None or n <= most] if lists else []
    if most is not None and (asked.most is None or asked.most > most):
        yield from _more_than(asked, most, "BERTH-111", tuple(sorted(name for value, name in limits if value == most)))
    elif lists and (asked.most is None or asked.most > max(allowed, default=0)):
        yield from _more_than(asked, max(allowed, default=0), "BERTH-112", tuple(sorted(name for _, name in lists)))


def _more_than(asked: _Asked, most: int, code: str, policies: tuple[str, ...]) -> Iterator[Violation]:
    if asked.most is not None:
        fact = f"the claim asks for {asked.most} GPUs, more than the {most} that one pod may have here"
        fix = f"ask for at most {most}, or split the work over more pods" if most else "ask the platform team which counts are allowed"
        yield Violation(code=code, fact=fact, fix=fix, detail=ANY_WAY if asked.several else "", rule=COUNTS, policies=policies)
        return
    for part in asked.parts:
        if part.choice.most is None:
            fact = f"{part.where} asks for as many devices as there are, and one pod may have {most} here"
            fix = f"write allocationMode: ExactCount and a count of at most {most}"
            yield Violation(code=code, fact=fact, fix=fix, rule=COUNTS, policies=policies)


ANY_WAY = "Of the ways that firstAvailable lists, the one with the most counts."


def _admins(asked: _Asked, policies: Sequence[Compiled]) -> Iterator[Violation]:
    """Devices that others hold are outside of every count, and of whoever is to have a GPU alone."""
    by = tuple(sorted(c.policy.id for c in policies if c.policy.require.gpus_per_pod or c.policy.require.sharing))
    for part in asked.parts if by else ():
        if part.choice.admin:
            fact = f"{part.where} asks for adminAccess: devices that others hold, past the counts and the sharing that are required here"
            fix = f"remove adminAccess from {part.where}"
            yield Violation(code="BERTH-116", fact=fact, fix=fix, rule=COUNTS, policies=by)


def _classes(asked: _Asked, policies: Sequence[Compiled]) -> Iterator[Violation]:
    """One violation for each class and policy: what is known of the class's devices lies outside of what is required, or nothing is."""
    for compiled in policies:
        machine = _machine(compiled.policy.require.machine)
        if machine == Machine():
            continue
        text = " and ".join(c.text for c in compiled.require if c.axis == "machine" and not c.field.endswith(".instanceFamilies"))
        inside = {vendor: _inside(vendor, machine, asked.catalog) for vendor in {part.vendor for part in asked.parts}}
        outside = {part.choice.device_class: part for part in reversed(asked.parts) if not inside[part.vendor]}
        for device_class, part in sorted(outside.items()):
            yield _outside(part, device_class, text, compiled.policy.id)


def _machine(machine: Machine) -> Machine:
    """As far as it is about devices. A claim says nothing of instance families."""
    return Machine(families=machine.families, models=machine.models, gpu_memory=machine.gpu_memory)


def _inside(vendor: str, machine: Machine, catalog: Catalog) -> bool:
    """Whether any device of the vendor is, one that the catalog lacks among them. "" is nobody's."""
    models = [*(gpu for gpu in catalog.gpus if gpu.vendor == vendor), None]
    hosts = (Host(vendor=vendor, gpu=gpu, family=None, count=None, resource="", attributes={}, name="") for gpu in models)
    return bool(vendor) and any(in_machine(host, machine, catalog) for host in hosts)


def _outside(part: _Part, device_class: str, text: str, policy: str) -> Violation:
    wanted = cut(text, 48)
    if part.vendor:
        fact, detail = f'{part.where}: no device of the class "{cut(device_class, 48)}" meets {wanted}', ""
    else:
        fact = f'{part.where}: nobody knows which devices the class "{cut(device_class, 40)}" has, so it does not meet {wanted}'
        detail = NOBODY_KNOWS
    fix = "ask for a class that is allowed here"
    return Violation(code="BERTH-126", fact=fact, fix=fix, detail=f"Required: {text}. {detail}".rstrip(), rule=NODES, policies=(policy,))


NOBODY_KNOWS = (
    'A class is known by the driver in its selectors (device.driver == "..."), or by its own name; one that nobody knows is inside no'
    " in and outside no notIn. The platform team adds a driver with --catalog (draDrivers, otherDrivers)."
)


def _tolerations(asked: _Asked, policies: Sequence[Compiled]) -> Iterator[Violation]:
    """One for each toleration and pattern, as on pods. Taints of devices have the grammar of those of nodes (k8s.io/api/resource/v1)."""
    forbidden = [(pattern, c.policy.id) for c in policies for pattern in c.policy.require.forbid_tolerations]
    for part in asked.parts:
        for i, toleration in enumerate(map(dict, part.choice.tolerations if forbidden else ())):
            yield from (_forbidden(part, i, pattern, policy) for pattern, policy in forbidden if tolerates(toleration, pattern))


def _forbidden(part: _Part, i: int, pattern: TolerationPattern, policy: str) -> Violation:
    value = "" if pattern.value is None else f"={pattern.value}"
    taint = f"{pattern.key}{value}" + (f":{pattern.effect}" if pattern.effect else "")
    return Violation(
        code="BERTH-131",
        fact=f"tolerations[{i}] of {part.where} tolerates the device taint {taint}, which is forbidden here",
        fix="remove that toleration",
        rule=TOLERATIONS,
        policies=(policy,),
    )
