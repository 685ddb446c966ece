"""What every measurement is given: the cores, the load generator, the rivals, a folder, and how much to measure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from bench.load import bodies
from bench.measuring import candidates
from bench.measuring.candidates import Server
from bench.measuring.wrk import Load, Wrk
from tests.support import machine
from tests.support.machine import Cores

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much: for a table that is kept, or to see that everything works."""

    rounds: int
    seconds: int
    """of one run; wrk takes whole ones"""
    quick: bool


FULL = Scale(rounds=7, seconds=1, quick=False)
QUICK = Scale(rounds=1, seconds=1, quick=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One candidate under one load for one round."""

    load: Load
    cpu: float
    """microseconds of the server for a call, user and system"""


Runs = dict[str, list[Run]]
"""by candidate, a run for each round"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    scale: Scale
    cores: Cores
    wrk: Wrk
    folder: Path
    drawings: Path
    """where SVGs go"""

    def programs(self) -> dict[str, list[str]]:
        """The rivals; in a quick run only those that were built before."""
        return candidates.programs(candidates.RIVALS, build=not self.scale.quick)

    def bodies(self, load: str) -> Path:
        """The file of a load."""
        return bodies.written(load, self.folder)

    def in_turn(self, servers: Sequence[Server], load: str, connections: int, *, rounds: int | None = None, times: int = 1) -> Runs:
        """A B C A B C ...: every candidate in every round. An uncounted run of each comes first. ``times``: as long."""
        runs: Runs = {server.name: [] for server in servers}
        file = self.bodies(load)
        for number in range((rounds or self.scale.rounds) + (not self.scale.quick)):
            for server in servers:
                before = server.process.cpu()
                seen = self.wrk.run(server.url, file, connections=connections, seconds=self.scale.seconds * times)
                if number or self.scale.quick:
                    runs[server.name].append(Run(load=seen, cpu=(server.process.cpu() - before) / seen.calls * 1e6))
        return runs


@contextmanager
def prepared(scale: Scale, drawings: Path) -> Iterator[Setting]:
    """With a folder that is gone afterwards. Raises BenchError where the machine lacks something."""
    with TemporaryDirectory(prefix="berth-bench-") as name:
        folder, cores = Path(name), machine.cores()
        candidates.certificate(folder / "tls")
        yield Setting(scale=scale, cores=cores, wrk=Wrk(cores.load), folder=folder, drawings=drawings)


def middle(rounds: Sequence[T], figure: Callable[[T], float]) -> float:
    """The median of a figure over the rounds."""
    return statistics.median(figure(one) for one in rounds)


def milliseconds(us: float) -> str:
    return f"{us / 1000:.2f}" if us < 10_000 else f"{us / 1000:.0f}"
