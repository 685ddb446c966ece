"""One HTML file, and that of `berth audit`: nothing is loaded, nothing runs, and every text from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from cli.output.table import OutputTable
from documents.printable import printable

ALL = "(all)"
"""Stands for every policy in a row of a namespace."""
MOST = 500
"""Results that are listed: what a browser shows at once. The JSON has all."""
_HEADS = ("NAMESPACE", "WORKLOAD", "POLICY", "FINDING", "PODS", "GPUS", "USD/H", "MESSAGE")
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


def page(title: str, parts: Iterable[str]) -> str:
    """Return the page. ``parts``: HTML, made by the functions below."""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            "</head>",
            "<body>",
            *parts,
            "</body>",
            "</html>\n",
        ]
    )


def heading(content: str, level: int = 1) -> str:
    """Return a heading."""
    return f"<h{level}>{escape(printable(content))}</h{level}>"


def paragraph(content: str, mark: str = "") -> str:
    """Return a paragraph. ``mark``: its class."""
    attribute = f' class="{mark}"' if mark else ""
    return f"<p{attribute}>{escape(printable(content))}</p>"


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
