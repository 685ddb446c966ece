"""kube-apiserver's own webhook client (``tests/testcluster/modules/callers``) calling replicas many times at once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.calls.server_process import ROOT, Running, until
from tests.support.go_tools import program

NAME = "berth.berth-system.svc"
"""The Service that the callers resolve: what the certificate is checked for."""
NAMES = ("--names", NAME)
"""Options of a server that they are to trust."""
REVIEW = ROOT / "tests" / "reviews" / "pods-create-train-llama.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What became of the calls so far. A call that was tried again and then answered has not failed."""

    calls: int
    failed: int
    retried: int
    """tries after the first: a 503 with Retry-After, or a connection that was found closed before anything was written"""
    dials: int
    slowest: float
    """seconds"""
    errors: Mapping[str, int]


class Callers:
    """They call until ``stop``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def send_to(self, replicas: Iterable[Running]) -> Tally:
        """From now on new connections go to these alone; open ones stay."""
        return self._say(f"endpoints {endpoints(replicas)}")

    def so_far(self) -> Tally:
        """While they call on."""
        return self._say("tell")

    def stop(self) -> Tally:
        """Once the calls in flight have ended."""
        return self._say("stop")

    def wait(self) -> Tally:
        """Once each has made the calls that it was to make."""
        return self._say("wait")

    def call_on(self, more: int) -> None:
        """Returns once so many more calls have ended. Fails where they never do."""
        wanted = self.so_far().calls + more
        until(lambda: self.so_far().calls >= wanted, f"{more} more calls; so far {self.so_far()}")

    def _say(self, line: str) -> Tally:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        result = self._process.stdout.readline()
        assert result, "the callers ended"
        return Tally(**json.loads(result))


def endpoints(replicas: Iterable[Running]) -> str:
    """As the callers read them."""
    return ",".join(f"127.0.0.1:{replica.port}" for replica in replicas)


@contextmanager
def calling(replicas: Iterable[Running], *options: str, review: Path = REVIEW) -> Iterator[Callers]:
    """Callers that share a connection pool; ``options`` are ``load``'s (``callers/main.go``)."""
    with _started("load", list(replicas), review, options) as callers:
        yield callers


@contextmanager
def pausing(server: Running, *options: str) -> Iterator[Callers]:
    """Two calls on each of many connections with a gap between them; ``options`` are ``gaps``' (``callers/main.go``)."""
    with _started("gaps", [server], REVIEW, options) as callers:
        yield callers


@contextmanager
def _started(mode: str, replicas: list[Running], review: Path, options: Iterable[str]) -> Iterator[Callers]:
    common = ["-ca", str(replicas[0].ca), "-review", str(review), "-endpoints", endpoints(replicas)]
    command = [str(program("callers")), mode, *common, *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Callers(process)
        finally:
            process.kill()
