"""Run load generators: wrk for closed loops on kept connections, vegeta for fixed times, new connections and pods on an API server.

wrk takes some 25 us of the load core for a call, so the server's core is the one that is full, and its script numbers every body. vegeta
takes some 85 us, keeps to its times whatever the server does, and counts the wait for a connection.
"""

from __future__ import annotations

import base64
import csv
import itertools
import json
import os
import resource
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import orjson

from bench.inputs import bodies as inputs
from tests.support.machine import BenchError
from tests.testcluster import go_build

FOLDER = Path(__file__).parent
_numbers = itertools.count(step=1_000_000)
"""First numbers of runs, each of which makes fewer calls"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRun:
    """What one run saw. Times are in microseconds."""

    calls: int
    failed: int
    """answers with another status than the expected one"""
    seconds: float
    p50: float
    p99: float
    longest: float
    generator: float
    """CPU seconds of the load generator: near ``seconds``, it is the generator that was measured"""
    message: str = ""
    """of the first call that failed"""
    latencies: Sequence[tuple[float, float]] = ()
    """(seconds since 1970 at which a call was sent, latency), by the first; of vegeta alone"""
    cpu: float = 0.0
    """CPU microseconds of the server for a call"""

    @property
    def rate(self) -> float:
        """Return the calls that were answered in a second."""
        return self.calls / self.seconds


def wrk(url: str, bodies: Path, core: int, *, connections: int, seconds: int) -> LoadRun:
    """Load ``url`` in a closed loop. Raises BenchError if wrk is not installed or answers are not 200."""
    program = os.environ.get("BERTH_WRK") or shutil.which("wrk")
    if not program:
        raise BenchError("there is no wrk here: apt install wrk (Debian, Ubuntu), or name it: BERTH_WRK=/path/to/wrk")
    for times in (1, 2, 4, 8):  # repeated for longer if calls fail: on a shared machine a core can be gone for a second
        options = ["-t1", f"-c{connections}", f"-d{seconds * times}s", "--timeout", "30s", "-s", str(FOLDER / "wrk.lua")]
        command, before = [program, *options, url, "--", str(bodies), str(_first_number())], _children()
        done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=on_core(core))
        used = _children() - before
        if done.returncode != 0 or not done.stdout.rstrip().endswith("}"):
            raise BenchError(f"wrk failed: {(done.stderr or done.stdout).strip()}")
        result = json.loads(done.stdout.rstrip().splitlines()[-1])
        if result["calls"] and not result["failed"]:
            return LoadRun(**result, generator=used)
    raise BenchError(f"of {result['calls']} calls to {url} {result['failed']} were not answered with 200: is the machine this busy?")


class Vegeta:
    """A run of vegeta in the background; ``flags`` are those of ``vegeta attack``. Raises BenchError if Go is not installed."""

    def __init__(
        self, url: str, ca: Path, bodies: Path, flags: Mapping[str, object], *, core: int | None = None, token: str = "", calls: int = 0
    ) -> None:
        """Send the bodies of a file in turn, each with a number of its own, or so many ``calls`` and no more."""
        try:
            self._program = str(go_build.built(FOLDER / "load", "github.com/tsenart/vegeta/v12", "vegeta"))
        except go_build.NoGo as error:
            raise BenchError(str(error)) from None
        first = _first_number()
        self._results, self._targets = bodies.with_name(f"{first}.results"), bodies.with_name(f"{first}.targets")
        self._targets.write_bytes(b"".join(targets(url, bodies, token=token, first=first, calls=calls)))
        self._expected = "201" if token else "200"
        self._warm_up = 0.5 if flags.get("rate") else 0.0  # seconds in which the first calls make the connections
        given = {
            "root-certs": ca,
            "targets": self._targets,
            "lazy": bool(calls),
            "output": self._results,
            "rate": 0,
            "timeout": "300s",
            **flags,
        }
        words = (f"-{name}={value}" for name, value in given.items())
        command = [self._program, "attack", "-format=json", "-http2=false", "-max-body=2000", *words]
        self.process = subprocess.Popen(command, preexec_fn=None if core is None else on_core(core))

    def result(self) -> LoadRun:
        """Wait for the end. Raises BenchError if vegeta failed or a call had no answer."""
        before = _children()
        if self.process.wait() != 0:
            raise BenchError("vegeta failed")
        used = _children() - before
        encoded = subprocess.run([self._program, "encode", "-to=csv", self._results], capture_output=True, text=True, check=True).stdout
        for file in (self._results, self._targets):
            file.unlink()
        return summarized(csv.reader(encoded.splitlines()), expected=self._expected, warm_up=self._warm_up, generator=used)


def summarized(rows: Iterable[Sequence[str]], *, expected: str, warm_up: float, generator: float) -> LoadRun:
    """Return what results of ``vegeta encode -to=csv`` say. Raises BenchError if a call had no answer."""
    sent = (row for row in rows if row[5] != "no targets to attack")  # which vegeta notes once every body was sent
    calls = sorted((int(row[0]), int(row[2]), row[1], row[6], row[5]) for row in sent)
    calls = [call for call in calls if call[0] - calls[0][0] >= min(warm_up * 1e9, (calls[-1][0] - calls[0][0]) / 4)]
    failed = [(status, body, error) for _, _, status, body, error in calls if status != expected]
    if lost := [error for status, _, error in failed if status == "0"]:
        raise BenchError(f"{len(lost)} calls had no answer: {lost[0]}")
    times = sorted(latency / 1e3 for _, latency, *_ in calls)
    p50, p99, longest = (times[min(int(share * len(times)), len(times) - 1)] for share in (0.5, 0.99, 1))
    message = " ".join((failed[0][0], base64.b64decode(failed[0][1]).decode(errors="replace"), failed[0][2])) if failed else ""
    return LoadRun(
        calls=len(calls), failed=len(failed), message=message, p50=p50, p99=p99, longest=longest, generator=generator,
        seconds=(max(begun + latency for begun, latency, *_ in calls) - calls[0][0]) / 1e9,
        latencies=[(begun / 1e9, latency / 1e3) for begun, latency, *_ in calls],
    )  # fmt: skip


def on_core(core: int) -> partial[None]:
    """Return what pins a child to a core, for ``preexec_fn``: one system call between fork and exec."""
    return partial(os.sched_setaffinity, 0, {core})


def targets(url: str, bodies: Path, *, token: str, first: int, calls: int) -> Iterator[bytes]:
    """Yield lines for vegeta: the bodies of a file in turn, so many ``calls`` or each once, each with a number of its own."""
    lines = bodies.read_bytes().splitlines()
    header = {"Content-Type": ["application/json"], **({"Authorization": [f"Bearer {token}"]} if token else {})}
    for number in range(calls or len(lines)):
        body = base64.b64encode(inputs.with_number(lines[number % len(lines)], first + number)).decode()
        yield orjson.dumps({"method": "POST", "url": url, "header": header, "body": body}) + b"\n"


def _children() -> float:
    """Return the CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _first_number() -> int:
    return next(_numbers) % 100_000_000
