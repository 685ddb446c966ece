"""`berth serve` in a container, on ports that the machine chooses."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.testcluster.calls import PATIENCE
from tests.testcluster.images.containers import Root, started

OPTIONS = ("--listen", "127.0.0.1:0", "--health", "127.0.0.1:0", "--lame-duck", "0")


@dataclass(slots=True, kw_only=True)
class Server:
    """One that runs, or has denied to."""

    health: str
    """of the second port; empty where it denied"""
    denial: str
    seconds: float
    """from the start of runc to Ready"""
    code: int | None = None
    """how it ended, after the block"""

    def readyz(self) -> str:
        with urllib.request.urlopen(f"{self.health}/readyz?verbose", timeout=PATIENCE) as answer:
            text: str = answer.read().decode()
            return text


@contextmanager
def serving(root: Root, *options: str, given: Path | None = None) -> Iterator[Server]:
    """Ready within the block, and told to stop at its end."""
    begun = time.monotonic()
    with started(root, "serve", *OPTIONS, *options, given=given) as process:
        health, said = _announced(process)
        if health:
            _wait_until_ready(health)
        server = Server(health=health, denial=said, seconds=time.monotonic() - begun)
        yield server
        process.send_signal(signal.SIGTERM)
        server.code = process.wait(PATIENCE)


def _announced(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Where its second port is, as its log tells; else what it said on its way out."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if line.startswith("{") and (event := json.loads(line))["event"] == "listening":
            return str(event["health"]), ""
    return "", "".join(said)


def _wait_until_ready(health: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(f"{health}/readyz", timeout=PATIENCE):
                return
        except urllib.error.URLError:
            assert time.monotonic() < deadline, f"{health}/readyz was never 200"
            time.sleep(0.01)
