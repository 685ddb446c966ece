"""Keys of labels and annotations that queue systems and sharing schedulers define, each beneath a prefix of its own.

A key beneath such a prefix that its reader does not define is ignored in silence. So is a label written as an
annotation, and the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from policies.nearest import slipped

Where = Literal["labels", "annotations"]
PLACES: tuple[Where, ...] = ("labels", "annotations")


class Slip(NamedTuple):
    """What was probably meant by a key that is ignored."""

    reader: str
    where: Where
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedKeys:
    """The keys beneath one prefix. All of them are given without it."""

    reader: str
    """Who reads them, as messages name it."""
    prefix: str
    labels: frozenset[str] = frozenset()
    """Those that are read as labels alone."""
    annotations: frozenset[str] = frozenset()
    """Those that are read as annotations alone."""
    others: frozenset[str] = frozenset()
    """Those that are right as either, or that authors do not write."""
    slips: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Wrong name -> right one, where they are not near by their letters."""

    def right(self, where: Where) -> frozenset[str]:
        """Return the whole keys of which nothing is to be said in this place."""
        return frozenset(self.prefix + name for name in (self.labels if where == "labels" else self.annotations) | self.others)

    def slip(self, where: Where, key: str) -> Slip | None:
        """Return what was meant by a key with this prefix; None if it is right, or like none."""
        name = key.removeprefix(self.prefix)
        known = self.labels | self.annotations | self.others
        meant = name if name in known else self.slips.get(name) or slipped(name, known)
        at_home = self.labels if where == "labels" else self.annotations
        if meant is None or meant in self.others or (meant == name and name in at_home):
            return None  # what is near a key that controllers write may be a newer one of theirs
        return Slip(self.reader, "labels" if meant in self.labels else "annotations", self.prefix + meant)
