"""The verdict on a claim at its creation: ResourceClaims and ResourceClaimTemplates, apart from the pods that
will use them.

Whoever may delete a claim and create it anew changes what a waiting pod gets, and no pod is reviewed again.
So what a pod may not have, a claim may not ask for, whoever creates it: the controller that makes claims from
templates is judged like everybody else. The spec of both kinds is immutable (k8s.io/kubernetes
pkg/apis/resource/validation, ValidateResourceClaimUpdate), so only creations are judged.

Input: the requests of one claim and the policies of its namespace. Judged: counts, ``adminAccess``,
tolerations of device taints, unknown classes. Nothing is edited, and policies that choose pods by labels or
workload are left to the review of the pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from policies.catalog import Catalog
from policies.engine import MOST_AUDITED
from policies.messages import phrase
from policies.objects.wording import cut
from policies.offers.constraints import Compiled, Constraint, fields, who
from policies.offers.machine_fields import in_machine
from policies.offers.table import Host
from policies.planning.devices import of_claim
from policies.planning.merged_settings import FORBID
from policies.policy import Machine, Policy, TolerationPattern
from policies.rules.tolerations import tolerates
from policies.state.cluster_facts import Choice, Claim
from policies.state.snapshot import Facts
from policies.verdict import Verdict, Violation, Would, at_field

COUNTS, NODES, TOLERATIONS = "device_counts", "node_affinity", "tolerations"
"""The rules under which the same is found of pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """One claim or template that is being created."""

    user: str = ""
    claim: Claim
    path: str = "spec.devices.requests"
    """The path of the requests; of a template ``spec.spec.devices.requests``."""


class _Part(NamedTuple):
    """One alternative for one request, of an accelerator."""

    where: str
    """``spec.devices.requests[0]``, or ``spec.devices.requests[0].firstAvailable[1]``"""
    choice: Choice
    vendor: str
    """"" if the class is unknown."""


