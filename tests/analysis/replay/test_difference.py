"""What is decided otherwise, of decisions as they are made and as they are recorded."""

from __future__ import annotations

from random import Random

from analysis import admission_preview
from analysis.replay.creations import Creation, creation
from analysis.replay.decision import AuditedChange, DenialReason, RecordedDecision, of_admitted
from analysis.replay.difference import Side, difference
from analysis.replay.effects import EditEffect
from kube.pod import Pod
from policies.rules.requests_match_limits import undecodable
from tests.cli.replaying.events import decided, event
from tests.support.counts import count
from tests.support.generators.random_pods import request
from tests.support.generators.random_worlds import catalog, world

TOLERATION, GRACE = EditEffect(("spec", "tolerations", "-"), '{"key":"a"}'), EditEffect(("spec", "terminationGracePeriodSeconds"), "600")
DENIED = RecordedDecision(denied=True, reasons=(DenialReason("BERTH-111", "device_counts", ("ClusterGPUPolicy/few",)),))


def test_denied_now_is_due_to_those_that_deny() -> None:
    """And admitted now to those that denied then."""
    admitted = RecordedDecision(effects={GRACE: ("ClusterGPUPolicy/grace",)})
    found = difference(admitted, DENIED)
    assert found is not None
    assert (found.turn, found.policies) == ("newly-denied", ("ClusterGPUPolicy/few",))
    assert (found.then, found.now) == (Side("edited"), Side("denied", ("BERTH-111",)))
    back = difference(DENIED, admitted)
    assert back is not None
    assert (back.turn, back.policies) == ("newly-admitted", ("ClusterGPUPolicy/few",))


def test_other_reasons_are_told_by_code_and_rule_alone() -> None:
    """Who asks for the same, and how it is worded, decides nothing."""
    other = RecordedDecision(denied=True, reasons=(DenialReason("BERTH-101", "requests_match_limits", ("ClusterGPUPolicy/b",)),))
    renamed = RecordedDecision(denied=True, reasons=(DenialReason("BERTH-111", "device_counts", ("ClusterGPUPolicy/renamed",)),))
    unknown = RecordedDecision(denied=True, reasons=None)
    assert difference(DENIED, renamed) is None
    assert difference(unknown, DENIED) is None
    found = difference(DENIED, other)
    assert found is not None
    assert (found.turn, found.policies) == ("other-reasons", ("ClusterGPUPolicy/b", "ClusterGPUPolicy/few"))


def test_other_edits_are_due_to_both_sides_and_show_what_differs() -> None:
    """The edits that both make are left out."""
    then = RecordedDecision(effects={TOLERATION: ("ClusterGPUPolicy/a",), GRACE: ("ClusterGPUPolicy/b",)})
    now = RecordedDecision(effects={TOLERATION: ("ClusterGPUPolicy/c",)})
    found = difference(then, now)
    assert found is not None
    assert (found.turn, found.policies) == ("other-edits", ("ClusterGPUPolicy/b",))
    assert (found.then, found.now) == (Side("edited", (), ("terminationGracePeriodSeconds",)), Side("edited"))
    assert difference(RecordedDecision(effects=None), now) is None


def test_what_an_audited_policy_would_do_is_compared_last() -> None:
    """And only as far as the record goes: it may lack policies, patches, or all of it."""
    audit_outcomes = AuditedChange(frozenset({"BERTH-111"}), frozenset())
    then, now = RecordedDecision(audit_outcomes={"ClusterGPUPolicy/a": audit_outcomes}), RecordedDecision(audit_outcomes={})
    found = difference(then, now)
    assert found is not None
    assert (found.turn, found.policies) == ("other-would", ("ClusterGPUPolicy/a",))
    assert (found.then, found.now) == (Side("would deny", ("BERTH-111",)), Side("nothing"))
    assert difference(RecordedDecision(audit_outcomes=None), now) is None
    assert (
        difference(
            RecordedDecision(audit_outcomes={}, whole=False), RecordedDecision(audit_outcomes={"ClusterGPUPolicy/z": audit_outcomes})
        )
        is None
    )
    counted = AuditedChange(frozenset(), None)
    written = AuditedChange(frozenset(), frozenset({GRACE}))
    assert difference(RecordedDecision(audit_outcomes={"a": counted}), RecordedDecision(audit_outcomes={"a": written})) is None


def test_a_record_differs_from_what_other_policies_decide_as_the_decision_itself_does() -> None:
    """What the API server's audit log holds of a decision loses nothing that is compared: of generated pods under two generated sets of
    policies in every mode. The same policies differ in nothing."""
    differ = 0
    for number in range(count(30, 1_000)):
        random = Random(number)
        before = world(random, modes=("Enforce", "Warn", "Audit"))
        after = world(random, modes=("Enforce", "Warn", "Audit"))
        asked = request(random, before)
        if asked.operation != "CREATE" or asked.namespace in catalog().excluded_namespaces:
            continue
        one = event(asked.pod, number, asked.namespace)
        met = creation(one, catalog())
        assert isinstance(met, Creation)
        noted = decided(asked.pod, before.snapshot, asked.namespace, met=met.request.pod)
        recorded = creation({**one, "annotations": noted}, catalog())
        assert isinstance(recorded, Creation)
        assert recorded.then is not None or not noted
        then, now = (admission_preview.preview_admission(met.request, each.snapshot.facts_for(asked.namespace)) for each in (before, after))
        if recorded.then is None or any([*undecodable(Pod(met.request.pod), each.snapshot)] for each in (before, after)):
            continue  # no API server sends such a pod
        if then.violations and not then.mutate.violations:
            continue  # denied by /validate, whose annotations this record lacks
        decision = recorded.then.decision()
        assert difference(decision, of_admitted(then)) is None
        assert not recorded.then.same_as(now) or difference(decision, of_admitted(now)) is None
        made, read = difference(of_admitted(then), of_admitted(now)), difference(decision, of_admitted(now))
        assert (made and made.turn) == (read and read.turn)
        differ += made is not None
    assert differ > count(4, 100)
