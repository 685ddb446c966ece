"""The report of one workload: each outcome of its pods once, with how many they are, in a bounded size.

The form is that of OpenReports (github.com/openreports/reports-api v0.2.1, openreports.io/v1alpha1 Report), which
PolicyReport of wgpolicyk8s.io/v1alpha2 shares. It has no time of its own: a report that says the same is the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from analysis.audit.outcomes import DENIALS, AuditResult
from analysis.audit.stored_pod import StoredPod
from analysis.conditions.words import sentences
from catalog.nearest import list_known
from kube.templates import group_of
from policies.policy import GROUP

SOURCE = "berth"
KIND, PLAIN_KIND = "Report", "PolicyReport"
LABEL = "app.kubernetes.io/managed-by"
"""The label by which Berth's reports are found; its value is ``SOURCE``."""
LEFT_OUT = f"{GROUP}/results-left-out"
"""The annotation that counts results for which there was no room."""
OPEN_REPORTS, POLICY_REPORTS = "openreports.io/v1alpha1", "wgpolicyk8s.io/v1alpha2"
MOST_RESULTS = 16
"""Results of a report: a workload whose pods differ in more ways has its policies in the others too."""
MOST_NAMED = 5
"""Pods that a result names: one of them is enough to look at."""
MOST_FIELDS = 3
"""Fields of the pod that a message names: the patch has them all."""
MOST_PATCH = 2048
"""Bytes of the patch of a result: seven edits take 1 KiB. A longer one is counted, and ``berth why`` shows it."""
MOST_PATCHES = 8192
"""Bytes of all patches of a report."""
MOST_MESSAGE = 500
RESULTS = ("fail", "warn", "pass")
"""The gravest first."""
_NAME = 200


