"""Processes of a cluster: started with a log of their own, watched while they are waited for, and ended whatever happens."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from typing import TypeVar

from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane import warden

T = TypeVar("T")
END = 5
"""Seconds in which a process must end of itself before it is killed"""
TAIL = 15
"""lines of a log that an error shows"""
_FRAME = re.compile(r"\t|goroutine |created by |[\w./*()\-]+\(.*\)$")
PORTS = range(20_000, 32_000)
"""Below those that the kernel gives to outgoing connections, of which tests make thousands (Linux: from 32,768; macOS: from 49,152)"""


class ClusterFailed(Exception):
    """Something of the cluster ended, or never came; the message says what, shows the end of its log, and names the log."""


def free_port() -> int:
    """A port of the loopback address on which nothing listens."""
    random = SystemRandom()
    for _ in range(1000):
        port = random.choice(PORTS)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
    raise ClusterFailed(f"no free port on 127.0.0.1 between {PORTS.start} and {PORTS.stop}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One that was started."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path
    begins: int = 0
    """where in the log it begins, in bytes: one of the same name may have written before"""

    def check(self) -> None:
        """Raises ClusterFailed where it has ended."""
        if (code := self.popen.poll()) is not None:
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            raise ClusterFailed(f"{self.name} ended {how}; the end of its log ({self.log}):\n{self.tail()}")

    def cpu(self) -> float:
        """Seconds of CPU that it has used. Raises OSError once it has ended."""
        fields = Path(f"/proc/{self.popen.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime, stime: proc(5)

    def tail(self) -> str:
        """The end of what it wrote, without the frames of a Go stack: what ended it stands above them."""
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line and not _FRAME.match(line)]
        return "\n".join(f"  {line[:400]}" for line in lines[-TAIL:])

    def signal(self, number: int) -> None:
        """Kill it, stop it, let it go on. What it does then is for the test to see."""
        self.popen.send_signal(number)


@dataclass(slots=True, kw_only=True)
class Processes:
    """All of one cluster, in the order in which they were started, and its folder."""

    folder: Path
    warden: subprocess.Popen[str]
    running: list[Process] = field(default_factory=list)

    def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None, inherited: Sequence[int] = ()
    ) -> Process:
        """In a session of its own, so that Ctrl-C is ours alone to handle; ``inherited``: open files that it keeps. Raises ClusterFailed
        where it can't be started."""
        log = self.folder / f"{name}.log"
        begins = log.stat().st_size if log.exists() else 0
        try:
            with log.open("ab") as written:
                popen = subprocess.Popen(
                    command,
                    cwd=self.folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=written,
                    stderr=written,
                    start_new_session=True,
                    pass_fds=inherited,
                )
        except OSError as error:
            raise ClusterFailed(f"{name} cannot be started: {error}") from None
        self.tell(f"process {popen.pid}")
        process = Process(name=name, popen=popen, log=log, begins=begins)
        self.running.append(process)
        return process

    def end(self, process: Process) -> None:
        """By SIGTERM, then SIGKILL. A process that is stopped is let go on first, or it would not hear."""
        for attempt in (process.popen.terminate, process.popen.kill):
            if process.popen.poll() is None:
                attempt()
                try:
                    process.popen.wait(END)
                except subprocess.TimeoutExpired:
                    continue
        if process in self.running:
            self.running.remove(process)

    def end_all(self) -> None:
        """What was started last first, so that none logs errors about another that is gone."""
        for process in reversed(list(self.running)):
            self.end(process)

    def check(self) -> None:
        """Raises ClusterFailed where one has ended that should run."""
        for process in self.running:
            process.check()

    def wait_for(self, found: Callable[[], T | None], what: str, seconds: float = PATIENCE) -> T:
        """What ``found()`` returns once it is something true. Raises ClusterFailed where it never is, or a process ends meanwhile."""
        deadline, pause = time.monotonic() + seconds, 0.01
        while not (result := found()):
            self.check()
            if time.monotonic() > deadline:
                raise ClusterFailed(f"waited {seconds:.0f} s for {what}; logs are in {self.folder}")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.5)
        return result

    def tell(self, line: str) -> None:
        """A line for the warden: what there is to be ended."""
        assert self.warden.stdin is not None
        self.warden.stdin.write(f"{line}\n")
        self.warden.stdin.flush()


@contextmanager
def watched(*, keep: Callable[[], bool] = lambda: False) -> Iterator[Processes]:
    """Processes in a new folder. On leaving they are ended and it goes; on an error, or where ``keep()``, logs stay and are named."""
    command = [sys.executable, "-S", warden.__file__]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, start_new_session=True)
    folder = Path(tempfile.mkdtemp(prefix="berth-cluster-"))
    processes = Processes(folder=folder, warden=process)
    processes.tell(f"folder {folder}")
    atexit.register(processes.end_all)  # also where a generator is never closed
    failed = True
    try:
        yield processes
        failed = False
    finally:
        atexit.unregister(processes.end_all)
        processes.end_all()
        processes.tell("done")
        process.communicate()
        if failed or keep():
            print(f"logs of the cluster are kept in {folder}", file=sys.stderr)
            shutil.rmtree(folder / "etcd", ignore_errors=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
