"""Calls at fixed times, so that a server that stalls is not spared the calls that were due meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.measuring.candidates import Server
from bench.measuring.pinned import on_core
from tests.support.machine import BenchError
from tests.testcluster import go_build

MODULE = Path(__file__).parent / "arrivals"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """What a run saw; times in microseconds from the moment a call was due."""

    calls: int
    shed: int
    """answered with another status than 200: the server said that it has too much to do"""
    rate: float
    """answers a second; below what was asked for, the server fell behind"""
    percentiles: tuple[tuple[float, float], ...]
    """(percent, latency), rising"""
    begin: float
    """seconds since 1970 of the first slot"""
    slot: float
    """seconds"""
    slots: tuple[float, ...]
    """the longest latency of the calls due in each slot"""

    def at(self, percent: float) -> float:
        """The latency that so many percent of calls stayed within."""
        return next(latency for share, latency in self.percentiles if share >= percent)

    def longest(self, since: float, until: float) -> float:
        """Of the calls due in that time (seconds since 1970); 0 where there were none."""
        first, last = (int((moment - self.begin) / self.slot) for moment in (since, until))
        return max(self.slots[max(first, 0) : max(last, 0) + 1], default=0.0)


class Arriving:
    """A run under way. Raises BenchError where there is no Go."""

    def __init__(
        self, server: Server, bodies: Path, core: int, *, rate: float, seconds: float, connections: int = 25, nice: int = 0
    ) -> None:
        command = [*_command(server, bodies, connections), "-rate", str(rate), "-seconds", str(seconds)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=on_core(core))
        if nice:
            os.setpriority(os.PRIO_PROCESS, self._process.pid, nice)

    def running(self) -> bool:
        return self._process.poll() is None

    def result(self) -> Arrivals:
        """Once it has ended. Raises BenchError where a connection broke."""
        out, err = self._process.communicate()
        if self._process.returncode != 0:
            raise BenchError(f"calls failed: {err.strip()}")
        return _read(out)


def anew(server: Server, bodies: Path, core: int, *, seconds: float, connections: int) -> Arrivals:
    """A new connection for each call, one after the other on each of so many lines; times from before the connection is made."""
    command = [*_command(server, bodies, connections), "-anew", "-seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=on_core(core))
    if done.returncode != 0:
        raise BenchError(f"calls on new connections failed: {done.stderr.strip()}")
    return _read(done.stdout)


def _read(out: str) -> Arrivals:
    result = json.loads(out)
    return Arrivals(
        calls=result["calls"],
        shed=result["denied"],
        rate=result["rate"],
        percentiles=tuple((share, latency) for share, latency in result["percentiles"]),
        begin=result["begin"],
        slot=result["slot_seconds"],
        slots=tuple(result["slots"] or ()),
    )


def _command(server: Server, bodies: Path, connections: int) -> list[str]:
    return [_program(), "-address", server.address, "-ca", str(server.ca), "-bodies", str(bodies), "-connections", str(connections)]


def _program() -> str:
    try:
        return str(go_build.built(MODULE, ".", "arrivals"))
    except go_build.NoGo as error:
        raise BenchError(str(error)) from None
