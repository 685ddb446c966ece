"""The answer of `berth audit` as one HTML file: the counts, and the pods that policies would change or deny."""

from __future__ import annotations

from cli.output.audit.answer import ALL, HEADS, NUMBERS, AuditAnswer, audit_lines, summarize_audit, workloads
from cli.output.html_page import heading, page, paragraph, table

MOST = 500
"""Results that are listed: what a browser shows at once. The JSON has all."""
_HEADS = ("Namespace", "Workload", "Policy", "Finding", "Pods", "GPUs", "USD/h", "Message")


def format_audit_html(answer: AuditAnswer) -> str:
    """Return the page."""
    found = audit_lines(answer)
    parts = [heading("GPU policies and existing pods"), paragraph(summarize_audit(answer.ledger))]
    heads = [head.capitalize() if head != "USD/H" else "USD/h" for head in HEADS]
    for title, some in (
        ("By namespace", [line for line in found if line.policy == ALL]),
        ("By policy", [line for line in found if line.policy != ALL]),
    ):
        if some:
            parts += [heading(title, 2), table(heads, [line.cells for line in some], numbers=NUMBERS)]
    results = list(_results(answer))
    if results:
        parts += [heading("By workload", 2), table(_HEADS, results[:MOST], numbers=range(4, 7))]
    if len(results) > MOST:
        parts.append(paragraph(f"{len(results) - MOST} more; for all results, run berth audit -o json."))
    if not found:
        parts.append(paragraph("No pod requests an accelerator."))
    return page("berth audit", parts)


def _results(answer: AuditAnswer) -> list[tuple[str, ...]]:
    found = []
    for workload in workloads(answer.ledger):
        scope = workload["scope"]
        name = "" if scope["kind"] == "Namespace" else f"{scope['kind']}/{scope['name']}"
        for one in workload["results"]:
            of = one["properties"]
            counts = of["pods"], of["gpus"], of.get("usdPerHour", "")
            found.append((scope["namespace"], name, one["policy"], of["finding"].replace("-", " "), *counts, one["message"]))
    return sorted(found, key=lambda row: (row[3] not in ("would deny", "no longer fits"), row))
