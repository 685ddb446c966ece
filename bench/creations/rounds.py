"""Rounds in turn (A B C A B C ...) of pods created on one API server, and what a candidate adds to a creation."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.creations.client import Created, Creations
from bench.creations.registrations import NONE, Candidate
from bench.measuring.intervals import RESAMPLES, Interval
from tests.support.machine import BenchError, cpu_seconds
from tests.testcluster.controlplane.cluster import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """How pods are created."""

    load: str
    writers: int
    dry_run: bool
    rounds: int

    def __str__(self) -> str:
        return f"{self.load}, {self.writers}, {'dry run' if self.dry_run else 'stored'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One candidate for one round; CPU time in microseconds for a pod, user and system."""

    created: Created
    control_plane: float
    own: float


Rounds = dict[str, list[Round]]
"""by candidate"""


@dataclass(slots=True, kw_only=True)
class Bench:
    """A control plane with its candidates."""

    cluster: Cluster
    candidates: Sequence[Candidate]
    seconds: float
    creations: Creations

    def in_turn(self, cell: Cell, pods: Path, *, uncounted: int = 0) -> Rounds:
        """Every candidate in every round; the first ``uncounted`` rounds only warm up. Raises BenchError where a pod is denied."""
        rounds: Rounds = {candidate.name: [] for candidate in self.candidates}
        for number in range(cell.rounds + uncounted):
            for candidate in self.candidates:
                seen = self.measured(candidate, cell, pods)
                if number >= uncounted:
                    rounds[candidate.name].append(seen)
        return rounds

    def measured(self, candidate: Candidate, cell: Cell, pods: Path) -> Round:
        """One run. What it stored is gone afterwards, so that each finds the same etcd."""
        before, own = self._control_plane(), candidate.cpu()
        created = self.creations.run(pods, candidate.namespace, writers=cell.writers, seconds=self.seconds, dry_run=cell.dry_run)
        after, owned = self._control_plane(), candidate.cpu()
        if created.failed or not created.pods:
            raise BenchError(f"{candidate.name}: {created.failed} of {created.pods} pods were not created: {created.said}")
        if not cell.dry_run:
            self.cluster.api.delete_all("v1", "Pod", candidate.namespace)
        return Round(
            created=created, control_plane=(after - before) / created.pods * 1e6, own=(owned - own) / created.pods * 1e6
        )  # fmt: skip

    def _control_plane(self) -> float:
        return sum(cpu_seconds(self.cluster.named[name].popen.pid) for name in ("etcd", "kube-apiserver"))


def p50(one: Round) -> float:
    """Microseconds."""
    return one.created.p50


def added(rounds: Rounds, name: str, figure: Callable[[Round], float] = p50) -> Interval:
    """What a candidate adds to a creation without a webhook in the same round: the median, with its 95 % interval."""
    return _median(_differences(rounds, name, figure))


def added_ratio(rounds: Rounds, ours: str, theirs: str, figure: Callable[[Round], float] = p50) -> Interval:
    """Of what ``ours`` adds to what ``theirs`` adds in the same round: the median. Not the geometric mean, as of rates: in a round
    that was disturbed one of them may seem to add nothing, or less."""
    pairs = zip(_differences(rounds, ours, figure), _differences(rounds, theirs, figure), strict=True)
    return _median([a / b if b else math.inf for a, b in pairs])


def _differences(rounds: Rounds, name: str, figure: Callable[[Round], float]) -> list[float]:
    return [figure(one) - figure(bare) for one, bare in zip(rounds[name], rounds[NONE], strict=True)]


def _median(values: Sequence[float]) -> Interval:
    """By the percentile bootstrap."""
    chance = random.Random(len(values))
    found = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return Interval(middle=statistics.median(values), low=found[int(RESAMPLES * 0.025)], high=found[int(RESAMPLES * 0.975)])
