"""Every refusal says, as data, which field of which policy asked for it, and which value of the pod it is about."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from policies.engine import evaluate
from policies.messages import TABLE
from policies.objects import definition
from policies.objects.field_types import Struct
from policies.verdict import Verdict, Violation
from tests.support.cases import golden, golden_claims

REFUSALS = [code for code, row in TABLE.items() if row.kind == "refusal"]
NO_FIELD = {
    "BERTH-113": "no setting allows a GPU and a slice in one container: it is refused under any policy",
    "BERTH-114": "no setting allows a misspelt name: it is refused under any policy",
    "BERTH-115": "no setting makes a slice exist: it is refused under any policy",
    "BERTH-151": "an annotation that can't be read is refused under any policy",
}
NO_FIELD_SOMETIMES = {
    "BERTH-152": "a template that no policy allows, or that is not there: no field is in the way, one is missing",
}
NO_VALUE = {
    "BERTH-116": "a claim's request has a name and no path in a pod",
    "BERTH-122": "the policies contradict one another, not the pod",
}
NO_VALUE_SOMETIMES = {
    "BERTH-111": "several amounts are added up, or a claim has no path in a pod",
    "BERTH-112": "the same",
    "BERTH-121": "several values contradict what is required together, or a resource's name does",
    "BERTH-127": "a claim has no path in a pod",
    "BERTH-126": "a claim's class has no path in a pod, and a device outside what is required may be in several containers",
    "BERTH-131": "a claim's toleration has no path in a pod",
    "BERTH-133": "the policies contradict one another, not the pod",
    "BERTH-144": "the policies contradict one another, not the pod",
}


@cache
def violations() -> dict[str, list[Violation]]:
    """The refusals of all golden cases by code, of pods and of claims."""
    judged = [case for case in golden.cases() if "bad" not in case.expected]
    verdicts = [evaluate(request, case.facts(request.namespace)) for case in judged for request in [case.request()]]
    verdicts += [golden_claims.verdict(case) for case in golden_claims.cases()]
    found: dict[str, list[Violation]] = {code: [] for code in REFUSALS}
    for one in (one for verdict in verdicts for one in _all(verdict)):
        found[one.code].append(one)
    return found


def _all(verdict: Verdict) -> Iterator[Violation]:
    yield from verdict.violations
    for would in verdict.would:
        yield from would.violations


@pytest.mark.parametrize("code", REFUSALS)
def test_a_refusal_names_the_fields_of_policies(code: str) -> None:
    """Of the policies that it names, and by names that a policy has; the codes without one have a reason."""
    found = violations()[code]
    without = [one for one in found if not one.fields]
    assert bool(without) == (code in NO_FIELD or code in NO_FIELD_SOMETIMES), [str(one) for one in without[:3]]
    assert code not in NO_FIELD or len(without) == len(found)
    assert [field for one in found for policy, field in one.fields if not _is_field(policy, field) or policy not in one.policies] == []


def _is_field(policy: str, name: str) -> bool:
    root, *path = name.split(".")
    shape: object = next(spec for kind, spec in definition.SPECS.items() if kind == policy.partition("/")[0])
    for part in path:
        field = next((one for one in shape.fields if one.name == part), None) if isinstance(shape, Struct) else None
        if field is None:
            return False
        shape = field.shape
    return root == "spec"


@pytest.mark.parametrize("code", REFUSALS)
def test_a_refusal_names_the_value_that_it_is_about(code: str) -> None:
    """By its path in the pod; the codes without one have a reason."""
    found = violations()[code]
    without = [one for one in found if not one.about]
    assert bool(without) == (code in NO_VALUE or code in NO_VALUE_SOMETIMES), [str(one) for one in without[:3]]
    assert code not in NO_VALUE or len(without) == len(found)


def test_too_many_gpus_are_told_with_the_field_that_bounds_them() -> None:
    """The one that somebody who asks why needs first."""
    one = next(one for one in violations()["BERTH-111"] if one.about)
    assert {field for _, field in one.fields} == {"spec.require.gpusPerPod.max"}
    assert one.about[-3:-1] == ("resources", "limits")
