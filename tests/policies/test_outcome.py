"""What one policy more would add to what comes of an object."""

from __future__ import annotations

from policies.messages import phrase
from policies.outcome import ObjectOutcome
from policies.policy import Policy
from policies.verdict import Edit, Remark, Violation

PATCH = ({"op": "add", "path": "/a", "value": 1},)


def edit(path: str, value: object) -> Edit:
    return Edit(op="add", path=(path,), value=value, rule="queue", policies=("p",))


def denial(policy: str) -> Violation:
    return Violation(code="BERTH-144", found=phrase("kueue"), advice=phrase("label"), rule="queue", policies=(policy,))


def test_only_what_is_new_is_told() -> None:
    """What is written anyway is left out; what would not be written any more is told."""
    now = ObjectOutcome(edits=(edit("same", 1), edit("changed", 1), edit("lost", 1)))
    then = ObjectOutcome(edits=(edit("same", 1), edit("changed", 2), edit("new", 1)), patch=PATCH)
    found = then.audit_outcomes(Policy(name="p"), "Audit", now)
    assert [(one.path, one.value) for one in found.edits] == [(("changed",), 2), (("new",), 1)]
    assert [one.path for one in found.dropped] == [("lost",)]
    assert (found.policy, found.mode, found.patch) == ("ClusterGPUPolicy/p", "Audit", PATCH)


def test_a_denial_edits_nothing() -> None:
    """It is told unless policies in force deny for the same, with the remarks of this policy alone."""
    own = Remark(code="BERTH-227", found=phrase("queue not required"), policies=("ClusterGPUPolicy/p",))
    others = Remark(code="BERTH-227", found=phrase("queue not required"), policies=("ClusterGPUPolicy/q",))
    then = ObjectOutcome((edit("new", 1),), (denial("ClusterGPUPolicy/p"),), (own, others), PATCH)
    found = then.audit_outcomes(Policy(name="p"), "Warn", ObjectOutcome(edits=(edit("lost", 1),)))
    assert (found.edits, found.dropped, found.patch) == ((), (), ())
    assert (found.violations, found.remarks) == (then.violations, (own,))
    assert then.audit_outcomes(Policy(name="p"), "Warn", then).violations == ()
