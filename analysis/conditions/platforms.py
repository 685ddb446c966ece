"""Find what the platforms in force can't express: their nodes lack the label, or no list of values selects
exactly what is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policies.facts.device_modes import nobody_writes
from policies.offers.constraints import Constraint
from policies.offers.selectors import renderings
from policies.offers.table import AXES, Table
from policies.state.snapshot import Snapshot


def inexpressible(snapshot: Snapshot, *groups: Sequence[Constraint]) -> tuple[str, ...]:
    """Return one sentence per platform and field.

    ``groups``: constraints that apply together: what is required, what is default. Nothing is found without
    --platforms, when no placement is written at all.
    """
    if not snapshot.placed:
        return ()
    tables = snapshot.tables.values()
    return tuple(dict.fromkeys(text for group in groups for table in tables for text in _on(snapshot, table, group)))


def _on(snapshot: Snapshot, table: Table, constraints: Sequence[Constraint]) -> Iterator[str]:
    platform = table.platform.name
    for constraint in constraints:
        if platform in constraint.inexpressible:
            yield f"{platform}: {constraint.field} ({constraint.text}) cannot be expressed on this platform; ignored"
    for axis in AXES:
        group = [c for c in constraints if c.axis == axis and platform not in c.inexpressible]
        rows = table.all
        for constraint in group:
            rows &= constraint.rows
        if group and (how := _inexpressible(snapshot, table, axis, rows)):
            fields = " and ".join(f"{c.field} ({c.text})" for c in group)
            yield f"{platform}: {fields} {how}"


def _inexpressible(snapshot: Snapshot, table: Table, axis: str, rows: int) -> str:
    """Return what cannot be expressed for the devices of one vendor at a time, as a pod asks for them; ""
    if all can be."""
    worst = ""
    for universe in table.by_vendor.values():
        found = renderings(snapshot.catalog, table, next(a for a in AXES if a == axis), rows, universe)
        if not found:
            why = f"; {nobody_writes(table.unmaintained)}" if table.unmaintained else ""
            return f"cannot be expressed with the labels of this platform; ignored{why}"
        if not found[0].exact:
            worst = "can be expressed only in part; Berth writes that part"
    return worst
