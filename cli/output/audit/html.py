"""What policies find in existing pods as one HTML file: the counts, and the pods that policies would change or deny."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cli.output.html_page import heading, page, paragraph
from cli.output.table import OutputTable

ALL = "(all)"
"""Stands for every policy in a row of a namespace."""
MOST = 500
"""Results that are listed: what a browser shows at once. The JSON has all."""
_HEADS = ("NAMESPACE", "WORKLOAD", "POLICY", "FINDING", "PODS", "GPUS", "USD/H", "MESSAGE")


def format_audit_html(command: str, said: Iterable[str], counts: OutputTable, results: Sequence[tuple[str, ...]]) -> str:
    """Return the page. ``counts``: by namespace and policy; ``results``: under ``_HEADS``, the gravest first."""
    parts = [heading("GPU policies and existing pods"), *map(paragraph, said)]
    for title, rows in (
        ("By namespace", [row for row in counts.rows if row[1] == ALL]),
        ("By policy", [row for row in counts.rows if row[1] != ALL]),
    ):
        if rows:
            parts += [heading(title, 2), OutputTable(counts.heads, rows, numbers=range(3, len(counts.heads))).html()]
    if results:
        parts += [heading("By workload", 2), OutputTable(_HEADS, results[:MOST], numbers=range(4, 7)).html()]
    if len(results) > MOST:
        parts.append(paragraph(f"{len(results) - MOST} more; for all results, run {command} -o json."))
    return page(command, parts)
