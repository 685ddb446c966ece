"""Tolerations: a pod that requests an accelerator tolerates the taints of the nodes that have it.

Reads   spec.tolerations, the accelerators requested, the chosen node template, the capacity types that are
        left
Writes  spec.tolerations (adds only): accelerator taints, the taint of the architecture that alone is left,
        the template's taints, ``default.tolerate``, and
        spot taints only where a capacity was named and the capacity types that are left include spot
Checks  ``require.tolerations.forbid``: on CREATE every toleration, on UPDATE those that the old pod lacks or
        has for a shorter time
Never   repeats what is covered, tolerates a key of the catalog's ``never_tolerate``, changes what the author
        wrote
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from math import inf
from typing import Any

from kube.pod import NODE_NAME, Pod
from kube.taints import Taint, TolerationPattern, covers, may_tolerate
from kube.tree import Raw
from policies.fixes import leave_out
from policies.messages import At, Phrase, cut_text, phrase
from policies.planning.affinity_terms import rows_left
from policies.planning.plan import Plan
from policies.planning.requirements import FORBID, grants
from policies.request import Request
from policies.verdict import Edit, Remark, Violation, at_field

NAME = "tolerations"

_Wanted = tuple[Raw, tuple[str, ...]]
_Identity = tuple[str, str, str, str]
"""key, operator, value, effect"""


def mutate(request: Request, plan: Plan) -> Iterator[Edit | Remark]:
    """Append each wanted toleration that nothing covers yet; a remark tells of one that may not be added."""
    if not plan.actor.tolerations or (plan.actor.by_driver and not plan.vendors):
        return
    kept_tolerations = list(plan.pod.tolerations)
    for wanted in _wanted(plan):
        if isinstance(wanted, Remark):
            yield wanted
            continue
        toleration, policies = wanted
        if _never(toleration["key"], plan.snapshot.catalog.never_tolerate):
            yield Remark(code="BERTH-219", found=phrase("text", key=toleration["key"]), rule=NAME, policies=policies)
        elif who := sorted(policy for pattern, policy in plan.settings.forbid if may_tolerate(toleration, pattern)):
            found = phrase("toleration", key=toleration["key"], policies=tuple(who))
            yield Remark(code="BERTH-203", found=found, rule=NAME, policies=policies)
        elif not any(covers(t, toleration) for t in kept_tolerations):
            kept_tolerations.append(toleration)
            yield Edit(op="add", path=("spec", "tolerations", "-"), value=toleration, rule=NAME, policies=policies)


def _wanted(plan: Plan) -> Iterator[_Wanted | Remark]:
    settings = plan.settings
    if settings.taints:
        yield from _granted(plan, _of_taints(plan, spot=False), settings.taints)
        yield from _granted(plan, _of_architectures(plan), settings.taints)
    if plan.template is not None:
        for taint in plan.template.template.taints:
            yield toleration_of(TolerationPattern(key=taint.key, value=taint.value, effect=taint.effect)), plan.template_by
    for pattern, policies in settings.tolerate:
        yield toleration_of(pattern), policies
    if plan.spot:
        yield from _granted(plan, _of_taints(plan, spot=True), plan.spot)
    for pattern, policy in settings.ungranted:
        yield _ungranted(pattern, (policy,))


def _granted(plan: Plan, patterns: Iterator[TolerationPattern], policies: tuple[str, ...]) -> Iterator[_Wanted | Remark]:
    """Yield the tolerations of these patterns.

    GPUPolicies of the namespace may add only those that a ClusterGPUPolicy allows; a remark stands for each
    other one.
    """
    own = all(name.startswith("GPUPolicy/") for name in policies)
    for pattern in patterns:
        if own and not any(grants(g, pattern) for g in plan.settings.granted):
            yield _ungranted(pattern, policies)
        else:
            yield toleration_of(pattern), policies


def _ungranted(pattern: TolerationPattern, policies: tuple[str, ...]) -> Remark:
    return Remark(code="BERTH-218", found=phrase("text", taint=str(pattern), policies=policies), rule=NAME, policies=policies)


def _of_taints(plan: Plan, *, spot: bool) -> Iterator[TolerationPattern]:
    """Yield the catalog's taints for the requested vendors, or for spot, on the platforms in use, in the
    catalog's order."""
    catalog, snapshot, vendors = plan.snapshot.catalog, plan.snapshot, plan.vendors
    for entry in catalog.spot_taints if spot else catalog.taints:
        if (spot or entry.vendor in vendors) and snapshot.uses(entry.platforms):
            yield _pattern(entry.taint)


def _of_architectures(plan: Plan) -> Iterator[TolerationPattern]:
    """Yield the catalog's taints of nodes of an architecture, if the pod can run on no other node of their platforms."""
    for entry in plan.snapshot.catalog.arch_taints:
        cells = [cell for cell in plan.space.cells if cell.platform in entry.platforms and cell.offered and cell.leaves(plan.inside)]
        if cells and all(cell.lies_inside(cell.table.by_arch.get(entry.taint.value, 0) | ~rows_left(plan, cell)) for cell in cells):
            yield _pattern(entry.taint)


