"""What faults have cost, one after the other, as a table."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.e2e.faults.load import Load
from tests.support import results_page

FIRST_ATTEMPTS = 4
"""Connections that are tried at once when all are lost, by what follows the cluster and by what writes to it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One, in seconds."""

    down: float
    tried: int
    """connections that the replica tried meanwhile"""
    again: int
    """connections that it made afterwards, until it agreed"""
    agreed: float
    """from the end of the fault, and from writes to policies just before or after it, until the replica knew all that is stored"""


@dataclass(slots=True)
class Figures:
    """Of one kind of fault, again and again."""

    resident: list[float] = field(default_factory=list)
    """MiB of the replica, before and after all of them"""
    what: str = ""
    faults: list[Fault] = field(default_factory=list)

    def add(self, what: str, fault: Fault) -> None:
        """One more."""
        self.what = what
        self.faults.append(fault)

    def lines(self, load: Load) -> Iterator[str]:
        """For bench/RESULTS.md."""
        yield f"## {self.what}: {len(self.faults)} times"
        yield ""
        yield "One replica behind a TCP proxy; GPU pods created through the API server and reviews posted to the replica all the while, and"
        yield "policies changed, made and deleted in every fault. Agreed: it knows all versions of all objects, compared digest by digest."
        yield ""
        yield from results_page.table(("seconds", "shortest", "p50", "longest"), [_row(*one) for one in self._figures()])
        yield ""
        stored, asked = load.created["stored"], load.asked["200"]
        claim = f"{len(load.wrong)} of {stored} stored and {asked} decided by reviews"
        yield results_page.shown("unpoliced or wrongly policed pods 0", claim, held=not load.wrong)
        yield from self._connections()
        yield f"- one process throughout, of {self.resident[0]:.0f} MB before and {self.resident[-1]:.0f} MB after"

    def _figures(self) -> Iterator[tuple[str, list[float]]]:
        yield "down", [one.down for one in self.faults]
        yield "agreed after", [one.agreed for one in self.faults]

    def _connections(self) -> Iterator[str]:
        down, tried = sum(one.down for one in self.faults), sum(one.tried for one in self.faults)
        if down >= 1:
            yield results_page.shown("reconnects under one per second while it lasts", f"{tried} in {down:.0f} s", held=tried < down)
        yield f"- connections made to come back: {statistics.median(one.again for one in self.faults):.0f} (median)"


def _row(what: str, seconds: list[float]) -> tuple[str, ...]:
    return what, *(f"{one:.2f}" for one in (min(seconds), statistics.median(seconds), max(seconds)))
