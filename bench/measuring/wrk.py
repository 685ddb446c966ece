"""wrk, the load generator: a closed loop over a fixed number of kept TLS connections.

wrk and not oha: its Lua script rotates and numbers bodies, and it takes some 25 us of the load core for a call, so that the
server's core is the one that is full. It is a package of Debian, Ubuntu, Fedora and Homebrew.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.measuring.pinned import on_core
from tests.support.machine import BenchError

SCRIPT = Path(__file__).parent / "load.lua"
TRIES = (1, 2, 4, 8)
"""times as long, while a run is without any answer or calls are turned away: on a shared machine a core can be gone for a second"""
_STEP = 1_000_000
"""numbers given to each run: more calls than it makes"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one run saw. Times in microseconds."""

    calls: int
    turned_away: int
    """not answered with 200"""
    rate: float
    p50: float
    p90: float
    p99: float
    most: float
    load_core: float
    """share of the load core that wrk took: near 1 it was wrk that was measured"""


def found() -> str:
    """The program. Raises BenchError."""
    wrk = os.environ.get("BERTH_WRK") or shutil.which("wrk")
    if wrk is None:
        raise BenchError("there is no wrk here: apt install wrk (Debian, Ubuntu), or name it: BERTH_WRK=/path/to/wrk")
    return wrk


class Wrk:
    """Runs that never repeat a number."""

    def __init__(self, core: int) -> None:
        self._core = core
        self._next = 0

    def run(self, url: str, bodies: Path, *, connections: int, seconds: int = 1) -> Load:
        """Load ``url``. Raises BenchError where there is no wrk, and where an answer was not 200."""
        for times in TRIES:
            load = self._run(url, bodies, connections, seconds * times)
            if load.calls and not load.turned_away:
                return load
        raise BenchError(f"of {load.calls} calls to {url} {load.turned_away} were not answered with 200: is the machine this busy?")

    def _run(self, url: str, bodies: Path, connections: int, seconds: int) -> Load:
        command = [found(), "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(SCRIPT), url, "--"]
        command += [str(bodies), str(self._next)]
        self._next = (self._next + _STEP) % 100_000_000
        before = _children()
        done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=on_core(self._core))
        if done.returncode != 0 or not done.stdout.rstrip().endswith("}"):
            raise BenchError(f"wrk failed: {(done.stderr or done.stdout).strip()}")
        result = json.loads(done.stdout.rstrip().splitlines()[-1])
        if result["broken"]:
            raise BenchError(f"{result['broken']} connections to {url} broke")
        elapsed = result["us"] / 1e6
        return Load(
            calls=result["requests"],
            turned_away=result["denied"],
            rate=result["requests"] / elapsed,
            p50=result["p50"],
            p90=result["p90"],
            p99=result["p99"],
            most=result["most"],
            load_core=(_children() - before) / elapsed,
        )


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
