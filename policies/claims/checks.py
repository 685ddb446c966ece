"""What a claim may not ask for under some policies: counts, ``adminAccess``, tolerations of device taints, classes whose devices are
outside of what is required."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from catalog import Catalog
from kube.taints import TolerationPattern, may_tolerate
from policies.claims.claim_request import ClaimPart, EvaluatedClaim
from policies.claims.confinement import FIELDS, can_be_told, device_fields, has_such, types_of
from policies.messages import cut_text, phrase
from policies.offers.constraints import Compiled, Constraint, fields
from policies.planning.requirement_words import detail_constraints
from policies.planning.requirements import FORBID
from policies.verdict import Violation, at_field

COUNTS, NODES, TOLERATIONS = "device_counts", "node_affinity", "tolerations"
"""The rules under which the same is found of pods."""


def violations(claim: EvaluatedClaim, policies: Sequence[Compiled]) -> Iterator[Violation]:
    """Yield the violations under these policies together."""
    if not policies:
        return
    yield from _too_many(claim, policies)
    yield from _admins(claim, policies)
    yield from _classes(claim, policies)
    yield from _tolerations(claim, policies)


def _too_many(claim: EvaluatedClaim, policies: Sequence[Compiled]) -> Iterator[Violation]:
    limits = [(limit.max, c.id) for c in policies if (limit := c.policy.require.gpus_per_pod) and limit.max is not None]
    lists = [(set(limit.one_of), c.id) for c in policies if (limit := c.policy.require.gpus_per_pod) and limit.one_of]
    most = min((value for value, _ in limits), default=None)
    allowed = [n for n in set.intersection(*(values for values, _ in lists)) if most is None or n <= most] if lists else []
    if most is not None and (claim.most is None or claim.most > most):
        yield from _more_than(claim, most, "BERTH-111", tuple(sorted(name for value, name in limits if value == most)))
    elif lists and (claim.most is None or claim.most > max(allowed, default=0)):
        yield from _more_than(claim, max(allowed, default=0), "BERTH-112", tuple(sorted(name for _, name in lists)))


def _more_than(claim: EvaluatedClaim, most: int, code: str, policies: tuple[str, ...]) -> Iterator[Violation]:
    on = at_field(f"spec.require.gpusPerPod.{'max' if code == 'BERTH-111' else 'oneOf'}", policies)
    if claim.most is not None:
        noun = claim.catalog.name_devices({part.vendor for part in claim.parts}, str(claim.most))
        found = phrase("claim has more", count=claim.most, noun=noun, most=most)
        advice = phrase("ask for fewer", most=most) if most else phrase("ask for allowed")
        more = (phrase("any way"),) if claim.several else ()
        yield Violation(code=code, found=found, advice=advice, more=more, rule=COUNTS, fields=on)
        return
    for part in claim.parts:
        if part.choice.most is None:
            found, advice = phrase("claim asks for all", request=part.where, most=most), phrase("write a count", most=most)
            yield Violation(code=code, found=found, advice=advice, rule=COUNTS, fields=on)


def _admins(claim: EvaluatedClaim, policies: Sequence[Compiled]) -> Iterator[Violation]:
    """Yield a violation per request with ``adminAccess``: devices that others hold are in no count, and
    break exclusive use of a GPU."""
    on = (
        *((c.id, "spec.require.gpusPerPod") for c in policies if c.policy.require.gpus_per_pod),
        *((c.id, "spec.require.sharing") for c in policies if c.policy.require.sharing),
    )
    for part in claim.parts if on else ():
        if part.choice.admin:
            found, advice = phrase("fact", request=part.where), phrase("fix", request=part.where)
            yield Violation(code="BERTH-116", found=found, advice=advice, rule=COUNTS, fields=on)


def _classes(claim: EvaluatedClaim, policies: Sequence[Compiled]) -> Iterator[Violation]:
    """Yield one violation for each class and policy if the class's known devices are outside of what is
    required, or nothing is known of them; and one for each class of which the policies together leave nothing."""
    judged = [one for compiled in policies for one in (_machine(compiled), _sharing(compiled)) if one]
    firsts = {part.choice.device_class: part for part in reversed(claim.parts)}  # a claim of 256 ways has few classes
    outside: set[str] = set()
    for demands, compiled in judged:
        wrong = {name: part for name, part in firsts.items() if not _inside(claim, part, [compiled], demands)}
        outside.update(wrong)
        for device_class, part in sorted(wrong.items()):
            yield _outside(part, device_class, demands)
    for axis in ("machine", "sharing"):
        together = [one for one in judged if one[0][0].axis == axis]
        for name, part in sorted(firsts.items()):
            if together and name not in outside and not _left(claim, part, together):
                yield _conflict([d for demands, _ in _smallest(claim, part, together) for d in demands])
                break


_Checked = tuple[list[Constraint], Compiled]


def _machine(compiled: Compiled) -> _Checked | None:
    demands = [c for c in compiled.require if c.axis == "machine" and c.field.rpartition(".")[2] in FIELDS]
    return (demands, compiled) if demands else None


def _sharing(compiled: Compiled) -> _Checked | None:
    demands = [c for c in compiled.require if c.axis == "sharing"]
    return (demands, compiled) if demands else None


def _inside(claim: EvaluatedClaim, part: ClaimPart, policies: Sequence[Compiled], demands: Sequence[Constraint]) -> bool:
    key = "claims.inside", demands[0].axis, part.vendor, part.devices and part.devices.driver, part.type, tuple(policies)
    found: bool | None = claim.merged.get(key)
    if found is None:
        found = _has_such(part, policies, demands, claim.catalog)
        claim.merged.keep(key, found, 512 + 16 * len(policies))
    return found


def _has_such(part: ClaimPart, policies: Sequence[Compiled], demands: Sequence[Constraint], catalog: Catalog) -> bool:
    """Return whether any device of the part's class meets what all these policies demand on one axis, including one that
    the catalog lacks. Of a driver that does not tell how devices are shared, any may."""
    if not part.vendor:
        return False
    if demands[0].axis == "machine":
        machines = [device_fields(c.policy.require.machine) for c in policies]
        return has_such(part.vendor, machines, catalog) and (part.devices is None or can_be_told(part.devices, machines, catalog))
    if part.devices is None or part.devices.type is None:
        return True
    allowed = types_of(
        part.devices, set(policies[0].policy.require.sharing).intersection(*(c.policy.require.sharing for c in policies[1:]))
    )
    return part.type in allowed if part.type else bool(allowed)


def _left(claim: EvaluatedClaim, part: ClaimPart, judged: Sequence[_Checked]) -> bool:
    return _inside(claim, part, [compiled for _, compiled in judged], judged[0][0])


def _smallest(claim: EvaluatedClaim, part: ClaimPart, judged: Sequence[_Checked]) -> Sequence[_Checked]:
    """Return policies that leave nothing together, and something without any one of them."""
    for one in judged:
        if len(judged) > 1 and not _left(claim, part, rest := [other for other in judged if other is not one]):
            return _smallest(claim, part, rest)
    return judged


def _conflict(demands: Sequence[Constraint]) -> Violation:
    named = tuple(cut_text(f"{c.by[0].rpartition('/')[2]} ({c.text})", max(16, 98 // len(demands) - 5)) for c in demands)
    found = phrase("one" if len(named) == 1 else "several", demands=named)
    advice, more = phrase("fix the policies"), (detail_constraints(demands),)
    return Violation(code="BERTH-122", found=found, advice=advice, more=more, rule=NODES, fields=fields(demands))


def _outside(part: ClaimPart, device_class: str, demands: Sequence[Constraint]) -> Violation:
    text = " and ".join(c.text for c in demands)
    wanted, more = cut_text(text, 48), [phrase("wanted", wanted=text)]
    if part.vendor:
        found = phrase("class outside", request=part.where, device_class=cut_text(device_class, 48), wanted=wanted)
    else:
        found = phrase("class unknown", request=part.where, device_class=cut_text(device_class, 40), wanted=wanted)
        more.append(phrase("class is unknown"))
    return Violation(code="BERTH-126", found=found, advice=phrase("ask for class"), more=tuple(more), rule=NODES, fields=fields(demands))


def _tolerations(claim: EvaluatedClaim, policies: Sequence[Compiled]) -> Iterator[Violation]:
    """Yield one violation for each toleration and pattern, as on pods. Taints of devices have the grammar
    of those of nodes (k8s.io/api/resource/v1)."""
    forbidden = [(pattern, c.id) for c in policies for pattern in c.policy.require.forbid_tolerations]
    for part in claim.parts:
        for i, toleration in enumerate(part.choice.read_tolerations() if forbidden else ()):
            yield from (_forbidden(part, i, pattern, policy) for pattern, policy in forbidden if may_tolerate(toleration, pattern))


def _forbidden(part: ClaimPart, i: int, pattern: TolerationPattern, policy: str) -> Violation:
    return Violation(
        code="BERTH-131",
        found=phrase("of claim", index=i, request=part.where, taint=str(pattern)),
        advice=phrase("remove that"),
        rule=TOLERATIONS,
        fields=at_field(FORBID, (policy,)),
    )
