"""Tolerations: a pod that asks for an accelerator tolerates the taints of the nodes that have it.

Reads   spec.tolerations, the accelerators asked for, the chosen node template, the capacity that is left
Writes  spec.tolerations (adds only): accelerator taints, the template's taints, ``default.tolerate``, and spot's only
        where a capacity was named and what is left holds spot
Judges  ``require.tolerations.forbid``: on CREATE every toleration, on UPDATE those that the old pod lacks or has for less long
Never   repeats what is covered, tolerates a key of the catalog's ``never_tolerate``, changes what the author wrote
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from math import inf
from typing import Any

from policies import known_node
from policies.plan import Plan
from policies.pod import Pod, Raw
from policies.policy import TolerationPattern
from policies.request import Request
from policies.verdict import Edit, Violation
from policies.wishes import grants

NAME = "tolerations"
_Wanted = tuple[Raw, tuple[str, ...]]
_Identity = tuple[str, str, str, str]
"""key, operator, value, effect"""


def mutate(request: Request, plan: Plan) -> Iterator[Edit]:
    """One append per toleration that nothing covers yet."""
    if not plan.actor.tolerations or (plan.actor.by_driver and not plan.vendors):
        return
    standing = list(plan.pod.tolerations)
    for toleration, policies in _wanted(plan):
        if _never(plan, toleration["key"]):
            text = f"toleration {toleration['key']} is not added: that taint marks nodes which no workload may use"
            plan.remark("BERTH-219", text, NAME, policies)
        elif who := sorted(policy for pattern, policy in plan.wishes.forbid if tolerates(toleration, pattern)):
            plan.remark("BERTH-203", f"default toleration {toleration['key']} is not added: {' and '.join(who)} forbids it", NAME, policies)
        elif not any(covers(t, toleration) for t in standing):
            standing.append(toleration)
            yield Edit(op="add", path=("spec", "tolerations", "-"), value=toleration, rule=NAME, policies=policies)


def _wanted(plan: Plan) -> Iterator[_Wanted]:
    wishes = plan.wishes
    if wishes.taints:
        yield from _granted(plan, _of_taints(plan, spot=False), wishes.taints)
    if plan.template is not None:
        for taint in plan.template.template.taints:
            yield toleration_of(TolerationPattern(key=taint.key, value=taint.value, effect=taint.effect)), plan.template_by
    for pattern, policies in wishes.tolerate:
        yield toleration_of(pattern), policies
    if plan.spot:
        yield from _granted(plan, _of_taints(plan, spot=True), plan.spot)
    for pattern, policy in wishes.ungranted:
        _say_ungranted(plan, pattern, (policy,))


def _granted(plan: Plan, patterns: Iterator[TolerationPattern], policies: tuple[str, ...]) -> Iterator[_Wanted]:
    """A namespace's own policies bring in only what a ClusterGPUPolicy allows."""
    own = all(name.startswith("GPUPolicy/") for name in policies)
    for pattern in patterns:
        if own and not any(grants(g, pattern) for g in plan.wishes.granted):
            _say_ungranted(plan, pattern, policies)
        else:
            yield toleration_of(pattern), policies


def _say_ungranted(plan: Plan, pattern: TolerationPattern, policies: tuple[str, ...]) -> None:
    text = f"toleration {_named(pattern)} of {', '.join(policies)} is in no ClusterGPUPolicy's allow.tolerations: not added"
    plan.remark("BERTH-218", text, NAME, policies)


def _of_taints(plan: Plan, *, spot: bool) -> Iterator[TolerationPattern]:
    """The catalog's taints for the vendors asked for, on the platforms in use, in the catalog's order."""
    catalog, snapshot = plan.snapshot.catalog, plan.snapshot
    for entry in catalog.spot_taints if spot else catalog.taints:
        here = not entry.platforms or not snapshot.placed or any(p in snapshot.tables for p in entry.platforms)
        if here and (spot or entry.vendor in plan.vendors):
            taint = entry.taint
            yield TolerationPattern(key=taint.key, value=taint.value or None, effect=taint.effect)


def toleration_of(pattern: TolerationPattern) -> Raw:
    """As Kubernetes writes it: Exists without a value, Equal with one (an empty value is Equal to "")."""
    out: dict[str, Any] = {"key": pattern.key, "operator": "Exists"}
    if pattern.value is not None:
        out |= {"operator": "Equal", "value": pattern.value}
    return out | ({"effect": pattern.effect} if pattern.effect else {})


def covers(standing: Raw, wanted: Raw) -> bool:
    """Whether a toleration that stands tolerates all that ``wanted``, one of ours, does (v1.Toleration.ToleratesTaint).

    A toleration with tolerationSeconds holds only for a while, and does not cover; nor does one whose operator nobody knows.
    """
    if standing.get("tolerationSeconds") is not None:
        return False
    key, effect = standing.get("key") or "", standing.get("effect") or ""
    if effect and effect != wanted.get("effect"):
        return False
    if standing.get("operator") == "Exists":
        return key in ("", wanted["key"])
    return key == wanted["key"] and wanted["operator"] == "Equal" and _matches_value(standing, wanted["value"], unknown=False)


