"""The answer of `berth scan` as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from analysis.scan import wording
from analysis.scan.finding import Finding
from analysis.scan.report import ScanReport
from cli.output.html_page import heading, page, paragraph
from cli.output.scan_output import HEADS, cells, library, rounded, summarize_scan, unseen
from cli.output.table import OutputTable


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
