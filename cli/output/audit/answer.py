"""The answer of `berth audit`: a table or an HTML file for people, JSON or CSV for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analysis.audit.ledger import AuditedPod, Ledger
from analysis.audit.outcomes import FINDINGS, Finding
from analysis.conditions.server_options import UsedPlatforms, describe_platforms, platforms_value
from analysis.scan.exposure import Exposure, exposure
from cli.output.html_page import ALL, format_audit_html
from cli.output.table import OutputTable
from cli.terminal.screen import PLAIN, Terminal
from documents.printable import counted
from policies.state.snapshot import Snapshot
from sources.scanned_cluster import age

OF_FINDINGS = tuple(finding.replace("-", "_") for finding in FINDINGS)
COLUMNS = ("namespace", "policy", "mode", "pods", "gpus", "usd_per_hour", *OF_FINDINGS, "unprotected", "on_spot")
HEADS_OF_FINDINGS = ("WOULD CHANGE", "WOULD DENY", "NOT AS ENFORCED", "NO LONGER FIT")
HEADS = ("NAMESPACE", "POLICY", "MODE", "PODS", "GPUS", "USD/H", *HEADS_OF_FINDINGS, "UNPROTECTED", "ON SPOT")


@dataclass(slots=True, kw_only=True)
class AuditLine:
    """The pods of one namespace to which one policy applies."""

    namespace: str
    policy: str
    mode: str
    pods: int = 0
    gpus: int = 0
    usd: float | None = None
    unprotected: int = 0
    """Long runs that nothing protects."""
    spot: int = 0
    """Pods on spot capacity."""
    counts: dict[Finding, int]

    def add(self, pod: AuditedPod, findings: set[Finding], exposed: Exposure) -> None:
        """Count one more pod."""
        self.pods += 1
        self.gpus += pod.gpus
        self.unprotected += exposed.unprotected
        self.spot += exposed.spot
        if pod.usd is not None:
            self.usd = (self.usd or 0.0) + pod.usd
        for finding in findings:
            self.counts[finding] += 1

    @property
    def cells(self) -> tuple[str, ...]:
        usd = "" if self.usd is None else f"{self.usd:.2f}"
        counts = (*(self.counts[finding] for finding in FINDINGS), self.unprotected, self.spot)
        return self.namespace, self.policy, self.mode, str(self.pods), str(self.gpus), usd, *map(str, counts)


def format_answer(form: str, ledger: Ledger, snapshot: Snapshot, platforms: UsedPlatforms, screen: Terminal = PLAIN) -> str:
    """Return the answer as ``table``, ``json``, ``csv`` or ``html``."""
    found = audit_lines(ledger, snapshot)
    counts = OutputTable(HEADS, [line.cells for line in found])
    if form == "json":
        value = {
            "platforms": platforms_value(platforms),
            "policies": [_value(line) for line in found],
            "workloads": list(workloads(ledger)),
        }
        return json.dumps(value, indent=2) + "\n"
    if form == "csv":
        return counts.csv(COLUMNS)
    nothing = [] if found else ["No pod requests an accelerator."]
    summary, where = summarize_audit(ledger), f"Platforms: {describe_platforms(platforms)}."
    if form == "html":
        return format_audit_html("berth audit", [summary, where, *nothing], counts, _results(ledger))
    return "".join(f"{line}\n" for line in nothing or [*counts.text(screen), "", summary, where])


def audit_lines(ledger: Ledger, snapshot: Snapshot) -> list[AuditLine]:
    """Return a line for each namespace, and one for each policy that applies there."""
    modes = {compiled.id: compiled.mode for compiled in snapshot.policies}
    found: dict[tuple[str, str], AuditLine] = {}

    def line(namespace: str, policy: str) -> AuditLine:
        mode = modes.get(policy, "")
        return found.setdefault(
            (namespace, policy), AuditLine(namespace=namespace, policy=policy, mode=mode, counts=dict.fromkeys(FINDINGS, 0))
        )

    for pod in ledger.pods.values():
        namespace, exposed = pod.stored.namespace, exposure(pod.stored, snapshot, age(pod.stored.created))
        line(namespace, ALL).add(pod, {outcome.finding for outcome in pod.outcomes}, exposed)
        for policy in pod.matched:
            findings = {outcome.finding for outcome in pod.outcomes if policy in outcome.policies}
            line(namespace, policy).add(pod, findings, exposed)
    return [found[key] for key in sorted(found, key=lambda key: (key[0], key[1] != ALL, key[1]))]


def _value(line: AuditLine) -> dict[str, Any]:
    usd = None if line.usd is None else round(line.usd, 2)
    counts: dict[str, int] = {finding: line.counts[finding] for finding in FINDINGS}
    policy = None if line.policy == ALL else line.policy
    return {
        "namespace": line.namespace,
        "policy": policy,
        "mode": line.mode or None,
        "pods": line.pods,
        "gpus": line.gpus,
        "usdPerHour": usd,
        **counts,
        "unprotected": line.unprotected,
        "onSpot": line.spot,
    }


def workloads(ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Yield the results of each workload with findings, as in its report."""
    for workload in sorted(ledger.workloads()):
        if (report := ledger.report(workload, "")) is not None:
            yield {"scope": report["scope"] | {"namespace": workload.namespace}, "results": report["results"]}


def _results(ledger: Ledger) -> list[tuple[str, ...]]:
    rows = []
    for workload in workloads(ledger):
        scope = workload["scope"]
        name = "" if scope["kind"] == "Namespace" else f"{scope['kind']}/{scope['name']}"
        for result in workload["results"]:
            of = result["properties"]
            counts = of["pods"], of["gpus"], of.get("usdPerHour", "")
            rows.append((scope["namespace"], name, result["policy"], of["finding"].replace("-", " "), *counts, result["message"]))
    return sorted(rows, key=lambda row: (row[3] not in ("would deny", "no longer fits"), row))


def summarize_audit(ledger: Ledger) -> str:
    """Return the answer in one sentence."""
    pods = ledger.pods.values()
    deny = sum(any(outcome.finding == "would-deny" for outcome in pod.outcomes) for pod in pods)
    change = sum(any(outcome.finding == "would-change" for outcome in pod.outcomes) for pod in pods)
    return f"Of {counted(len(pods), 'pod')} with accelerators, policies in Audit or Warn would change {change} and deny {deny}."
