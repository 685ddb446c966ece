"""The answer of `berth scan` as one HTML file: nothing is loaded, nothing runs, and every text from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

from cli.output.scan_output import HEADS, cells, library, printable, rounded, summary, unseen, where
from policies.scan import wording
from policies.scan.finding import Finding
from policies.scan.report import Report

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Of the page's own Content-Security-Policy: its one style sheet, and nothing else, so that no escape that was forgotten could run."""
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #1c2530; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .25rem; } p { margin: .25rem 0 .75rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0;
border-bottom: 1px solid #d8dee4; overflow-wrap: anywhere; } th { font-weight: 600; } td.n, th.n { text-align: right; white-space: nowrap; }
code { font: 13px ui-monospace, monospace; background: #f3f5f7; padding: .1rem .3rem; overflow-wrap: anywhere; }
.why { color: #57606a; }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117; } code { background: #21262d; }
th, td { border-color: #30363d; }
.why { color: #9da7b1; } }
"""


def text(report: Report) -> str:
    """Return the page."""
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>berth scan</title>",
        f"<style>{_STYLE}</style>",
        "</head>",
        "<body>",
        "<h1>GPUs of this cluster</h1>",
        _paragraph(summary(report)),
    ]
    if report.groups:
        parts.append(_table(HEADS, (cells(group) for group in report.groups), numbers=range(2, 6)))
    for kind, found in groupby(report.findings, lambda one: one.kind):
        parts += [f"<h2>{escape(wording.title(kind))}</h2>", _paragraph(wording.why(kind), "why"), _findings(list(found))]
    if not report.findings:
        parts.append(_paragraph("Nothing found."))
    parts += [_paragraph(line) for line in (*library(report), *unseen(report))]
    return "\n".join([*parts, "</body>", "</html>"]) + "\n"


def _findings(found: Sequence[Finding]) -> str:
    heads = ("Where", "What", "Next", "Nodes", "Pods", "GPUs", "USD/h")
    rows = []
    for one in found:
        usd = rounded(one.usd)
        counts = (one.nodes or "", one.pods or "", one.gpus or "", "" if usd is None else f"{usd:.2f}")
        rows.append((where(one), wording.fact(one), wording.advice(one), *map(str, counts)))
    return _table(heads, rows, numbers=range(3, 7), code=(2,))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = (), code: Sequence[int] = ()) -> str:
    def cell(tag: str, column: int, content: str) -> str:
        shown = escape(printable(content))
        mark = ' class="n"' if column in numbers else ""
        return f"<{tag}{mark}><code>{shown}</code></{tag}>" if column in code and tag == "td" else f"<{tag}{mark}>{shown}</{tag}>"

    lines = ["<table>", "<tr>" + "".join(cell("th", i, head) for i, head in enumerate(heads)) + "</tr>"]
    lines += ["<tr>" + "".join(cell("td", i, one) for i, one in enumerate(row)) + "</tr>" for row in rows]
    return "\n".join([*lines, "</table>"])


def _paragraph(content: str, mark: str = "") -> str:
    attribute = f' class="{mark}"' if mark else ""
    return f"<p{attribute}>{escape(printable(content))}</p>"
