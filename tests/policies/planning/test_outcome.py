"""What each policy in Audit or Warn would add to those that are enforced."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policies.messages import phrase
from policies.offers.constraints import Compiled
from policies.planning.outcome import Policies, PolicyOutcome, audit_outcomes, enforced_of, most_audited
from policies.policy import Policy
from policies.verdict import LARGE, MOST_AUDITED, AuditOutcome, Edit, Remark, Violation

PATCH = ({"op": "add", "path": "/a", "value": 1},)


def edit(path: str, value: object) -> Edit:
    return Edit(op="add", path=(path,), value=value, rule="queue", policies=("p",))


def denial(policy: str) -> Violation:
    return Violation(code="BERTH-144", found=phrase("kueue"), advice=phrase("label"), rule="queue", policies=(policy,))


def compiled(name: str, mode: Any) -> Compiled:
    policy = Policy(name=name, mode=mode)
    return Compiled(policy=policy, mode=mode, require=(), require_long=None, machine=(), capacity=None, capacity_long=None)


def outcome_of(then: PolicyOutcome, now: PolicyOutcome) -> AuditOutcome:
    """Return what the policy ``p`` adds if ``then`` comes of it and the enforced policy, and ``now`` of that alone."""
    matched = (compiled("enforced", "Enforce"), compiled("p", "Audit"))
    (outcome,), _ = audit_outcomes(matched, now, lambda policies: then if len(policies) == 2 else now, 1)
    return outcome


def test_only_what_is_new_is_told() -> None:
    """What is written anyway is left out; what would not be written any more is told."""
    now = PolicyOutcome(edits=(edit("same", 1), edit("changed", 1), edit("lost", 1)))
    outcome = outcome_of(PolicyOutcome(edits=(edit("same", 1), edit("changed", 2), edit("new", 1)), patch=PATCH), now)
    assert [(added.path, added.value) for added in outcome.edits] == [(("changed",), 2), (("new",), 1)]
    assert [dropped.path for dropped in outcome.dropped] == [("lost",)]
    assert (outcome.policy, outcome.mode, outcome.patch) == ("ClusterGPUPolicy/p", "Audit", PATCH)


def test_an_item_is_dropped_though_another_is_appended_to_its_list() -> None:
    """Items of a list differ by their keys; an edit with another operation is another edit."""

    def appended(key: str) -> Edit:
        return Edit(op="add", path=("spec", "tolerations", "-"), value={"key": key}, rule="tolerations", policies=("p",))

    outcome = outcome_of(
        PolicyOutcome(edits=(appended("b"), edit("a", 1)._replace(op="replace"))), PolicyOutcome(edits=(appended("a"), edit("a", 1)))
    )
    assert [dropped.value for dropped in outcome.dropped] == [{"key": "a"}]
    assert [added.op for added in outcome.edits] == ["add", "replace"]


def test_a_denial_edits_nothing() -> None:
    """It is told unless policies in force deny for the same, with the remarks of this policy alone."""
    own = Remark(code="BERTH-227", found=phrase("queue not required"), policies=("ClusterGPUPolicy/p",))
    others = Remark(code="BERTH-227", found=phrase("queue not required"), policies=("ClusterGPUPolicy/q",))
    then = PolicyOutcome((edit("new", 1),), (denial("ClusterGPUPolicy/p"),), (own, others), PATCH)
    outcome = outcome_of(then, PolicyOutcome(edits=(edit("lost", 1),)))
    assert (outcome.edits, outcome.dropped, outcome.patch) == ((), (), ())
    assert (outcome.violations, outcome.remarks) == (then.violations, (own,))
    assert outcome_of(then, then).violations == ()


@given(st.lists(st.sampled_from(["Enforce", "Audit", "Warn"]), max_size=40), st.integers(0, 200))
def test_each_policy_is_evaluated_alone_on_top_of_the_enforced_ones(modes: list[Any], size: int) -> None:
    """In order, at most as many as the size allows; the others are counted."""
    matched = tuple(compiled(f"p{number}", mode) for number, mode in enumerate(modes))
    evaluated: list[Policies] = []

    def evaluate(policies: Policies) -> PolicyOutcome:
        evaluated.append(policies)
        return PolicyOutcome()

    outcomes, uncounted = audit_outcomes(matched, PolicyOutcome(), evaluate, size)
    audited = [policy for policy in matched if policy.mode != "Enforce"]
    assert len(outcomes) + uncounted == len(audited)
    assert [outcome.policy for outcome in outcomes] == [policy.policy.id for policy in audited[: len(outcomes)]]
    assert evaluated == [tuple(c for c in matched if c.mode == "Enforce" or c is policy) for policy in audited[: len(outcomes)]]
    assert len(outcomes) <= most_audited(size, len(enforced_of(matched))) <= MOST_AUDITED


def test_more_is_audited_on_smaller_objects() -> None:
    """All sixteen up to the largest ordinary pod, and always one."""
    assert most_audited(LARGE, 8) == MOST_AUDITED > most_audited(LARGE, 16) > most_audited(LARGE * 9, 8) == 1
