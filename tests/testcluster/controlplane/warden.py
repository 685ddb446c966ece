"""Ends what a test started, also when the test itself was killed: a process of its own that outlives whoever started it.

Standard input has a line for each process (``process PID``), for each cgroup (``cgroup PATH``) and for each folder to be removed
(``folder PATH``), until it closes. After ``done`` the folders stay, closed by a crash they are removed; processes are killed, and cgroups
removed. A process is known by its PID and the time it started at, so that no other one that later gets the PID is hit. After ``done``
too, what still runs is ended: one may have been started just before an exception.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ATTEMPTS, PAUSE = 600, 0.05
"""Half a minute for what was killed to be gone: until then the kernel says that its cgroup is busy."""


def watch(lines: Iterable[str]) -> None:
    """Until the lines end."""
    started: dict[int, str] = {}
    folders: list[str] = []
    groups: list[str] = []
    for line in lines:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "done":
            folders.clear()
        if word == "process":
            started[int(rest)] = _start(int(rest))
        elif word == "folder":
            folders.append(rest)
        elif word == "cgroup":
            groups.append(rest)
    for pid, when in started.items():
        if when and _start(pid) == when:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    for group in groups:
        remove_cgroup(Path(group))
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def remove_cgroup(folder: Path) -> None:
    """With all below, whose processes have been killed; whether it is there or not."""
    for below, _, _ in os.walk(folder, topdown=False):
        for _ in range(ATTEMPTS):
            try:
                Path(below).rmdir()
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(PAUSE)
            else:
                break


def _start(pid: int) -> str:
    """When the process started, in words that only it has; "" where there is none."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]  # starttime, proc(5)
    with contextlib.suppress(OSError):
        return subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout.strip()
    return ""


if __name__ == "__main__":
    watch(sys.stdin)