def judge(request: ClaimRequest, facts: Facts) -> Verdict:
    """Return the verdict on one claim; not judged if all that it asks for is known to be no accelerator."""
    parts = tuple(_parts(request, facts))
    if not parts:
        return Verdict(judged=False)
    count = of_claim(request.claim, facts.snapshot)
    matched = tuple(c for c in facts.policies if request.user not in c.policy.exclude_users and _may_match(c.policy, count.least))
    enforced = [c for c in matched if c.mode == "Enforce"]
    softer = [c for c in matched if c.mode != "Enforce"]
    asked = _Asked(parts, count.most, any(len(choices) > 1 for choices in request.claim), facts.snapshot.catalog)
    refused = tuple(_violations(asked, enforced))
    known = {v.key for v in refused}
    would = [
        Would(
            policy=one.policy.id,
            mode=one.mode,
            violations=tuple(v for v in _violations(asked, [*enforced, one]) if v.key not in known),
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
    """Yield every alternative of every request, except those by devices that are no accelerators."""
    for i, choices in enumerate(request.claim):
        for j, choice in enumerate(choices):
            if facts.snapshot.counts(choice.device_class):
                where = f"{request.path}[{i}]" + (f".firstAvailable[{j}]" if len(choices) > 1 else "")
                yield _Part(where, choice, facts.snapshot.class_vendor(choice.device_class))


def _may_match(policy: Policy, least: int) -> bool:
    """Return whether a pod with this claim, and with whatever else, can match the policy. Its labels and
    workload are not known."""
    match = policy.match
    if match.pod_selector is not None or match.workloads:
        return False
    return match.gpus is None or match.gpus.max is None or match.gpus.max >= least


@dataclass(frozen=True, slots=True)
class _Asked:
    """The parts of the claim that are judged."""

    parts: tuple[_Part, ...]
    most: int | None
    several: bool
    """True if a request has several alternatives."""
    catalog: Catalog


def _violations(asked: _Asked, policies: Sequence[Compiled]) -> Iterator[Violation]:
    """Yield the violations under these policies together."""
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
    on = at_field(f"spec.require.gpusPerPod.{'max' if code == 'BERTH-111' else 'oneOf'}", policies)
    if asked.most is not None:
        found = phrase("claim has more", count=asked.most, most=most)
        advice = phrase("ask for fewer", most=most) if most else phrase("ask for allowed")
        more = (phrase("any way"),) if asked.several else ()
        yield Violation(code=code, found=found, advice=advice, more=more, rule=COUNTS, policies=policies, fields=on)
        return
    for part in asked.parts:
        if part.choice.most is None:
            found, advice = phrase("claim asks for all", request=part.where, most=most), phrase("write a count", most=most)
            yield Violation(code=code, found=found, advice=advice, rule=COUNTS, policies=policies, fields=on)


def _admins(asked: _Asked, policies: Sequence[Compiled]) -> Iterator[Violation]:
    """Yield a violation per request with ``adminAccess``: devices that others hold are in no count, and
    break exclusive use of a GPU."""
    by = tuple(sorted(c.policy.id for c in policies if c.policy.require.gpus_per_pod or c.policy.require.sharing))
    on = (
        *((c.policy.id, "spec.require.gpusPerPod") for c in policies if c.policy.require.gpus_per_pod),
        *((c.policy.id, "spec.require.sharing") for c in policies if c.policy.require.sharing),
    )
    for part in asked.parts if by else ():
        if part.choice.admin:
            found, advice = phrase("fact", request=part.where), phrase("fix", request=part.where)
            yield Violation(code="BERTH-116", found=found, advice=advice, rule=COUNTS, policies=by, fields=on)


def _classes(asked: _Asked, policies: Sequence[Compiled]) -> Iterator[Violation]:
    """Yield one violation for each class and policy if the class's known devices are outside of what is
    required, or nothing is known of them."""
    for compiled in policies:
        machine = _machine(compiled.policy.require.machine)
        if machine == Machine():
            continue
        demands = [c for c in compiled.require if c.axis == "machine" and not c.field.endswith(".instanceFamilies")]
        inside = {vendor: _inside(vendor, machine, asked.catalog) for vendor in {part.vendor for part in asked.parts}}
        outside = {part.choice.device_class: part for part in reversed(asked.parts) if not inside[part.vendor]}
        for device_class, part in sorted(outside.items()):
            yield _outside(part, device_class, demands)


def _machine(machine: Machine) -> Machine:
    """Return the device fields of a machine. A claim specifies nothing of instance families."""
    return Machine(families=machine.families, models=machine.models, gpu_memory=machine.gpu_memory)


def _inside(vendor: str, machine: Machine, catalog: Catalog) -> bool:
    """Return whether any device of the vendor is inside the machine fields, including one that the catalog
    lacks. "" is no vendor."""
    models = [*(gpu for gpu in catalog.gpus if gpu.vendor == vendor), None]
    hosts = (Host(vendor=vendor, gpu=gpu, family=None, count=None, resource="", attributes={}, name="") for gpu in models)
    return bool(vendor) and any(in_machine(host, machine, catalog) for host in hosts)


def _outside(part: _Part, device_class: str, demands: Sequence[Constraint]) -> Violation:
    text = " and ".join(c.text for c in demands)
    wanted, more = cut(text, 48), [phrase("wanted", wanted=text)]
    if part.vendor:
        found = phrase("class outside", request=part.where, device_class=cut(device_class, 48), wanted=wanted)
    else:
        found = phrase("class unknown", request=part.where, device_class=cut(device_class, 40), wanted=wanted)
        more.append(phrase("nobody knows"))
    by, on = who(demands), fields(demands)
    return Violation(code="BERTH-126", found=found, advice=phrase("ask for class"), more=tuple(more), rule=NODES, policies=by, fields=on)


def _tolerations(asked: _Asked, policies: Sequence[Compiled]) -> Iterator[Violation]:
    """Yield one violation for each toleration and pattern, as on pods. Taints of devices have the grammar
    of those of nodes (k8s.io/api/resource/v1)."""
    forbidden = [(pattern, c.policy.id) for c in policies for pattern in c.policy.require.forbid_tolerations]
    for part in asked.parts:
        for i, toleration in enumerate(map(dict, part.choice.tolerations if forbidden else ())):
            yield from (_forbidden(part, i, pattern, policy) for pattern, policy in forbidden if tolerates(toleration, pattern))


def _forbidden(part: _Part, i: int, pattern: TolerationPattern, policy: str) -> Violation:
    return Violation(
        code="BERTH-131",
        found=phrase("of claim", index=i, request=part.where, taint=str(pattern)),
        advice=phrase("remove that"),
        rule=TOLERATIONS,
        policies=(policy,),
        fields=at_field(FORBID, (policy,)),
    )