@lru_cache(maxsize=1024)
def _pattern(taint: Taint) -> TolerationPattern:
    """Return the pattern that tolerates a taint, whose value may be empty."""
    return TolerationPattern(key=taint.key, value=taint.value or None, effect=taint.effect)


def toleration_of(pattern: TolerationPattern) -> Raw:
    """Return the toleration in Kubernetes' form: Exists without a value, Equal with one (an empty value is
    Equal to "")."""
    out: dict[str, Any] = {"key": pattern.key, "operator": "Exists"}
    if pattern.value is not None:
        out |= {"operator": "Equal", "value": pattern.value}
    return out | ({"effect": pattern.effect} if pattern.effect else {})


@lru_cache(maxsize=1024)
def _never(key: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(key, glob) for glob in globs)


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield one violation per toleration that a policy forbids.

    The taints of a node that the pod names, bypassing the scheduler, are checked too.
    """
    yield from _check_node(plan)
    by_key = _by_key(plan)
    for i, toleration in enumerate(plan.pod.tolerations):
        yield from _forbidden(by_key, i, toleration)


def _check_node(plan: Plan) -> Iterator[Violation]:
    """Yield a violation per forbidden taint of the node that the pod names. Such a pod bypasses the
    scheduler and with it the node's taints; those that the policies forbid to tolerate still apply."""
    taints = plan.snapshot.cluster.taints.get(plan.pod.node_name, ()) if plan.settings.forbid else ()
    for pattern, policy in plan.settings.forbid if taints else ():
        if any(pattern.matches(taint) for taint in taints):
            yield Violation(
                code="BERTH-132",
                found=phrase("fact", path=At(NODE_NAME), taint=str(pattern)),
                advice=phrase("fix", path=At(NODE_NAME)),
                rule=NAME,
                path=NODE_NAME,
                fields=at_field(FORBID, (policy,)),
                fixes=leave_out(NODE_NAME),
            )


def check_update(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield the same for tolerations that the old pod lacks, or has for a shorter time.

    Kubernetes allows only tolerationSeconds of an existing toleration to change (validateOnlyAddedTolerations
    in pkg/apis/core/validation/validation.go).
    """
    old: dict[_Identity, float] = {}
    by_key = _by_key(plan)
    for toleration in Pod(request.old_pod or {}).tolerations:
        who = _identity(toleration)
        old[who] = max(_lasts(toleration), old.get(who, -inf))
    for i, toleration in enumerate(plan.pod.tolerations):
        if _lasts(toleration) > old.get(_identity(toleration), -inf):
            yield from _forbidden(by_key, i, toleration)


def _identity(toleration: Raw) -> _Identity:
    """Return what the toleration tolerates, in one form however it is written."""
    texts = [str(toleration.get(field) or "") for field in ("key", "operator", "value", "effect")]
    return texts[0], texts[1] or "Equal", texts[2], texts[3]


def _lasts(toleration: Raw) -> float:
    """Return tolerationSeconds, or infinity if it is not set."""
    seconds = toleration.get("tolerationSeconds")
    return seconds if isinstance(seconds, int) else inf


_Forbidden = Mapping[str, Sequence[tuple[TolerationPattern, str]]]
"""key -> patterns with the policy that forbids each; all patterns are under "\""""


def _by_key(plan: Plan) -> _Forbidden:
    found: dict[str, list[tuple[TolerationPattern, str]]] = {"": list(plan.settings.forbid)}
    for pattern, policy in plan.settings.forbid:
        found.setdefault(pattern.key, []).append((pattern, policy))
    return found


def _forbidden(by_key: _Forbidden, i: int, toleration: Raw) -> Iterator[Violation]:
    """Yield at most one violation: it names the first of several forbidden taints and all policies that
    forbid one."""
    key = toleration.get("key") or ""
    found = [pair for pair in by_key.get(key if isinstance(key, str) else "", ()) if may_tolerate(toleration, pair[0])]
    if found:
        path, policies = At(("spec", "tolerations", i)), tuple(dict.fromkeys(policy for _, policy in found))
        yield Violation(
            code="BERTH-131",
            found=phrase("fact", path=path, taint=str(found[0][0])),
            advice=phrase("remove path" if toleration.get("key") else "name keys", path=path),
            more=() if toleration.get("key") else (_tolerates_all(toleration),),
            rule=NAME,
            path=path.path,
            fields=at_field(FORBID, policies),
            fixes=leave_out(path.path),
        )


def _tolerates_all(toleration: Raw) -> Phrase:
    """Return what a toleration without a key tolerates."""
    effect = toleration.get("effect")
    return phrase("keyless of effect", effect=cut_text(str(effect), 20)) if effect else phrase("keyless")
