"""The answer of `berth effective` as a table for people, and as one JSON value for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from analysis.conditions.server_options import describe_platforms, platforms_value
from analysis.conditions.words import acting_instead
from analysis.effective.effective import Effective, Layer, NamespacePolicy, reach
from analysis.effective.effective_probe import PodKind
from analysis.effective.effective_rows import EffectiveRow
from cli.output.table import Styled, align_row, shrink_columns
from cli.terminal.screen import PLAIN, Style, Terminal
from cli.terminal.widths import width as columns
from documents.printable import printable
from kube import duration
from policies.objects.wording import condition, describe_scope
from policies.state.objects import ObjectEntry, id_of

SECTIONS = ("require", "default", "allow")


_UNWRAPPED = 100
"""Columns of what goes to no terminal: a page of a text."""
_WIDEST = 120
"""Columns of the widest line: longer ones are hard to follow."""


def table(answer: Effective, wrong: Sequence[ObjectEntry], screen: Terminal = PLAIN) -> str:
    """Return sections, each a heading and lines that fit the screen (except for names that are longer)."""
    width = _UNWRAPPED if screen.width is None else min(_WIDEST, screen.width)
    parts = [("scope", _where(answer, width)), ("active policies", _in_force(answer, width))]
    parts += [(name, list(_rows([r for r in answer.look.rows if r.section == name], width))) for name in SECTIONS]
    parts += [
        ("denied because", list(_notes(map(str, answer.look.denied), width, "  "))),
        ("warnings", list(_notes(answer.look.remarks, width, "  "))),
        ("for some pods only", list(_layers(answer.some, answer, width))),
        ("in Audit or Warn, not enforced", list(_layers(answer.audit_outcomes, answer, width))),
        ("invalid policies", [line for policy in wrong for line in _wrong(policy, width)]),
    ]
    styles: Mapping[str, Style] = {"denied because": "bad", "invalid policies": "bad"}
    heads = {name: screen.paint(styles.get(name, "strong"), name) for name, _ in parts}
    return "\n".join("\n".join([heads[name], *map(printable, lines), ""]) for name, lines in parts if lines)


def _where(answer: Effective, width: int) -> list[str]:
    labels = ", ".join(f"{key}={value}" for key, value in answer.labels)
    silent = f"{answer.kind}, without placement settings of its own" + ("" if answer.kind.gpus else "; evaluated with 1 nvidia.com/gpu")
    cells = [("namespace", answer.namespace, ""), ("labels", labels, ""), ("pod", silent, "")]
    if answer.platforms is not None:
        cells.append(("platforms", describe_platforms(answer.platforms), ""))
    if answer.excluded:
        cells.append(("excluded", "Berth is not called for pods in this namespace, so nothing below applies", ""))
    return list(_cells(cells, width))


def _in_force(answer: Effective, width: int) -> list[str]:
    if not answer.policies:
        return ["  none: pods are admitted unchanged"]
    order = {"always": 0, "sometimes": 1, "never": 2}
    policy = sorted(answer.policies, key=lambda s: order[s.acts])
    return list(_cells([(s.policy.id, _mode(s), reach(s)) for s in policy], width))


def _mode(policy: NamespacePolicy) -> str:
    declared = policy.policy.mode
    return policy.mode if policy.mode == declared else f"{policy.mode} (--max-mode caps {declared})"


def _rows(rows: Iterable[EffectiveRow], width: int, indent: str = "  ", *, section: bool = False) -> Iterator[str]:
    found = list(rows)
    cells = [(f"{row.section}.{row.field}" if section else row.field, row.text, ", ".join(row.by)) for row in found]
    widths = _widths(cells, width - len(indent))
    for row, cell in zip(found, cells, strict=True):
        yield from _line(cell, widths, indent)
        yield from _notes(row.notes, width, indent + "    ")


def _layers(layers: Sequence[Layer], answer: Effective, width: int) -> Iterator[str]:
    for layer in layers:
        named = [name for name in layer.policies if name not in layer.title]
        yield from _wrapped(layer.title + (f": {', '.join(named)}" if named else ""), width, "  ", "    ")
        if layer.kind is None:
            yield "    no pod that requests a GPU matches"
            continue
        if layer.kind != answer.kind:
            yield from _wrapped(f"evaluated for {layer.kind}: {' '.join(_options(layer.kind, answer.kind))}", width, "    ", "      ")
        if not layer.rows and not layer.denied:
            yield "    no change"
        yield from _rows(layer.rows, width, "    ", section=True)
        yield from _notes([f"would be denied: {violation}" for violation in layer.denied], width, "    ")


def _options(kind: PodKind, base: PodKind) -> Iterator[str]:
    """Yield the options to add to the command to see this kind alone."""
    if kind.workload != base.workload:
        yield f"--workload {kind.workload}"
    if kind.labels != base.labels:
        yield "--pod-labels " + (",".join(f"{key}={value}" for key, value in kind.labels or ()) or '""')
    if kind.gpus != base.gpus:
        yield f"--gpus {kind.gpus}"
    if kind.seconds != base.seconds and kind.seconds is not None:
        yield f"--duration {duration.format_duration(kind.seconds)}"


def _wrong(entry: ObjectEntry, width: int) -> Iterator[str]:
    yield from _wrapped(f"{id_of(entry.key)}: {acting_instead(entry)}", width, "  ", "    ")
    yield from _notes(entry.understood.errors, width, "    ")


# --- lines ---

_Cell = tuple[str, str, str]


def _cells(cells: Sequence[_Cell], width: int, indent: str = "  ") -> Iterator[str]:
    widths = _widths(cells, width - len(indent))
    for cell in cells:
        yield from _line(cell, widths, indent)


def _widths(cells: Sequence[_Cell], width: int) -> list[int]:
    """Return the column widths: those of the contents; if there is no room, the widest shrinks, to 20 and to its longest word at
    least: names are not broken, and columns stay aligned."""
    found = [max((columns(cell[i]) for cell in cells), default=0) for i in range(3)]
    least = [max((20, *(columns(word) for cell in cells for word in cell[i].split(" ")))) for i in range(3)]
    return shrink_columns(found, least, width)


def _line(cell: _Cell, widths: Sequence[int], indent: str) -> Iterator[str]:
    row = [Styled(printable(text), None) for text in cell]
    yield from (f"{indent}{line}".rstrip() for line in align_row(row, widths))


def _notes(notes: Iterable[str], width: int, indent: str) -> Iterator[str]:
    for note in notes:
        yield from _wrapped(note, width, f"{indent}- ", f"{indent}  ")


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, break_long_words=False)


# --- JSON ---


def effective_value(answer: Effective, wrong: Sequence[ObjectEntry]) -> dict[str, Any]:
    """Return the same as a JSON value for programs."""
    return {
        "namespace": answer.namespace,
        "labels": dict(answer.labels),
        "excluded": answer.excluded,
        "pod": _kind(answer.kind),
        "platforms": platforms_value(answer.platforms),
        "policies": [_layer_policy(one) for one in answer.policies],
        **{name: [_row(row) for row in answer.look.rows if row.section == name] for name in SECTIONS},
        "denied": list(map(str, answer.look.denied)),
        "remarks": list(answer.look.remarks),
        "forSomePods": [_layer(one) for one in answer.some],
        "would": [_layer(one) for one in answer.audit_outcomes],
        "notAccepted": [{"object": id_of(one.key), "errors": list(one.understood.errors), "lastGoodActs": one.stale} for one in wrong],
    }


def _kind(kind: PodKind) -> dict[str, Any]:
    labels = None if kind.labels is None else dict(kind.labels)
    return {"workload": kind.workload, "labels": labels, "gpus": kind.gpus, "seconds": kind.seconds}


def _layer_policy(one: NamespacePolicy) -> dict[str, Any]:
    policy = one.policy
    named = {"object": policy.id, "mode": one.mode, "declaredMode": policy.mode, "acts": one.acts}
    return {**named, "scope": describe_scope(policy), "pods": condition(policy), "excludes": sorted(policy.exclude_users)}


def _row(row: EffectiveRow) -> dict[str, Any]:
    return {"field": row.field, "value": row.value, "text": row.text, "setBy": list(row.by), "notes": list(row.notes)}


def _layer(layer: Layer) -> dict[str, Any]:
    rows = [{"section": row.section, **_row(row)} for row in layer.rows]
    kind = None if layer.kind is None else _kind(layer.kind)
    return {"title": layer.title, "policies": list(layer.policies), "pod": kind, "differs": rows, "denied": list(map(str, layer.denied))}
