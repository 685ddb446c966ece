"""The answer of `berth scan` as text for a terminal, as one HTML file, or as JSON for programs; and what the shipped policies would
have written, as a diff for each workload."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any

from analysis.admission_preview import Admission
from analysis.conditions.server_options import describe_platforms, platforms_value
from analysis.scan import wording
from analysis.scan.finding import Finding, Hit, Obstacle, PlaceReason
from analysis.scan.report import NEEDS, DeviceGroup, ScanReport
from cli.output.html_page import heading, page, paragraph
from cli.output.table import OutputTable
from cli.terminal.screen import PLAIN, Terminal
from documents.diff import unified
from documents.printable import counted, printable
from kube.tree import Raw
from policies.patch.record import APPLIED

MOST_SHOWN = 12
"""Findings of one kind that the text shows: a screen; JSON and HTML have all."""
HEADS = ("NODE GROUP", "MODEL", "NODES", "GPUS", "USED", "USD/H")


def format_scan(report: ScanReport, screen: Terminal = PLAIN) -> str:
    """Return the report as text."""
    lines = [summarize_scan(report), ""]
    if report.groups:
        lines += [*OutputTable(HEADS, [cells(group) for group in report.groups]).text(screen), ""]
    for kind, found in groupby(report.findings, lambda one: one.kind):
        lines += [screen.paint("strong", wording.title(kind)), *map(printable, _section(kind, list(found))), ""]
    if not report.findings:
        lines += [screen.paint("good", "No problems found."), ""]
    lines += map(printable, (*library(report), *unseen(report)))
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(kind: Any, found: Sequence[Finding]) -> Iterator[str]:
    yield f"  {wording.why(kind)}"
    advised = ""
    for finding in found[:MOST_SHOWN]:
        yield f"  - {wording.describe_subject(finding)}{wording.describe_weight(finding)}: {wording.fact(finding)}"
        if (advice := wording.advice(finding)) != advised:
            yield f"      -> {advice}"
            advised = advice
    if len(found) > MOST_SHOWN:
        yield f"  - and {len(found) - MOST_SHOWN} more; for all, run berth scan -o json"


def summarize_scan(report: ScanReport) -> str:
    """Return the first line: what there is."""
    nodes, held = sum(group.nodes for group in report.groups), sum((group.held for group in report.groups), Fraction(0))
    total = sum(group.gpus or 0 for group in report.groups)
    least = "at least " if any(group.gpus is None for group in report.groups) else ""
    gpus = f"{least}{counted(total, 'GPU')}" if total or not least else "an unknown number of GPUs"
    cost = "" if report.usd is None else f", {report.usd:.2f} USD per hour"
    waits = f", {report.waiting} of them pending" if report.waiting else ""
    gpu_nodes = f"{counted(nodes, 'GPU node')} with {gpus}, {_short(held)} used{cost}"
    if "Node" in report.unread and not nodes:
        gpu_nodes = "GPU nodes are unknown"
    return f"{gpu_nodes}; {counted(report.pods, 'GPU pod')}{waits}."


def _short(number: Fraction) -> str:
    """Return a number of GPUs with one decimal at most: ``0.6``."""
    return f"{float(number):.1f}".removesuffix(".0")


def cells(group: DeviceGroup) -> tuple[str, ...]:
    """Return the row of a group of nodes."""
    usd = "" if group.usd is None else f"{group.usd:.2f}"
    gpus = "?" if group.gpus is None else str(group.gpus)
    return f"{group.what} {group.name}", group.model or "?", str(group.nodes), gpus, _short(group.held), usd


def library(report: ScanReport) -> Iterator[str]:
    """Yield what the shipped library would have made of the pods of which something is found."""
    found = report.library
    if not found.pods:
        return
    cost = "" if found.usd is None else f", {found.usd:.2f} USD per hour"
    of = f"{found.fixed} of these {counted(found.pods, 'pod')}"
    yield f"Berth's shipped policies would have fixed {of} ({counted(found.gpus, 'GPU')}{cost})."
    if found.denied:
        yield f"They would have denied {counted(found.denied, 'pod')}, each with a fix."
    yield "To see the changes, run berth scan --diff. To write policies in Audit for this cluster, run berth scan --suggest DIR."


def unseen(report: ScanReport) -> Iterator[str]:
    """Yield what could not be read, and which findings rest on it."""
    for kind, reason in sorted(report.unread.items()):
        subjects = report.subjects_on(kind)
        yield f"Not read: {reason}" + (f"; findings on {', '.join(subjects)} may be missing" if subjects else "")
    if report.platforms is not None:
        yield f"Platforms: {describe_platforms(report.platforms)}."


def scan_value(report: ScanReport) -> dict[str, Any]:
    """Return the report as a value for JSON."""
    library = report.library
    return {
        "nodeGroups": [
            {
                "kind": group.what,
                "name": group.name,
                "model": group.model or None,
                "nodes": group.nodes,
                "gpus": group.gpus,
                "devices": group.devices,
                "held": round(float(group.held), 2),
                "usdPerHour": rounded(group.usd),
            }
            for group in report.groups
        ],
        "gpuPods": report.pods,
        "platforms": platforms_value(report.platforms),
        "waiting": report.waiting,
        "usdPerHour": rounded(report.usd),
        "findings": [_finding(finding) for finding in report.findings],
        "library": {
            "pods": library.pods,
            "mended": library.fixed,
            "denied": library.denied,
            "gpus": library.gpus,
            "usdPerHour": rounded(library.usd),
        },
        "notSeen": [{"kind": kind, "reason": reason, "findings": report.rests_on(kind)} for kind, reason in sorted(report.unread.items())],
    }


def as_json(report: ScanReport) -> str:
    """Return the report as JSON."""
    return json.dumps(scan_value(report), indent=2) + "\n"


def _finding(finding: Finding) -> dict[str, Any]:
    kind, namespace, name = finding.where
    return {
        "kind": finding.kind,
        "where": {"kind": kind, "namespace": namespace or None, "name": name or None},
        "values": {key: _plain(one) for key, one in finding.values.items()},
        "pods": finding.pods,
        "nodes": finding.nodes,
        "names": finding.names,
        "gpus": finding.gpus,
        "usdPerHour": rounded(finding.usd),
        "mended": finding.fixed,
        "restsOn": NEEDS.get(finding.kind, ()),
        "message": f"{wording.describe_subject(finding)}: {wording.fact(finding)}",
        "advice": wording.advice(finding),
    }


def _plain(value: Any) -> Any:
    """Return reasons and obstacles as maps with the names of their fields."""
    if isinstance(value, PlaceReason | Obstacle):
        return {name: _plain(one) for name, one in value._asdict().items()}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def rounded(usd: float | None) -> float | None:
    """Return a price to the cent."""
    return None if usd is None else round(usd, 2)


def format_scan_html(report: ScanReport) -> str:
    """Return the page."""
    parts = [heading("GPUs in this cluster"), paragraph(summarize_scan(report))]
    if report.groups:
        parts.append(OutputTable(HEADS, [cells(group) for group in report.groups], numbers=range(2, 6)).html())
    for kind, found in groupby(report.findings, lambda one: one.kind):
        parts += [heading(wording.title(kind), 2), paragraph(wording.why(kind), "why"), _findings(list(found))]
    if not report.findings:
        parts.append(paragraph("No problems found."))
    parts += [paragraph(line) for line in (*library(report), *unseen(report))]
    return page("berth scan", parts)


def _findings(found: Sequence[Finding]) -> str:
    heads = ("WHERE", "PROBLEM", "NEXT STEP", "NODES", "PODS", "GPUS", "USD/H")
    rows = []
    for one in found:
        usd = rounded(one.usd)
        counts = (one.nodes or "", one.pods or "", one.gpus or "", "" if usd is None else f"{usd:.2f}")
        rows.append((wording.describe_subject(one), wording.fact(one), wording.advice(one), *map(str, counts)))
    return OutputTable(heads, rows, numbers=range(3, 7), code=(2,)).html()


def format_scan_diff(hits: Sequence[Hit], admission: Admission, screen: Terminal = PLAIN) -> str:
    """Return the diffs; pods of a workload that get the same edits are one, with their number."""
    shown: dict[tuple[str, str], int] = {}
    for hit in _pods(hits):
        admitted = admission.of(hit.pod.stored)
        workload = hit.pod.workload
        name = f"{workload.kind} {workload.namespace}/{workload.name}" if workload.kind != "Namespace" else f"Pod {_name(hit)}"
        if admitted.violations:
            body = "\n".join(f"! {screen.paint('bad', 'denied')}: {printable(str(one))}" for one in admitted.violations)
        elif admitted.edits:
            body = "\n".join(screen.paint_diff(unified(_shown(admitted.request.pod), _shown(admitted.pod), name)))
        else:
            body = "  no change: these policies do not match the pod, or it already sets everything"
        shown[name, body] = shown.get((name, body), 0) + 1
    parts = [f"{printable(name)} ({counted(count, 'pod')})\n{body}" for (name, body), count in shown.items()]
    return "\n\n".join(parts) + ("\n" if parts else "")


def _pods(hits: Sequence[Hit]) -> Iterator[Hit]:
    """Yield one hit of each pod."""
    seen = set()
    for hit in hits:
        key = hit.pod.stored.namespace, hit.pod.stored.name
        if key not in seen:
            seen.add(key)
            yield hit


def _name(hit: Hit) -> str:
    return f"{hit.pod.stored.namespace}/{hit.pod.stored.name}"


def _shown(pod: Raw) -> dict[str, Any]:
    """Return a pod without its owners, and without the record of what was written."""
    shown = {part: {key: one for key, one in pod.get(part, {}).items() if key != "ownerReferences"} for part in ("metadata", "spec")}
    annotations = shown["metadata"].get("annotations")
    if annotations and APPLIED in annotations:
        others = {key: one for key, one in annotations.items() if key != APPLIED}
        shown["metadata"] = {key: one for key, one in shown["metadata"].items() if key != "annotations"} | (
            {"annotations": others} if others else {}
        )
    return {part: one for part, one in shown.items() if one}
