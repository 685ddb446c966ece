"""What Berth's reports say of the pods of a cluster: counts by namespace and policy, as a table, JSON, CSV or HTML, and what one policy in
Enforce would do. What reports can't say is named, and nowhere shown as 0."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from analysis.audit.outcomes import DENIALS, FINDINGS
from analysis.audit.reported_counts import LowerBound, ReportedLine, reported_lines
from analysis.audit.stored_report import StoredReport, StoredResult
from cli.output.audit.answer import HEADS_OF_FINDINGS, OF_FINDINGS
from cli.output.html_page import ALL, format_audit_html
from cli.output.named_policy import chosen, enforced_already
from cli.output.table import OutputTable, Styled
from cli.terminal.screen import PLAIN, Terminal
from documents.printable import counted, printable
from kube.tree import map_at, maps_in, text_of
from sources.reports import Reports

COLUMNS = ("namespace", "policy", "mode", "pods_with_findings", "gpus", "usd_per_hour", *OF_FINDINGS, "at_least")
HEADS = ("NAMESPACE", "POLICY", "MODE", "WITH FINDINGS", "GPUS", "USD/H", *HEADS_OF_FINDINGS)
LIST_HEADS = ("NAMESPACE", "WORKLOAD", "PODS", "GPUS", "USD/H", "FINDING", "MESSAGE")
LONGEST = 253
"""Characters of a name in a table: as many as a name of Kubernetes has."""
WHAT = 120
"""Characters of a message in a table."""
UNSAID = "Not in reports: pods without findings, unprotected long runs, pods on spot capacity. To see these, run berth audit."
OPEN = "N+ means at least N: findings may share pods, or a report was full and left results out."
NONE = "No findings in Berth's reports. Reports are written by berth audit --serve, which the chart runs."
_GRAVE = tuple(finding.replace("-", " ") for finding in DENIALS)
_RESULT = ("source", "policy", "rule", "category", "severity", "result", "message")


def format_reported(form: str, reports: Reports, screen: Terminal = PLAIN) -> str:
    """Return the answer as ``table``, ``json``, ``csv`` or ``html``."""
    found = reported_lines(reports.found)
    if form == "json":
        return json.dumps(_value(found, reports), indent=2) + "\n"
    if form == "csv":
        return OutputTable((), [[printable(cell, LONGEST) for cell in _csv_row(line)] for line in found]).csv(COLUMNS)
    counts = OutputTable(HEADS, [[printable(cell, LONGEST) for cell in _cells(line)] for line in found])
    below = _below(found, reports) if found else [NONE]
    if form == "html":
        said = [*below, *(f"{one[:1].upper()}{one[1:]}." for one in notes(reports))]
        results = sorted(
            (_html_row(report, one) for report in reports.found for one in report.results), key=lambda row: (row[3] not in _GRAVE, row)
        )
        return format_audit_html("berth audit --reports", said, counts, results)
    return "".join(f"{line}\n" for line in ([*counts.text(screen), "", *below] if found else below))


def notes(reports: Reports) -> Iterator[str]:
    """Yield what else was in the reports, and what was not, as sentences."""
    least = "counts in their namespaces are minimums"
    for number, noun, rest in (
        (sum(one.templates for report in reports.found for one in report.results), "finding", "on pod templates of workloads without pods"),
        (sum(report.left_out for report in reports.found), "result", f"left out of full reports: {least}"),
        (sum(report.damaged for report in reports.found), "result", f"not readable: {least}"),
        (reports.twice, "report", "given twice, counted once"),
        (reports.others, "report", "of other tools skipped"),
        (reports.not_reports, "object", "of other kinds skipped"),
    ):
        if number:
            yield f"{counted(number, noun)} {rest}"


def preview(name: str, reports: Reports, screen: Terminal = PLAIN) -> Iterator[str]:
    """Yield what switching a policy to Enforce would do: the sentence, then the list. Raises InputError for a policy without findings."""
    modes = _modes(reports)
    policy = chosen(
        name, {name: name for name in modes}, missing="no report has a finding of policy", advice="to evaluate it now, remove --reports"
    )
    if modes[policy] == {"Enforce"}:
        raise enforced_already(name, "berth audit --reports")
    results = [(report, one) for report in reports.found for one in report.results]
    of_policy = [(report, one) for report, one in results if one.policies == (policy,) and one.finding.startswith("would-")]
    denied, changed = (sum(one.pods for _, one in of_policy if one.finding == which) for which in ("would-deny", "would-change"))
    known = [one.usd for _, one in of_policy if one.usd is not None]
    stake = f"{sum(one.gpus for _, one in of_policy)} GPUs{f', {sum(known):.2f} USD/h' if known else ''}"
    least = "at least " if any(one.left_out or one.damaged for one in reports.found) else ""
    outcome = f"{least}{denied} pods would be denied and {least}{changed} changed ({stake})"
    yield f"With {printable(name)} in Enforce, {outcome}, according to reports. Existing pods are unchanged until recreated."
    if of_policy:
        yield ""
        rows = sorted((_row(report, one) for report, one in of_policy), key=lambda row: (row[5] != "would deny", row))
        shown: list[list[str | Styled]] = [
            [*(printable(cell, LONGEST) for cell in row[:5]), _finding(row[5]), printable(row[6][:WHAT])] for row in rows
        ]
        yield from OutputTable(LIST_HEADS, shown).text(screen)


def _finding(words: str) -> Styled:
    return Styled(words, "bad" if words == "would deny" else "unsure")


def _modes(reports: Reports) -> dict[str, set[str]]:
    modes: dict[str, set[str]] = {}
    for report in reports.found:
        for one in report.results:
            for policy in one.policies:
                modes.setdefault(policy, set()).add(one.mode or "")
    return modes


def _cell(count: LowerBound, digits: int = 0) -> str:
    return f"{count.least:.{digits}f}{'+' if count.open else ''}"


def _cells(line: ReportedLine) -> list[str]:
    usd = "" if line.usd is None else _cell(line.usd, 2)
    counts = [_cell(line.counts[finding]) for finding in FINDINGS]
    return [line.namespace, line.policy or ALL, _mode(line), _cell(line.pods), _cell(line.gpus), usd, *counts]


def _mode(line: ReportedLine) -> str:
    return "/".join(sorted(line.modes)) if line.policy else ""


def _figures(line: ReportedLine) -> dict[str, LowerBound]:
    usd = {"usdPerHour": line.usd} if line.usd is not None else {}
    return {"podsWithFindings": line.pods, "gpus": line.gpus, **usd, **{str(finding): line.counts[finding] for finding in FINDINGS}}


def _csv_row(line: ReportedLine) -> list[str]:
    at_least = " ".join(name for name, count in _figures(line).items() if count.open)
    return [*(cell.removesuffix("+") if column > 2 else cell for column, cell in enumerate(_cells(line))), at_least]


def _value(found: Sequence[ReportedLine], reports: Reports) -> dict[str, Any]:
    return {
        "policies": [_line(line) for line in found],
        "workloads": [_workload(one) for one in sorted(reports.found, key=lambda one: one[:4]) if one.results],
        "notSaid": ["podsWithoutFindings", "unprotected", "onSpot"],
        "resultsLeftOut": sum(one.left_out for one in reports.found),
        "resultsUnreadable": sum(one.damaged for one in reports.found),
        "reports": len(reports.found),
        "reportsOfOthers": reports.others,
    }


def _line(line: ReportedLine) -> dict[str, Any]:
    figures = _figures(line)
    numbers = {name: round(count.least, 2) if name == "usdPerHour" else int(count.least) for name, count in figures.items()}
    return {
        "namespace": line.namespace,
        "policy": line.policy or None,
        "mode": _mode(line) or None,
        **numbers,
        "templates": line.templates,
        "atLeast": [name for name, count in figures.items() if count.open],
    }


def _workload(report: StoredReport) -> dict[str, Any]:
    scope = {"kind": report.kind, "name": report.name, "namespace": report.namespace}
    return {"scope": scope, "results": [_plain(one) for one in report.results]}


def _plain(result: StoredResult) -> dict[str, Any]:
    """Return a result with texts alone where Berth writes texts."""
    raw = result.raw
    properties = {text_of(name): text_of(value) for name, value in map_at(raw, "properties").items()}
    resources = [{text_of(name): text_of(value) for name, value in one.items()} for one in maps_in(raw.get("resources"))]
    return {
        **{name: text_of(raw[name]) for name in _RESULT if name in raw},
        **({"scored": raw["scored"]} if isinstance(raw.get("scored"), bool) else {}),
        "properties": properties,
        **({"resources": resources} if resources else {}),
    }


def _below(found: Sequence[ReportedLine], reports: Reports) -> list[str]:
    whole = [line for line in found if not line.policy]
    change, deny = (_total([line.counts[finding] for line in whole]) for finding in FINDINGS[:2])
    sentence = (
        f"According to {counted(len(reports.found), 'report')}, policies in Audit or Warn would change {change} pods and deny {deny}."
    )
    opened = any(count.open for line in found for count in _figures(line).values())
    return [sentence, *([OPEN] if opened else []), UNSAID]


def _total(counts: Sequence[LowerBound]) -> str:
    return f"{'at least ' if any(count.open for count in counts) else ''}{sum(int(count.least) for count in counts)}"


def _html_row(report: StoredReport, one: StoredResult) -> tuple[str, ...]:
    namespace, workload, pods, gpus, usd, finding, message = _row(report, one)
    return namespace, workload, ",".join(one.policies), finding, pods, gpus, usd, message


def _row(report: StoredReport, one: StoredResult) -> list[str]:
    workload = "" if report.kind == "Namespace" else f"{report.kind}/{report.name}"
    usd = "" if one.usd is None else f"{one.usd:.2f}"
    return [report.namespace, workload, str(one.pods), str(one.gpus), usd, one.finding.replace("-", " "), one.message]
