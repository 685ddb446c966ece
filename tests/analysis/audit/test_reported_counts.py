"""Counts from reports, held against the pods of which they were written."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from hypothesis import given

from analysis.audit.ledger import AuditedPod, Ledger
from analysis.audit.outcomes import FINDINGS, AuditResult, Finding
from analysis.audit.reported_counts import ALL, LowerBound, ReportedLine, reported_lines
from analysis.audit.stored_pod import StoredPod
from analysis.audit.stored_report import StoredReport, stored_report
from analysis.audit.workload_report import OPEN_REPORTS, ReportedWorkload
from policies.verdict import Mode
from tests.support.generators.strategies import examples, randoms

WOULD, ENFORCED = ("ClusterGPUPolicy/a", "ClusterGPUPolicy/b", "GPUPolicy/x/c"), ("ClusterGPUPolicy/d", "ClusterGPUPolicy/e")
WORKLOADS = [ReportedWorkload("batch/v1", "Job", namespace, name, name) for namespace in ("x", "y") for name in ("one", "two", "three")]


def outcome(finding: Finding, mode: Mode, codes: tuple[str, ...], *policies: str) -> AuditResult:
    return AuditResult(policies, mode, finding, ("rule",), codes, (), ("tolerations",), (), "")


def outcomes(random: Random) -> Iterator[AuditResult]:
    """Of one pod: one at most of each policy in Audit, and of each finding of those in Enforce."""
    for policy in WOULD:
        if random.random() < 0.4:
            yield outcome(random.choice(FINDINGS[:2]), "Audit", random.choice(((), ("BERTH-101",))), policy)
    for finding in FINDINGS[2:]:
        if random.random() < 0.3:
            yield outcome(finding, "Enforce", (), *sorted(random.sample(ENFORCED, random.randint(0, 2))))


def cluster(random: Random) -> Ledger:
    ledger = Ledger()
    for number in range(random.randint(0, 12)):
        workload = random.choice(WORKLOADS)
        pod = StoredPod(
            namespace=workload.namespace, name=str(number), uid="", owner=None, node="", finished=False, created="", shared=b"{}"
        )
        ledger.put(AuditedPod(pod, workload, tuple(outcomes(random)), (), random.randint(1, 8), random.choice((None, 1.5, 2.25))))
    return ledger


def reports_of(ledger: Ledger) -> list[StoredReport]:
    made = (ledger.report(workload, OPEN_REPORTS) for workload in ledger.workloads())
    return [stored_report(one) for one in made if one is not None]


def true_counts(ledger: Ledger, line: ReportedLine) -> dict[str, float]:
    """Of the pods themselves, each once."""
    of_line = [
        (pod, [one for one in pod.outcomes if line.policy in (ALL, *one.policies)])
        for pod in ledger.pods.values()
        if pod.stored.namespace == line.namespace
    ]
    found = [(pod, some) for pod, some in of_line if some]
    counts: dict[str, float] = {finding: sum(any(one.finding == finding for one in some) for _, some in found) for finding in FINDINGS}
    usd = sum(pod.usd or 0.0 for pod, _ in found)
    return counts | {"pods": len(found), "gpus": sum(pod.gpus for pod, _ in found), "usd": usd}


@given(randoms())
@examples(80, 5000)
def test_a_count_is_what_the_pods_give_or_says_that_it_may_be_more(random: Random) -> None:
    """One policy in Audit is counted to the pod; of several, what reports can't tell is open, and never more than the truth."""
    ledger = cluster(random)
    found = reported_lines(reports_of(ledger))
    with_findings = {
        (pod.stored.namespace, policy) for pod in ledger.pods.values() for one in pod.outcomes for policy in (ALL, *one.policies)
    }
    assert [(line.namespace, line.policy) for line in found] == sorted(with_findings)
    for line in found:
        true = true_counts(ledger, line)
        counts: dict[str, LowerBound] = {"pods": line.pods, "gpus": line.gpus, "usd": line.usd or LowerBound()}
        counts |= {str(finding): count for finding, count in line.counts.items()}
        for name, count in counts.items():
            assert count.least <= true[name] + 0.01
            assert count.open or abs(count.least - true[name]) < 0.01
        if line.policy in WOULD:
            assert not any(count.open for count in counts.values())
        if line.policy:
            assert not any(count.open for count in line.counts.values())


def test_what_had_no_room_in_one_report_may_be_of_any_policy_of_its_namespace() -> None:
    """So each count there is the least, and none of another namespace."""
    one = outcome("would-change", "Audit", (), WOULD[0])
    ledger = Ledger()
    for workload in (WORKLOADS[0], WORKLOADS[3]):
        stored = StoredPod(namespace=workload.namespace, name="p", uid="", owner=None, node="", finished=False, created="", shared=b"{}")
        ledger.put(AuditedPod(stored, workload, (one,), (), 1, None))
    cut, whole = sorted(reports_of(ledger), key=lambda report: report.namespace)
    found = reported_lines([cut._replace(left_out=2), whole])
    assert [(line.namespace, line.pods.open, line.counts["no-longer-fits"].open) for line in found] == [
        ("x", True, True),
        ("x", True, True),
        ("y", False, False),
        ("y", False, False),
    ]


def test_templates_of_workloads_without_pods_are_no_pods() -> None:
    """They are counted by themselves."""
    stored = StoredPod(namespace="x", name="p", uid="", owner=None, node="", finished=False, created="", shared=b"{}", template=True)
    ledger = Ledger()
    ledger.put(AuditedPod(stored, WORKLOADS[0], (outcome("would-change", "Audit", (), WOULD[0]),), (), 8, 2.0))
    _, line = reported_lines(reports_of(ledger))
    assert (line.pods.least, line.gpus.least, line.usd, line.templates) == (0, 0, None, 1)