class ReportedWorkload(NamedTuple):
    """The owner that no other object owns; of pods that nobody owns, their namespace."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def report_name(self) -> str:
        """Return the name of its report, in its own namespace: one for each group, kind and name."""
        kind = self.kind.lower()
        shortened = hashlib.sha256(f"{group_of(self.api_version)}/{self.kind}/{self.name}".encode()).hexdigest()[:8]
        return f"{SOURCE}-{kind}-{self.name}"[:_NAME].rstrip(".-") + f"-{shortened}"


@dataclass(slots=True)
class Affected:
    """The pods with one outcome."""

    pods: int = 0
    templates: int = 0
    """Those of a workload that has no pods."""
    pending: int = 0
    gpus: int = 0
    usd: float | None = None
    names: list[str] = field(default_factory=list)

    def add(self, pod: StoredPod, gpus: int, usd: float | None) -> None:
        """Count one more pod."""
        if pod.template:
            self.templates += 1
            return
        self.pods += 1
        self.pending += not pod.node
        self.gpus += gpus
        if usd is not None:
            self.usd = (self.usd or 0.0) + usd
        if len(self.names) < MOST_NAMED:
            self.names.append(pod.name)


def count_by_result(pods: Iterable[Iterable[AuditResult]]) -> dict[str, int]:
    """Return how many pods pass, fail and are warned of, each pod once by the gravest of its outcomes."""
    counts = dict.fromkeys(RESULTS, 0)
    for outcomes in pods:
        counts[min(map(_word, outcomes), key=RESULTS.index, default="pass")] += 1
    return counts


def report(
    workload: ReportedWorkload, found: Mapping[AuditResult, Affected], summary: Mapping[str, int], api_version: str
) -> dict[str, Any]:
    """Return the report; its results in order of gravity, policies by name. ``summary``: of ``count_by_result``."""
    ranked = sorted(found.items(), key=lambda one: (one[0].finding not in DENIALS, one[0].mode != "Enforce", -one[1].pods, one[0]))
    room, results = MOST_PATCHES, []
    for outcome, pods in ranked[:MOST_RESULTS]:
        shown = outcome.patch if len(outcome.patch) <= min(room, MOST_PATCH) else ""
        room -= len(shown)
        results.append(_result(workload, outcome, pods, shown))
    left = len(ranked) - len(results)
    return {
        "apiVersion": api_version,
        "kind": KIND if api_version == OPEN_REPORTS else PLAIN_KIND,
        "metadata": _metadata(workload, left),
        **({"source": SOURCE} if api_version == OPEN_REPORTS else {}),
        "scope": {"apiVersion": workload.api_version, "kind": workload.kind, "name": workload.name}
        | ({"uid": workload.uid} if workload.uid else {})
        | ({"namespace": workload.namespace} if workload.kind != "Namespace" else {}),
        "summary": dict(summary),
        "results": results,
    }


def _metadata(workload: ReportedWorkload, left: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": workload.report_name,
        "namespace": workload.namespace,
        "labels": {LABEL: SOURCE},
    }
    if left:
        metadata["annotations"] = {LEFT_OUT: str(left)}
    if workload.uid and workload.kind != "Namespace":
        owner = {"apiVersion": workload.api_version, "kind": workload.kind, "name": workload.name, "uid": workload.uid}
        metadata["ownerReferences"] = [owner]
    return metadata


def _word(outcome: AuditResult) -> str:
    return "fail" if outcome.finding in DENIALS else "warn"


def _result(workload: ReportedWorkload, outcome: AuditResult, pods: Affected, patch: str) -> dict[str, Any]:
    properties = {
        "finding": outcome.finding,
        "mode": outcome.mode,
        "pods": str(pods.pods),
        "gpus": str(pods.gpus),
    }
    if pods.templates:
        properties["templates"] = str(pods.templates)
    if pods.pending:
        properties["pending"] = str(pods.pending)
    if pods.usd is not None:
        properties["usdPerHour"] = f"{pods.usd:.2f}"
    if outcome.codes:
        properties["codes"] = ",".join(outcome.codes)
    if patch:
        properties["patch"] = patch
    elif outcome.patch:
        properties["patchBytes"] = str(len(outcome.patch))
    result: dict[str, Any] = {
        "source": SOURCE,  # that of the report is not read by policy-reporter (pkg/openreports)
        "policy": ",".join(outcome.policies),
        "rule": ",".join(outcome.rules),
        "category": "GPU",
        "severity": _severity(outcome),
        "result": _word(outcome),
        **({"scored": True} if outcome.mode == "Enforce" else {}),
        "message": message(outcome),
        "properties": properties,
    }
    if pods.names and workload.kind == "Namespace":
        result["resources"] = [
            {"apiVersion": "v1", "kind": "Pod", "namespace": workload.namespace, "name": name} for name in sorted(pods.names)
        ]
    return result


def _severity(outcome: AuditResult) -> str:
    if outcome.finding == "no-longer-fits":
        return "high"
    return "medium" if outcome.finding in DENIALS or outcome.mode == "Enforce" else "low"


def message(outcome: AuditResult) -> str:
    """Return the outcome as a sentence."""
    if outcome.texts:
        return sentences(outcome.texts, most=MOST_MESSAGE)
    written = _listed(outcome.paths)
    if outcome.finding == "not-as-enforced":
        return (
            f"The pod differs from policies in Enforce (they write {written}): Berth was not called for it, or the policies have changed."
        )
    written = f"would write {written}" if written else ""
    dropped = f"would prevent other policies from writing {_listed(outcome.dropped)}" if outcome.dropped else ""
    return f"In Enforce it {' and '.join(filter(None, (written, dropped)))}."


def _listed(names: Sequence[str]) -> str:
    return list_known(names, MOST_FIELDS)


def group_by_outcome(outcomes: Iterable[tuple[StoredPod, AuditResult, int, float | None]]) -> dict[AuditResult, Affected]:
    """Return the pods by outcome. Each with its devices, and what they cost an hour if that is known."""
    found: dict[AuditResult, Affected] = {}
    for pod, outcome, gpus, usd in outcomes:
        found.setdefault(outcome, Affected()).add(pod, gpus, usd)
    return found
