"""The machine that is measured on: which core does what, and what it is called in a table. Linux: all figures are read from /proc."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("httptools", "orjson", "uvloop")
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class BenchError(Exception):
    """Something that measuring needs is not there; the message is one line and says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """Numbers of CPUs."""

    server: int
    load: int


def cores() -> Cores:
    """One for the server alone, another for the load. Raises BenchError where there is only one."""
    ours = sorted(os.sched_getaffinity(0))
    if len(ours) < 2:
        raise BenchError("measuring needs two cores, one for the server and one for the load; this process may use one")
    return Cores(server=ours[1], load=ours[0])


def described() -> str:
    """The date, the machine and the versions, as one line."""
    parts = [f"{datetime.now(UTC):%Y-%m-%d}, {_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"]
    parts.append(f"CPython {platform.python_version()}, {', '.join(f'{name} {version(name)}' for name in PACKAGES)}")
    return "; ".join([*parts, *_tools()])


def _processor() -> str:
    found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found.group(1) if found else platform.machine()


def _tools() -> Iterator[str]:
    if go := shutil.which("go"):
        yield subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout.strip().replace("go", "Go ", 1)
    yield f"load averages before {' '.join(f'{load:.1f}' for load in os.getloadavg()[:2])}"


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and all its threads, ended ones included; in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident(pid: int) -> float:
    """Resident memory in MB (10**6 bytes)."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 1e6


def peak(pid: int) -> float:
    """The most that was ever resident, in MB."""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None, "every Linux process has a VmHWM"
    return int(found.group(1)) * 1024 / 1e6
