"""Cgroups of a machine that a test plays: one in each hierarchy, below the test's own, so that what runs on it is removed as one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LEAF = "daemons"
"""Version 2 only: there a cgroup that hands controllers down may hold no process itself (cgroups(7))."""


def made(name: str) -> tuple[Path, ...]:
    """New ones with this name. Raises OSError where the hierarchies can't be written."""
    folders = tuple(folder / name for folder in _own())
    for folder in folders:
        folder.mkdir()
        for file in ("cpuset.cpus", "cpuset.mems"):  # version 1: empty in a new one, which then takes no process
            if (above := folder.parent / file).exists() and (folder / file).exists() and not unified(folder):
                (folder / file).write_text(above.read_text())
    return folders


def unified(folder: Path) -> bool:
    """Whether it is of version 2."""
    return (folder / "cgroup.controllers").exists()


def _own() -> Iterator[Path]:
    """Where this process is, by every hierarchy of version 1; by version 2 where there is no other."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    named = [(names, path) for _, names, path in lines if names] or [("", path) for _, _, path in lines]
    for names, path in named:
        yield Path(_mounted(names) + path)


def _mounted(names: str) -> str:
    """The mount point of a hierarchy, such as cpu,cpuacct or name=systemd; of version 2 for an empty name (proc_pid_mountinfo(5))."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        front, _, back = line.partition(" - ")
        kind, _, options = back.split(" ", 2)
        if kind == ("cgroup" if names else "cgroup2") and set(filter(None, names.split(","))) <= set(options.split(",")):
            return front.split(" ")[4].rstrip("/")
    raise OSError(f"the cgroup hierarchy {names or 'of version 2'} is not mounted")


def writable() -> bool:
    """Whether cgroups can be made here."""
    with suppress(OSError):
        return all(os.access(folder, os.W_OK) for folder in _own())
    return False
