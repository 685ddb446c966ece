"""Give every question its cores, its folder and its amounts, and load servers with the CPU that a call costs them."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from bench.harness.generators import LoadRun, Vegeta, wrk
from bench.harness.intervals import in_turn, median, ratio
from bench.inputs import bodies
from tests.support import certificate_files, machine
from tests.support.machine import BenchError, Cores
from tests.testcluster.calls import request_once

T = TypeVar("T")
Runs = dict[str, list[LoadRun]]
"""A run of each candidate for every round"""
COMPARISON = ("load, connections", "who", "reviews/s", "p50 ms", "p99 ms", "CPU us", "Berth's rate to its", "its CPU to Berth's")
PATIENCE = 120
"""Seconds that a start or an answer may take: the start with ten thousand policies takes some twenty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A server that answers reviews over TLS."""

    name: str
    address: str
    """host:port"""
    ca: Path
    pid: int

    def post(self, body: bytes) -> bytes:
        """Return the answer to a review. Raises BenchError if its status is not 200."""
        context = ssl.create_default_context(cafile=str(self.ca))
        connection = http.client.HTTPSConnection(self.address, context=context, timeout=PATIENCE)
        answer = request_once(connection, "POST", "/mutate?timeout=5s", body, {"Content-Type": "application/json"})
        if answer.status != 200:
            raise BenchError(f"{self.name} answered {answer.status}: {answer.body[:200]!r}")
        return answer.body


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSetting:
    """What a question is given."""

    cores: Cores
    folder: Path
    quick: bool
    """tiny amounts, to see that everything works"""
    rounds: int
    other: Path | None = None
    """another checkout of Berth"""

    def pick(self, full: T, quick: T) -> T:
        """Return one of two amounts."""
        return quick if self.quick else full

    def bodies(self, load: str) -> Path:
        """Return the file of a load."""
        return bodies.written(load, self.folder)

    def turns(self, servers: Sequence[Candidate], run: Callable[[Candidate], LoadRun]) -> Runs:
        """Run every server in every round."""
        return in_turn({server.name: partial(run, server) for server in servers}, self.rounds, warm_up=self.pick(1, 0))

    def closed(self, server: Candidate, load: str, connections: int, seconds: int = 1) -> LoadRun:
        """Load a server in a closed loop on kept connections."""
        with_cpu = _with_cpu(server)
        return with_cpu(wrk(f"https://{server.address}", self.bodies(load), self.cores.load, connections=connections, seconds=seconds))

    def fresh(self, server: Candidate, load: str, connections: int, seconds: float) -> LoadRun:
        """Load a server in a closed loop with a new connection for each call."""
        with_cpu = _with_cpu(server)
        return with_cpu(self.start(server, load, seconds, {"keepalive": False, "max-workers": connections}).result())

    def start(self, server: Candidate, load: str, seconds: float, flags: Mapping[str, object]) -> Vegeta:
        """Start a run of vegeta over as many connections as an API server keeps."""
        every = {"duration": f"{seconds}s", "connections": 25, "max-connections": 25, **flags}
        return Vegeta(f"https://{server.address}/mutate?timeout=5s", server.ca, self.bodies(load), every, core=self.cores.load)


@contextmanager
def prepared(cores: Cores, *, quick: bool, rounds: int, other: Path | None) -> Iterator[BenchSetting]:
    """Prepare a folder with a certificate, gone afterwards."""
    with TemporaryDirectory(prefix="berth-bench-") as name:
        certificate_files.serving_files(Path(name) / "tls", ("127.0.0.1", "localhost"))
        yield BenchSetting(cores=cores, folder=Path(name), quick=quick, rounds=rounds, other=other)


def comparison(label: str, runs: Mapping[str, Sequence[LoadRun]]) -> Iterator[Sequence[str]]:
    """Yield rows of ``COMPARISON``: the first candidate, then each of the others beside it."""
    first, *others = runs
    for name in (first, *others):
        full = " (the generator's core is full)" if max(run.generator / run.seconds for run in runs[name]) > 0.9 else ""
        latencies = (milliseconds(median(runs[name], figure)) for figure in ("p50", "p99"))
        ratios = (str(ratio(runs[first], runs[name], "rate")), str(ratio(runs[name], runs[first], "cpu"))) if name in others else ("", "")
        rate, cpu = median(runs[name], "rate"), median(runs[name], "cpu")
        yield ("" if ratios[0] else label, name, f"{rate:,.{0 if rate >= 200 else 1}f}{full}", *latencies, f"{cpu:,.0f}", *ratios)


def milliseconds(us: float) -> str:
    """Return microseconds as the milliseconds of a table."""
    return f"{us / 1000:.2f}" if us < 10_000 else f"{us / 1000:.0f}"


def _with_cpu(server: Candidate) -> Callable[[LoadRun], LoadRun]:
    """Return what adds the CPU that a server used since now."""
    before = machine.cpu_seconds(server.pid)
    return lambda run: replace(run, cpu=(machine.cpu_seconds(server.pid) - before) / run.calls * 1e6)
