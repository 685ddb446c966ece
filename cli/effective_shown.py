"""The answer of `berth effective` as a table for people, and as one JSON value for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from policies import duration
from policies.effective import Effective, Layer, Standing
from policies.effective_probe import Kind
from policies.effective_rows import Row

SECTIONS = ("require", "default", "allow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """An object that is not accepted."""

    id: str
    errors: tuple[str, ...]
    stale: bool
    """its last good form acts"""
    generation: int | None
    """of that form"""

    @property
    def text(self) -> str:
        if not self.stale:
            return "does not act"
        return "its last good form acts" + ("" if self.generation is None else f" (generation {self.generation})")


def table(answer: Effective, wrong: Sequence[Wrong], width: int) -> str:
    """Sections, each a heading and lines of at most ``width`` columns (but for names that are longer)."""
    parts = [("where", _where(answer, width)), ("in force", _in_force(answer, width))]
    parts += [(name, list(_rows([r for r in answer.look.rows if r.section == name], width))) for name in SECTIONS]
    parts += [
        ("such a pod would be refused", list(_notes(answer.look.refused, width, "  "))),
        ("also said", list(_notes(answer.look.said, width, "  "))),
        ("for some pods", list(_layers(answer.some, answer, width))),
        ("would (Audit, Warn)", list(_layers(answer.would, answer, width))),
        ("not accepted", [line for one in wrong for line in _wrong(one, width)]),
    ]
    return "\n".join("\n".join([name, *lines, ""]) for name, lines in parts if lines)


def _where(answer: Effective, width: int) -> list[str]:
    labels = ", ".join(f"{key}={value}" for key, value in answer.labels)
    silent = f"{answer.kind}, that says nothing itself" + ("" if answer.kind.gpus else "; looked at with 1 nvidia.com/gpu")
    cells = [("namespace", answer.namespace, ""), ("labels", labels, ""), ("pod", silent, "")]
    if answer.excluded:
        cells.append(("excluded", "Berth is never called for pods of this namespace: nothing below acts", ""))
    return list(_cells(cells, width))


def _in_force(answer: Effective, width: int) -> list[str]:
    if not answer.policies:
        return ["  no policy: pods are admitted as they are"]
    order = {"always": 0, "sometimes": 1, "never": 2}
    standing = sorted(answer.policies, key=lambda s: order[s.acts])
    return list(_cells([(s.id, _mode(s), _why(s)) for s in standing], width))


def _mode(standing: Standing) -> str:
    return standing.mode if standing.mode == standing.declared else f"{standing.mode} (--max-mode; says {standing.declared})"


def _why(standing: Standing) -> str:
    never = "not for such pods: " if standing.acts == "never" else ""
    pods = f"{', only ' if standing.acts == 'sometimes' else ', '}{standing.condition}" if standing.condition else ""
    excludes = f"; not for {', '.join(standing.excludes)}" if standing.excludes else ""
    return f"{never}{standing.scope}{pods}{excludes}"


def _rows(rows: Iterable[Row], width: int, indent: str = "  ", section: bool = False) -> Iterator[str]:
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
            yield "    no pod that asks for a GPU is one"
            continue
        if layer.kind != answer.kind:
            yield from _wrapped(f"as on {layer.kind}: {' '.join(_options(layer.kind, answer.kind))}", width, "    ", "      ")
        if not layer.rows and not layer.refused:
            yield "    changes nothing"
        yield from _rows(layer.rows, width, "    ", section=True)
        yield from _notes([f"would be refused: {text}" for text in layer.refused], width, "    ")


def _options(kind: Kind, base: Kind) -> Iterator[str]:
    """What to add to the command to see this kind alone."""
    if kind.workload != base.workload:
        yield f"--workload {kind.workload}"
    if kind.labels != base.labels:
        yield "--pod-labels " + (",".join(f"{key}={value}" for key, value in kind.labels or ()) or '""')
    if kind.gpus != base.gpus:
        yield f"--gpus {kind.gpus}"
    if kind.seconds != base.seconds and kind.seconds is not None:
        yield f"--duration {duration.text(kind.seconds)}"


def _wrong(one: Wrong, width: int) -> Iterator[str]:
    yield from _wrapped(f"{one.id}: {one.text}", width, "  ", "    ")
    yield from _notes(one.errors, width, "    ")


# --- lines -------------------------------------------------------------------------------------------------------------

_Cell = tuple[str, str, str]


def _cells(cells: Sequence[_Cell], width: int, indent: str = "  ") -> Iterator[str]:
    widths = _widths(cells, width - len(indent))
    for cell in cells:
        yield from _line(cell, widths, indent)


def _widths(cells: Sequence[_Cell], width: int) -> tuple[int, int, int]:
    """As wide as what is in them; the widest gives way, but keeps 20."""
    found = [max((len(cell[i]) for cell in cells), default=0) for i in range(3)]
    while sum(found) + 4 > width and max(found) > 20:
        found[found.index(max(found))] -= 1
    return found[0], found[1], found[2]


def _line(cell: _Cell, widths: tuple[int, int, int], indent: str) -> Iterator[str]:
    columns = [_split(text, size) for text, size in zip(cell, widths, strict=True)]
    for number in range(max(map(len, columns))):
        texts = [column[number] if number < len(column) else "" for column in columns]
        yield (indent + "  ".join(text.ljust(size) for text, size in zip(texts, widths, strict=True))).rstrip()


def _split(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 1), break_on_hyphens=False) or [""]


def _notes(notes: Iterable[str], width: int, indent: str) -> Iterator[str]:
    for note in notes:
        yield from _wrapped(note, width, f"{indent}- ", f"{indent}  ")


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, break_long_words=False)


# --- JSON --------------------------------------------------------------------------------------------------------------


def value(answer: Effective, wrong: Sequence[Wrong]) -> dict[str, Any]:
    """The same for programs."""
    return {
        "namespace": answer.namespace,
        "labels": dict(answer.labels),
        "excluded": answer.excluded,
        "pod": _kind(answer.kind),
        "policies": [_standing(one) for one in answer.policies],
        **{name: [_row(row) for row in answer.look.rows if row.section == name] for name in SECTIONS},
        "refused": list(answer.look.refused),
        "remarks": list(answer.look.said),
        "forSomePods": [_layer(one) for one in answer.some],
        "would": [_layer(one) for one in answer.would],
        "notAccepted": [{"object": one.id, "errors": list(one.errors), "lastGoodActs": one.stale} for one in wrong],
    }


def _kind(kind: Kind) -> dict[str, Any]:
    labels = None if kind.labels is None else dict(kind.labels)
    return {"workload": kind.workload, "labels": labels, "gpus": kind.gpus, "seconds": kind.seconds}


def _standing(one: Standing) -> dict[str, Any]:
    named = {"object": one.id, "mode": one.mode, "declaredMode": one.declared, "acts": one.acts}
    return {**named, "scope": one.scope, "pods": one.condition, "excludes": list(one.excludes)}


def _row(row: Row) -> dict[str, Any]:
    return {"field": row.field, "value": row.value, "text": row.text, "setBy": list(row.by), "notes": list(row.notes)}


def _layer(layer: Layer) -> dict[str, Any]:
    rows = [{"section": row.section, **_row(row)} for row in layer.rows]
    kind = None if layer.kind is None else _kind(layer.kind)
    return {"title": layer.title, "policies": list(layer.policies), "pod": kind, "differs": rows, "refused": list(layer.refused)}
