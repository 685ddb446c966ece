"""``berth serve`` as a process, for tests: started, waited for, called over verified TLS, stopped."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.testcluster.calls import PATIENCE, PATIENT, Answer, request_once

ROOT = Path(__file__).parent.parent.parent.parent
LIBRARY = str(ROOT / "policies" / "library")
COMMAND = [sys.executable, "-m", "cli.main", "serve", "--health", "127.0.0.1:0"]
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server that runs."""

    process: subprocess.Popen[bytes]
    port: int
    health_port: int
    ca: Path
    log: Path

    def connection(self, host: str = "127.0.0.1") -> http.client.HTTPSConnection:
        """Over TLS, verified with the folder's CA; kept alive until closed."""
        return http.client.HTTPSConnection(host, self.port, context=ssl.create_default_context(cafile=str(self.ca)), timeout=PATIENCE)

    def post(self, path: str, body: bytes, headers: dict[str, str] = JSON, method: str = "POST") -> Answer:
        """One call on a connection of its own."""
        return request_once(self.connection(), method, path, body, headers)

    def health(self, path: str) -> Answer:
        """One GET on the second port."""
        return request_once(http.client.HTTPConnection("127.0.0.1", self.health_port, timeout=PATIENCE), "GET", path)

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """The log so far, or the events of one name in it: every line is JSON."""
        return [event for event in logged(self.log) if name in (None, event["event"])]

    def event(self, name: str, number: int = 1) -> dict[str, Any]:
        """The number-th event of this name, once it is there."""
        found: list[dict[str, Any]] = until(lambda: self.events(name)[number - 1 : number], f"event {name}")
        return found[0]

    def stop(self, signal_number: int) -> int:
        """Send a signal; the exit code."""
        self.process.send_signal(signal_number)
        return self.process.wait(PATIENCE)


def until(found: Any, what: str) -> Any:
    """What ``found()`` returns once it is true; fails when it never is."""
    deadline, pause = time.monotonic() + PATIENCE, 0.02
    while not (result := found()):
        assert time.monotonic() < deadline, f"waited {PATIENCE:.0f} s for {what}"
        time.sleep(pause)
        pause = min(pause * 1.2, 0.25)
    return result


@contextmanager
def started(
    folder: Path, *options: str, program: Sequence[str] = COMMAND, cwd: Path = ROOT
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The process and its log, whatever becomes of it; killed on leaving. Self-signed unless ``options`` name a certificate, and for
    one platform unless they name others: the tables of all take a quarter of the start."""
    log = folder / "log"
    with log.open("wb") as written:
        tls = [] if "--tls-cert" in options else ["--self-signed", str(folder / "tls")]
        platforms = [] if "--platforms" in options else ["--platforms", "karpenter-aws"]
        command = [*program, *tls, *platforms, "--listen", "127.0.0.1:0", *PATIENT, *options]
        with subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=written) as process:
            try:
                yield process, log
            finally:
                process.kill()


@contextmanager
def serving(folder: Path, *options: str, program: Sequence[str] = COMMAND, cwd: Path = ROOT) -> Iterator[Running]:
    """A server that is ready. ``options`` are added to the command; the last of a kind counts."""
    with started(folder, *options, program=program, cwd=cwd) as (process, log):
        yield running(process, log, until(lambda: _serving(process, log), f"a server; its log is {log}"))


def running(process: subprocess.Popen[bytes], log: Path, event: dict[str, Any]) -> Running:
    """From the event ``listening`` or ``serving``, which name the ports."""
    return Running(process=process, port=_port(event["url"]), health_port=_port(event["health"]), ca=log.parent / "tls" / "ca.crt", log=log)


def _serving(process: subprocess.Popen[bytes], log: Path) -> dict[str, Any] | None:
    assert process.poll() is None, log.read_text()
    return next((event for event in logged(log) if event["event"] == "serving"), None)


def logged(log: Path) -> list[dict[str, Any]]:
    """Every whole line, read as JSON."""
    return [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])
