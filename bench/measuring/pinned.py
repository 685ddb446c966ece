"""A process on a core of its own, and what it uses."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import machine

ROOT = Path(__file__).parents[2]
KEPT = 20_000
"""bytes of what it said last, for when it ends before its time"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def cpu(self) -> float:
        """Seconds so far."""
        return machine.cpu_seconds(self.pid)

    def alive(self) -> bool:
        return self.process.poll() is None


@contextmanager
def pinned(name: str, command: Sequence[str], core: int, log_core: int, folder: Path) -> Iterator[Pinned]:
    """Runs until the end of the block. What it says goes through a pipe to a reader on another core, as in a container, and
    only the last of it is kept, once it has ended."""
    log = folder / f"{name}.log"
    with log.open("wb") as kept:
        reader = subprocess.Popen(["tail", "-c", str(KEPT)], stdin=subprocess.PIPE, stdout=kept, preexec_fn=on_core(log_core))
    assert reader.stdin is not None
    environment = {**os.environ, "GOMAXPROCS": "1", "PYTHONPATH": ""}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=reader.stdin, cwd=ROOT, env=environment, preexec_fn=on_core(core)
    )  # fmt: skip
    reader.stdin.close()
    try:
        yield Pinned(process=process, log=log)
    finally:
        process.kill()
        process.wait()
        reader.wait()


def on_core(core: int) -> Callable[[], None]:
    """For ``preexec_fn``: one system call in the child, between fork and exec."""
    return functools.partial(os.sched_setaffinity, 0, {core})
