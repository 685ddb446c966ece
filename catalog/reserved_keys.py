"""Keys of labels and annotations that queue systems and sharing schedulers define, each beneath a prefix of its own.

A key beneath such a prefix that its reader does not define is ignored in silence. So is a label written as an
annotation, and the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from catalog.nearest import slipped

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
    of_pods: bool = False
    """True if they are read of pods alone: on the workload that makes the pods they are ignored."""
    labels: frozenset[str] = frozenset()
    """Those that are read as labels; one that is also read as an annotation is listed twice."""
    annotations: frozenset[str] = frozenset()
    """Those that are read as annotations."""
    others: frozenset[str] = frozenset()
    """Those that controllers write, or of which it is not known where they are read."""
    slips: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Wrong name -> right one, where they are not near by their letters."""

    def right(self, where: Where) -> frozenset[str]:
        """Return the whole keys of which nothing is to be said in this place."""
        return frozenset(self.prefix + name for name in (self.labels if where == "labels" else self.annotations) | self.others)

    def slip(self, where: Where, key: str) -> Slip | None:
        """Return what was meant by a key with this prefix; None if it is right, or like none."""
        name = key.removeprefix(self.prefix)
        known = self.labels | self.annotations | self.others
        near = name if name in known else slipped(name, known.union(self.slips))
        meant = None if near is None else self.slips.get(near, near)
        at_home = self.labels if where == "labels" else self.annotations
        if meant is None or meant in self.others or (meant == name and name in at_home):
            return None  # what is near a key that controllers write may be a newer one of theirs
        if meant in at_home:
            return Slip(self.reader, where, self.prefix + meant)
        return Slip(self.reader, "labels" if where == "annotations" else "annotations", self.prefix + meant)
