"""Rules between the fields of one struct of the definition.

Each rule yields (path inside the struct, what is wrong). The docstrings of the rules are their lines in
docs/reference.md. ``IN_CEL`` has each rule once more, for the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from catalog.shapes.structs import Rule
from kube import duration
from kube.duration import format_duration
from kube.tree import Path
from policies import policy
from policies.objects.field_types import Cel, Kind, Reason

Given = Mapping[str, Any]
Wrong = Iterator[tuple[Path, str]]
_AUTHORS_WRITE = "because authors choose what it matches; move require to a policy that matches by namespaceSelector or gpus"
IN_CEL: dict[Rule, tuple[Cel, ...]] = {}
"""The rules in CEL. In a CRD an empty ``require`` counts as one: it requires nothing, and testing for that
in CEL would name each of its fields."""


def _in_cel(
    rule: str, message: str, field: str = "", reason: Reason = "FieldValueInvalid", kinds: tuple[Kind, ...] = ()
) -> Callable[[Rule], Rule]:
    """Return the decorator that gives a rule one of its forms in CEL."""
    cel = Cel(rule=rule, message=message, field=field, reason=reason, kinds=kinds)

    def register(between: Rule) -> Rule:
        IN_CEL[between] = (cel, *IN_CEL.get(between, ()))
        return between

    return register


def _authors_write(name: str) -> Callable[[Rule], Rule]:
    return _in_cel(
        rule=f"!has(self.require) || !has(self.match) || !has(self.match.{name})",
        message=f"a ClusterGPUPolicy with require cannot have {name}, {_AUTHORS_WRITE}",
        field=f".match.{name}",
        reason="FieldValueForbidden",
        kinds=("ClusterGPUPolicy",),
    )


@_in_cel(
    rule="!has(self.min) || !has(self.max) || self.min <= self.max",
    message="min is greater than max; no value is between them",
)
def min_below_max(given: Given, kind: str) -> Wrong:
    """`min` must not exceed `max`, here and in every other `{min, max}`."""
    if "min" in given and "max" in given and given["min"] > given["max"]:
        yield (), f"min {given['min']} is greater than max {given['max']}; no value is between them"


@_in_cel(
    rule="!has(self.min) || !has(self.max) || "
    + " || ".join(f"self.{name} == '' || !self.{name}.matches(r'{duration.IN_ORDER}')" for name in ("min", "max"))
    + " || duration(self.min) <= duration(self.max)",
    message="min is longer than max; no value is between them",
)
def shortest_below_longest(given: Given, kind: str) -> Wrong:
    """`min` must not exceed `max`."""
    if "min" in given and "max" in given and given["min"] > given["max"]:
        yield (
            (),
            f"min {format_duration(given['min'])} is longer than max {format_duration(given['max'])}; no value is between them",
        )


@_in_cel(
    rule="!has(self.__in__) || !has(self.notIn) || self.__in__.exists(name, !(name in self.notIn))",
    message="no name is left: notIn has every name of in",
)
def something_is_left(given: Given, kind: str) -> Wrong:
    """`notIn` takes precedence over `in`. At least one name of `in` must remain."""
    if "in_" in given and not set(given["in_"]) - set(given.get("not_in", ())):
        yield (), "no name is left: notIn has every name of in"


@_in_cel(
    rule="!(self.operator in ['In', 'NotIn']) || has(self.values) && self.values.size() > 0",
    message="In and NotIn must have at least one value; write values: [research]",
    field=".values",
    reason="FieldValueRequired",
)
@_in_cel(
    rule="!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0",
    message="Exists and DoesNotExist take no values; remove them",
    field=".values",
    reason="FieldValueForbidden",
)
def values_fit_operator(given: Given, kind: str) -> Wrong:
    """`In` and `NotIn` need values; `Exists` and `DoesNotExist` take none."""
    operator, values = given.get("operator"), given.get("values", ())
    if operator in ("In", "NotIn") and not values:
        yield ("values",), f"{operator} must have at least one value; write values: [research]"
    if operator in ("Exists", "DoesNotExist") and values:
        yield ("values",), f"{operator} takes no values; remove them"


@_in_cel(
    rule="!has(self.max) || !has(self.oneOf) || self.oneOf.exists(count, count <= self.max)",
    message="no number is left: every number of oneOf is greater than max",
)
def some_count_is_left(given: Given, kind: str) -> Wrong:
    """At least one number of `oneOf` must not exceed `max`."""
    if "max" in given and "one_of" in given and min(given["one_of"]) > given["max"]:
        yield (), f"no number is left: every number of oneOf is greater than max {given['max']}"


@_authors_write("podSelector")
@_authors_write("workloads")
def authors_do_not_choose(given: Given, kind: str) -> Wrong:
    """A ClusterGPUPolicy with `require` cannot have `match.podSelector` or `match.workloads`, because authors choose labels and owners."""
    if kind != "ClusterGPUPolicy" or given.get("require", policy.Require()) == policy.Require():
        return
    match, _ = given.get("match", (policy.Match(), ()))
    there = {"podSelector": match.pod_selector is not None, "workloads": bool(match.workloads)}
    for name in (name for name, given_here in there.items() if given_here):
        yield (
            ("match", name),
            f"a ClusterGPUPolicy with require cannot have {name}, {_AUTHORS_WRITE}",
        )


@_in_cel(
    rule="!has(self.migProfiles) || has(self.sharing) && 'MIG' in self.sharing",
    message="only nodes that share by MIG have slices; write sharing: [MIG]",
    field=".migProfiles",
    reason="FieldValueForbidden",
)
def profiles_need_mig(given: Given, kind: str) -> Wrong:
    """`migProfiles` requires `MIG` in `sharing`."""
    if given.get("mig_profiles") and "MIG" not in given.get("sharing", ()):
        yield ("migProfiles",), "only nodes that share by MIG have slices; write sharing: [MIG]"


@_in_cel(
    rule="!has(self.topology) || has(self.kueue)",
    message="only Kueue reads it; add kueue: QUEUE, or remove it",
    field=".topology",
    reason="FieldValueForbidden",
)
def topology_needs_kueue(given: Given, kind: str) -> Wrong:
    """Set `topology` only with `kueue`: no other queue system reads a topology from a workload."""
    if "topology" in given and "kueue" not in given:
        yield ("topology",), "only Kueue reads it; add kueue: QUEUE, or remove it"
