"""What a server uses, as Linux tells it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.support.calls.server_process import Running

MIB = 2**20


def resident(server: Running) -> int:
    """Bytes of memory that it holds now."""
    return _status(server, "VmRSS")


def growth(server: Running, act: Callable[[], object]) -> int:
    """By how many bytes its peak during ``act`` is above what it held before."""
    proc(server, "clear_refs").write_text("5")  # the peak begins anew: proc(5)
    before = resident(server)
    act()
    return _status(server, "VmHWM") - before


def open_files(server: Running) -> int:
    """Sockets among them."""
    return len(os.listdir(proc(server, "fd")))


def proc(server: Running, name: str) -> Path:
    return Path(f"/proc/{server.process.pid}/{name}")


def _status(server: Running, name: str) -> int:
    line = next(line for line in proc(server, "status").read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024