def _matches_value(toleration: Raw, value: str | None, *, unknown: bool) -> bool:
    """Whether a toleration that is not Exists tolerates a taint's value; of None, any value. ``unknown``: what an operator that
    nobody knows means."""
    operator, own = toleration.get("operator") or "Equal", toleration.get("value") or ""
    if operator == "Equal":
        return value in (None, own)
    return _compares(operator, own, value) if operator in _RANGES else unknown


_RANGES = ("Gt", "Lt")
"""KEP-5471: the taint's value is compared with the toleration's, both as int64 (k8s.io/api core/v1 toleration.go, 1.36)"""
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
"""content.IsDecimalInteger of k8s.io/apimachinery, no longer than an int64"""
_INT64 = range(-(2**63), 2**63)


def _compares(operator: str, own: str, value: str | None) -> bool:
    """What is no int64 is tolerated by none; where any value may stand, the one farthest out does."""
    bound = _int64(own)
    farthest = _INT64[-1] if operator == "Gt" else _INT64[0]
    found = farthest if value is None else _int64(value)
    if bound is None or found is None:
        return False
    return found > bound if operator == "Gt" else found < bound


@lru_cache(maxsize=4096)
def _int64(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) and int(text) in _INT64 else None


def _never(plan: Plan, key: str) -> bool:
    return any(fnmatchcase(key, glob) for glob in plan.snapshot.catalog.never_tolerate)


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """One violation per toleration that a policy forbids; a node named past the scheduler is judged by its taints."""
    yield from known_node.check_taints(plan)
    by_key = _by_key(plan)
    for i, toleration in enumerate(plan.pod.tolerations):
        yield from _forbidden(by_key, i, toleration)


def check_update(request: Request, plan: Plan) -> Iterator[Violation]:
    """The same of those that the old pod lacks, or has for a shorter time: Kubernetes lets tolerationSeconds alone be changed
    (validateOnlyAddedTolerations in pkg/apis/core/validation/validation.go)."""
    old: dict[_Identity, float] = {}
    by_key = _by_key(plan)
    for toleration in Pod(request.old_pod or {}).tolerations:
        who = _identity(toleration)
        old[who] = max(_lasts(toleration), old.get(who, -inf))
    for i, toleration in enumerate(plan.pod.tolerations):
        if _lasts(toleration) > old.get(_identity(toleration), -inf):
            yield from _forbidden(by_key, i, toleration)


def _identity(toleration: Raw) -> _Identity:
    """What it tolerates, however it is written."""
    said = [str(toleration.get(field) or "") for field in ("key", "operator", "value", "effect")]
    return said[0], said[1] or "Equal", said[2], said[3]


def _lasts(toleration: Raw) -> float:
    """tolerationSeconds; without it for ever."""
    seconds = toleration.get("tolerationSeconds")
    return seconds if isinstance(seconds, int) else inf


_Forbidden = Mapping[str, Sequence[tuple[TolerationPattern, str]]]
"""key -> patterns and who forbids each; all under "\""""


def _by_key(plan: Plan) -> _Forbidden:
    found: dict[str, list[tuple[TolerationPattern, str]]] = {"": list(plan.wishes.forbid)}
    for pattern, policy in plan.wishes.forbid:
        found.setdefault(pattern.key, []).append((pattern, policy))
    return found


def _forbidden(by_key: _Forbidden, i: int, toleration: Raw) -> Iterator[Violation]:
    """At most one violation: of several forbidden taints the first is named, with everybody who forbids one."""
    key = toleration.get("key") or ""
    found = [pair for pair in by_key.get(key if isinstance(key, str) else "", ()) if tolerates(toleration, pair[0])]
    if found:
        yield Violation(
            code="BERTH-131",
            fact=f"spec.tolerations[{i}] tolerates the taint {_named(found[0][0])}, which is forbidden here",
            fix=f"remove spec.tolerations[{i}]" if toleration.get("key") else f"name the keys that spec.tolerations[{i}] is for",
            detail="A toleration without a key tolerates every taint." if not toleration.get("key") else "",
            rule=NAME,
            policies=tuple(dict.fromkeys(policy for _, policy in found)),
        )


def tolerates(toleration: Raw, taint: TolerationPattern) -> bool:
    """Whether a toleration tolerates any taint of the pattern (unset value or effect: any; v1.Toleration.ToleratesTaint). One whose
    operator nobody knows may tolerate all values."""
    key, effect = toleration.get("key") or "", toleration.get("effect") or ""
    if effect and taint.effect and effect != taint.effect:
        return False
    if key not in ("", taint.key):
        return False
    return toleration.get("operator") == "Exists" or _matches_value(toleration, taint.value, unknown=True)


def _named(pattern: TolerationPattern) -> str:
    value = f"={pattern.value}" if pattern.value is not None else ""
    return f"{pattern.key}{value}" + (f":{pattern.effect}" if pattern.effect else "")
