"""Compare rows of the catalog with the rows of a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

Rows = Mapping[str, Mapping[str, object]]
"""Name of a row -> its fields. A field that is None is unknown, and no difference."""
Kind = Literal["missing", "extra", "differs"]


@dataclass(frozen=True, kw_only=True)
class Difference:
    kind: Kind
    section: str
    row: str
    source: str
    """The module and its version."""
    field: str = ""
    ours: object = None
    theirs: object = None

    def __str__(self) -> str:
        if self.kind == "differs":
            return f"differs  {self.section} {self.row} {self.field}: catalog {self.ours}, {self.source} {self.theirs}"
        place = "in the catalog alone" if self.kind == "extra" else f"in {self.source} alone"
        return f"{self.kind:<8} {self.section} {self.row}: {place}"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What the catalog and a source say of the same rows."""

    section: str
    source: str
    ours: Rows
    theirs: Rows
    complete: bool = False
    """True if the source has every row: one of the catalog that it lacks is extra."""
    lists: bool = False
    """True if the catalog should have every row of the source: one that it lacks is missing."""

    def differences(self) -> Iterator[Difference]:
        """Yield missing rows, then extra rows, then fields that differ."""
        if self.lists:
            for row in sorted(self.theirs.keys() - self.ours.keys()):
                yield Difference(kind="missing", section=self.section, row=row, source=self.source)
        if self.complete:
            for row in sorted(self.ours.keys() - self.theirs.keys()):
                yield Difference(kind="extra", section=self.section, row=row, source=self.source)
        for row in sorted(self.shared):
            for field, theirs in self.theirs[row].items():
                if theirs is not None and (ours := self.ours[row].get(field)) != theirs:
                    yield Difference(
                        kind="differs", section=self.section, row=row, source=self.source, field=field, ours=ours, theirs=theirs
                    )

    @property
    def shared(self) -> frozenset[str]:
        """The rows that both have."""
        return frozenset(self.ours.keys() & self.theirs.keys())


@dataclass(frozen=True, kw_only=True)
class Deliberate:
    """A difference that is meant: its reason, and which rows it is about."""

    section: str
    row: str
    """A name, or a glob."""
    reason: str
    field: str = ""
    source: str = ""
    """The beginning of the module's path; empty: any."""

    def covers(self, difference: Difference) -> bool:
        return (
            difference.section == self.section
            and fnmatchcase(difference.row, self.row)
            and self.field in ("", difference.field)
            and difference.source.startswith(self.source)
        )


def undeclared(differences: Sequence[Difference], declared: Sequence[Deliberate]) -> tuple[list[Difference], list[Deliberate]]:
    """Return the differences that nobody declared, and the declarations that no difference needs any more."""
    left = [difference for difference in differences if not any(entry.covers(difference) for entry in declared)]
    return left, [entry for entry in declared if not any(entry.covers(difference) for difference in differences)]
