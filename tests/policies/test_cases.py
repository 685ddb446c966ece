"""Every golden case: its outcome to the letter, every statement that holds of all, and what all of them together show.

They are in one file so that one process builds the world of each case, once.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from typing import get_args

import pytest

from analysis.admission.namespace_limits import QUOTA_CODE, RANGE_CODE
from catalog.shapes.structs import Struct
from cli.policy_cases.outcome import PARTS
from policies.fixes import FixKind
from policies.messages import OF_EDITS, TABLE
from policies.objects import definition
from policies.verdict import Verdict, Violation
from tests.support.cases import golden, golden_workloads, statements
from tests.support.cases.golden import Case
from tests.support.cases.golden_workloads import WorkloadCase

REWRITE = os.environ.get("BERTH_WRITE_CASES") == "1"
ADVICE = (
    "if this is intended, BERTH_WRITE_CASES=1 python -m pytest tests/policies/test_cases.py rewrites the part under expect:; read the diff"
)
CASES = (*golden.cases(), *golden.claim_cases())
DENIALS = [code for code, row in TABLE.items() if row.kind == "denial"]
NO_FIELD = {
    "BERTH-113": "no setting allows a GPU and a slice in one container: it is denied under any policy",
    "BERTH-114": "no setting allows a misspelt name: it is denied under any policy",
    "BERTH-115": "no setting makes a slice exist: it is denied under any policy",
    "BERTH-151": "an annotation that can't be read is denied under any policy",
}
NO_FIELD_SOMETIMES = {
    "BERTH-118": "a claim without a name, which the API server refuses",
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
NO_FIX = {
    "BERTH-116": "a claim carries no fixes",
    "BERTH-122": "the policies contradict one another, not the pod",
    "BERTH-123": "another webhook changed what Berth wrote",
    "BERTH-127": "a claim carries no fixes",
}
NO_FIX_SOMETIMES = {
    "BERTH-102": "only the author knows what an unreadable amount means",
    "BERTH-103": "only the author knows how much cpu or memory is needed",
    "BERTH-111": "what a claim requests is not in the pod",
    "BERTH-112": "the same",
    "BERTH-117": "other schedulers read a fraction of other names",
    "BERTH-118": "what a claim requests is not in the pod, and an update keeps what it removes",
    "BERTH-121": "no device of the pod's vendor is allowed",
    "BERTH-126": "a claim's class is not in the pod",
    "BERTH-131": "a claim carries no fixes",
    "BERTH-133": "the policies contradict one another, not the pod",
    "BERTH-144": "the workload says the queue, or the policies contradict one another",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_keeps_every_statement(case: Case) -> None:
    """Edits, sentences and would-be effects are those written out, and each statement of ``tests.support.cases.statements`` holds."""
    decided = golden.decide(case)
    breaches = statements.breaches(decided)
    outcome = dict(decided.decision.outcome)
    if REWRITE and outcome != case.expected:
        golden.rewrite(case, outcome)
    else:
        assert outcome == case.expected, "\n".join([ADVICE, *breaches])
    assert breaches == []


@pytest.mark.parametrize("case", golden_workloads.cases(), ids=lambda case: case.path.stem)
def test_a_case_of_a_workload_keeps_every_statement(case: WorkloadCase) -> None:
    """What its author is told is written out to the letter, and each statement about sentences holds."""
    verdict = golden_workloads.verdict(case)
    assert [str(remark) for remark in verdict.remarks] == case.expected
    assert statements.sentence_breaches(verdict) == []


def test_a_case_file_says_its_outcome() -> None:
    """No case is without an ``expect:``, which an empty file of a hurried author would be."""
    assert [case.name for case in CASES if golden.MARK not in case.path.read_text()] == []


# --- all cases together ------------------------------------------------------------------------------------------------


def verdicts() -> list[Verdict]:
    return [*(golden.decide(case).verdict for case in CASES), *map(golden_workloads.verdict, golden_workloads.cases())]


@pytest.fixture(scope="module")
def violations() -> Mapping[str, list[Violation]]:
    """Code -> every denial with it."""
    by_code: dict[str, list[Violation]] = {code: [] for code in DENIALS}
    for violation in (violation for verdict in verdicts() for violation in statements.violations(verdict)):
        by_code[violation.code].append(violation)
    return by_code


def test_every_code_is_said_in_some_case(violations: Mapping[str, list[Violation]]) -> None:
    """A sentence that no case shows has been read by nobody. Of the limits of namespaces commands alone know: their tests show those."""
    remarked = {remark.code for verdict in verdicts() for remark in statements.remarks(verdict)}
    said = {code for code, violations_ in violations.items() if violations_} | remarked | {QUOTA_CODE, RANGE_CODE}
    assert [code for code, row in TABLE.items() if row.kind != "notice" and code not in said] == []
    assert remarked & set(OF_EDITS)


def test_every_part_of_an_outcome_comes_in_some_case() -> None:
    """All but one: of our own policies none denies at /validate what it edited."""
    decided = [golden.decide(case) for case in CASES]
    assert {part for each in decided for part in each.decision.outcome} == set(PARTS) - {"validate"}
    assert sum(len(statements.policies_named(each)) for each in decided) > 200


def test_a_denial_names_the_fields_of_policies(violations: Mapping[str, list[Violation]]) -> None:
    """Of the policies that it names, and by names that a policy has; the codes without one have a reason."""
    assert unexplained(violations, "fields", NO_FIELD, NO_FIELD_SOMETIMES) == []
    named = ((denial, *name) for denials in violations.values() for denial in denials for name in denial.fields)
    assert [str(denial) for denial, policy, field in named if policy not in denial.policies or not is_field(policy, field)] == []


def unexplained(violations: Mapping[str, list[Violation]], part: str, always: Mapping[str, str], sometimes: Mapping[str, str]) -> list[str]:
    """Return the codes whose denials lack a part for no reason, or have it in spite of one."""
    lacking = {code: [getattr(denial, part) for denial in denials].count(()) for code, denials in violations.items()}
    return [
        f"{code}: {number} of {len(violations[code])} have no {part}"
        for code, number in lacking.items()
        if bool(number) != (code in always or code in sometimes) or (code in always and number < len(violations[code]))
    ]


def is_field(policy: str, name: str) -> bool:
    """Return whether the kind of a policy has a field."""
    root, *path = name.split(".")
    shape: object = next(spec for kind, spec in definition.SPECS.items() if kind == policy.partition("/")[0])
    for part in path:
        field = next((each for each in shape.fields if each.name == part), None) if isinstance(shape, Struct) else None
        if field is None:
            return False
        shape = field.shape
    return root == "spec"


def test_a_denial_names_the_value_that_it_is_about(violations: Mapping[str, list[Violation]]) -> None:
    """By its path in the pod; the codes without one have a reason."""
    assert unexplained(violations, "path", NO_VALUE, NO_VALUE_SOMETIMES) == []


def test_a_denial_carries_its_fixes(violations: Mapping[str, list[Violation]]) -> None:
    """As plain data, for any process, and so do remarks; the codes without one have a reason."""
    assert unexplained(violations, "fixes", NO_FIX, NO_FIX_SOMETIMES) == []
    fixes = {fix for denials in violations.values() for denial in denials for fix in denial.fixes}
    fixes |= {fix for verdict in verdicts() for remark in statements.remarks(verdict) for fix in remark.fixes}
    assert pickle.loads(pickle.dumps(fixes)) == fixes
    assert {fix.kind for fix in fixes} == set(get_args(FixKind))


def test_too_many_gpus_are_told_with_the_field_that_bounds_them(violations: Mapping[str, list[Violation]]) -> None:
    """The one that somebody who asks why needs first."""
    violation = next(each for each in violations["BERTH-111"] if each.path)
    assert {field for _, field in violation.fields} == {"spec.require.gpusPerPod.max"}
    assert violation.path[-3:-1] == ("resources", "limits")
