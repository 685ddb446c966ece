"""Findings on many pods: updated pod by pod, and the same as if all were counted at once."""

from __future__ import annotations

from random import Random

from hypothesis import given

from analysis.audit.ledger import AuditedPod, Ledger, PolicyTotals
from analysis.audit.outcomes import AuditResult, Finding
from analysis.audit.stored_pod import StoredPod
from analysis.audit.workload_report import OPEN_REPORTS, ReportedWorkload
from tests.support.generators.strategies import examples, randoms

POLICIES = ("ClusterGPUPolicy/a", "ClusterGPUPolicy/b", "GPUPolicy/team-a/c")
FINDINGS: tuple[Finding, ...] = ("would-change", "would-deny")
WORKLOADS = tuple(ReportedWorkload("batch/v1", "Job", "team-a", name, name) for name in ("one", "two", "three"))


def outcome(policy: str, finding: Finding = "would-change") -> AuditResult:
    return AuditResult((policy,), "Audit", finding, ("tolerations",), (), (), ("tolerations",), (), "[]")


def audited(
    name: str, workload: ReportedWorkload, *outcomes: AuditResult, node: str = "n", matched: tuple[str, ...] = POLICIES
) -> AuditedPod:
    pod = StoredPod(namespace="team-a", name=name, uid=name, owner=None, node=node, finished=False, created="", shared=b"{}")
    return AuditedPod(pod, workload, outcomes, matched, 1, None)


def random_pod(random: Random, name: str) -> AuditedPod:
    matched = tuple(policy for policy in POLICIES if random.random() < 0.7)
    outcomes = [outcome(policy, random.choice(FINDINGS)) for policy in matched if random.random() < 0.5]
    return audited(name, random.choice(WORKLOADS), *outcomes, node=random.choice(("", "n")), matched=matched)


def totals_of(ledger: Ledger) -> dict[str, PolicyTotals]:
    """Counted anew."""
    found = {}
    for policy in POLICIES:
        pods = [one for one in ledger.pods.values() if policy in one.matched]
        if pods:
            kinds = [o.finding for one in pods for o in one.outcomes if o.policies == (policy,)]
            found[policy] = PolicyTotals(len(pods), kinds.count("would-change"), kinds.count("would-deny"))
    return found


@given(randoms())
@examples(50, 2000)
def test_totals_and_reports_are_those_of_the_pods_that_are_there(random: Random) -> None:
    """After any changes; whatever report is another one, its workload was named."""
    ledger, reports = Ledger(), {workload: Ledger().report(workload, OPEN_REPORTS) for workload in WORKLOADS}
    for _ in range(random.randint(1, 40)):
        name = f"p{random.randint(0, 8)}"
        if random.random() < 0.3:
            ledger.remove(("team-a", name))
        else:
            ledger.put(random_pod(random, name))
        assert ledger.totals() == totals_of(ledger)
        changed = ledger.changed()
        for workload in WORKLOADS:
            now = ledger.report(workload, OPEN_REPORTS)
            assert now == reports[workload] or workload in changed
            reports[workload] = now
    assert set(ledger.workloads()) == {one.workload for one in ledger.pods.values()}


def test_nothing_is_reported_of_pods_that_are_right() -> None:
    """They are counted where there is a finding on others."""
    ledger = Ledger()
    ledger.put(audited("p1", WORKLOADS[0]))
    assert ledger.report(WORKLOADS[0], OPEN_REPORTS) is None
    ledger.put(audited("p2", WORKLOADS[0], outcome(POLICIES[0])))
    found = ledger.report(WORKLOADS[0], OPEN_REPORTS)
    assert found is not None
    assert found["summary"] == {"fail": 0, "warn": 1, "pass": 1}


def test_a_pod_with_the_same_findings_changes_nothing() -> None:
    """Such as every change of its status."""
    ledger = Ledger()
    ledger.put(audited("p", WORKLOADS[0], outcome(POLICIES[0])))
    assert ledger.changed() == {WORKLOADS[0]}
    ledger.put(audited("p", WORKLOADS[0], outcome(POLICIES[0])))
    assert ledger.changed() == frozenset()
    ledger.put(audited("p", WORKLOADS[0], outcome(POLICIES[0]), node=""))
    assert ledger.changed() == {WORKLOADS[0]}
