"""What is said of a stored pod, held against what policies did to it when it was created, or would have done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonpatch
from hypothesis import given

from analysis.audit.audited_decision import AuditedDecision, audit_pod
from analysis.audit.stored_pod import stored
from kube.pod import OF_NO_CLASS
from policies.engine import evaluate
from policies.patch.record import APPLIED
from policies.policy import Default, Policy, PolicySet, Require
from policies.request import Request
from policies.state.snapshot import NamespaceFacts
from policies.verdict import AuditOutcome, Mode
from tests.analysis.audit.created import WIDE, Raw, as_stored, created
from tests.support.generators.random_cluster import CLUSTER
from tests.support.generators.random_worlds import catalog
from tests.support.generators.strategies import Case, audited, examples
from tests.support.snapshots import build


@given(audited())
@examples(60, 10_000)
def test_what_policies_in_audit_would_do_is_said_of_pods_that_others_have_changed(case: Case) -> None:
    """Of a pod as policies in Enforce have made it: the same policies, edits, denials and patch as when it was created."""
    found = created(case)
    if found is None:
        return
    request, verdict, facts = found
    after = jsonpatch.apply_patch(request.pod, list(verdict.patch))
    if not after["metadata"].get("annotations", {}).get(APPLIED, "[]").startswith("["):
        return  # the record is cut
    judged = audit_pod(stored(as_stored(after, request.namespace, "node-bare"), WIDE), facts)
    assert (judged is not None) == verdict.is_evaluated
    if judged is not None:
        wanted = [w for w in verdict.audit_outcomes if w.edits or w.dropped or w.violations]
        assert [compared(w) for w in judged.audit_outcomes] == [compared(w) for w in wanted]
        assert (judged.matched, judged.uncounted) == (verdict.matched, verdict.uncounted)


RECORD = "/berth.dev~1applied"


def compared(outcome: AuditOutcome) -> tuple[object, ...]:
    """Return what is compared of a policy: all but two things that only a stored pod shows. These are the removal of what the API server
    wrote for a pod without a class, and the record of edits, which names an Audit policy beside an enforced policy with the same value."""
    edits = [edit for edit in outcome.edits if edit.path[-1] not in OF_NO_CLASS]
    patch = [step for step in outcome.patch if step["path"].rpartition("/")[2] not in OF_NO_CLASS and not step["path"].endswith(RECORD)]
    return outcome.policy, outcome.mode, edits, outcome.violations, patch


@given(audited())
@examples(60, 10_000)
def test_a_pod_that_was_admitted_while_berth_was_away_is_found(case: Case) -> None:
    """It lacks just those edits that it would have got; one that got them lacks none."""
    found = created(case)
    if found is None:
        return
    request, verdict, facts = found
    away = audit_pod(stored(as_stored(request.pod, request.namespace), WIDE), facts)
    if away is None:
        return
    assert away.missing == tuple(edit for edit in verdict.edits if edit.path[-1] not in OF_NO_CLASS)  # the API server's, not looked at
    assert away.violations == verdict.violations
    if not verdict.violations:
        there = audit_pod(stored(as_stored(jsonpatch.apply_patch(request.pod, list(verdict.patch)), request.namespace), WIDE), facts)
        assert there is not None
        assert there.missing == ()


def gpu_pod(**metadata: Any) -> Raw:
    amounts = {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "2"}}
    spec = {"containers": [{"name": "c", "resources": amounts}], "terminationGracePeriodSeconds": 30}
    return {"metadata": metadata, "spec": spec}


def facts_of(*policies: Policy) -> NamespaceFacts:
    return build(PolicySet(policies=policies), catalog(), platforms=("karpenter-aws",), cluster=CLUSTER).facts_for("default")


def policy(name: str, mode: Mode, **parts: Any) -> Policy:
    return Policy(name=name, mode=mode, **parts)


def judged(pod: Raw, facts: NamespaceFacts) -> AuditedDecision:
    found = audit_pod(stored(pod, WIDE), facts)
    assert found is not None
    return found


def test_a_pod_that_already_is_as_a_policy_in_audit_wants_it_is_not_reported() -> None:
    """The policy was in Enforce when the pod was created, or the author wrote the same."""
    enforced = policy("grace", "Enforce", default=Default(grace=600))
    verdict = evaluate(Request(namespace="default", pod=gpu_pod()), facts_of(enforced))
    pod = as_stored(jsonpatch.apply_patch(gpu_pod(), list(verdict.patch)), "default", "node-t4")
    assert judged(pod, facts_of(replace(enforced, mode="Audit"))).audit_outcomes == ()
    assert judged(as_stored(gpu_pod(), "default"), facts_of(replace(enforced, mode="Audit"))).audit_outcomes != ()


def test_a_default_that_keeps_another_from_acting_is_a_change() -> None:
    """Two that differ set nothing: of the pod that has the one, the other would take it away, though it writes nothing itself."""
    paid, spot = (
        policy("paid", "Enforce", default=Default(capacity=("on-demand",))),
        policy("spot", "Audit", default=Default(capacity=("spot",))),
    )
    verdict = evaluate(Request(namespace="default", pod=gpu_pod()), facts_of(paid, spot))
    pod = as_stored(jsonpatch.apply_patch(gpu_pod(), list(verdict.patch)), "default", "node-p5")
    (audit_outcomes,) = judged(pod, facts_of(paid, spot)).audit_outcomes
    assert (audit_outcomes.policy, audit_outcomes.edits, audit_outcomes.patch) == ("ClusterGPUPolicy/spot", (), ())
    assert [edit.rule for edit in audit_outcomes.dropped] == ["node_affinity"]


def test_another_value_in_place_of_what_is_enforced_drops_nothing() -> None:
    """A longer grace period, and a narrower place: they are written, not kept from being written."""
    enforced = policy("a", "Enforce", default=Default(grace=600), require=Require(capacity=("on-demand", "spot")))
    narrower = policy("b", "Audit", default=Default(grace=1200), require=Require(capacity=("spot",)))
    (audit_outcomes,) = evaluate(Request(namespace="default", pod=gpu_pod()), facts_of(enforced, narrower)).audit_outcomes
    assert {edit.rule for edit in audit_outcomes.edits} == {"checkpoint_grace", "node_affinity"}
    assert audit_outcomes.dropped == ()


def test_a_running_pod_that_no_longer_fits_is_found() -> None:
    """By the node that it runs on: it asked for no capacity, and runs on spot, which is required no more."""
    required = policy("paid", "Enforce", require=Require(capacity=("on-demand",)))
    assert [v.code for v in judged(as_stored(gpu_pod(), "default", "node-t4"), facts_of(required)).violations] == ["BERTH-124"]
    assert judged(as_stored(gpu_pod(), "default", "node-p5"), facts_of(required)).violations == ()


def test_a_pod_without_accelerators_is_not_judged() -> None:
    """Nothing is said of it."""
    pod = as_stored({"metadata": {}, "spec": {"containers": [{"name": "c"}]}}, "default")
    assert audit_pod(stored(pod, WIDE), facts_of(policy("a", "Audit", default=Default(grace=600)))) is None
