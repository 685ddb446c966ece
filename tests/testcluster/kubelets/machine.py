"""A machine that a test plays: namespaces, mounts and cgroups of its own on this one, as a container has them. Linux, and root alone.

Its first process (``init.py``) holds it together. Whatever is started on it is a process like any other to the test: it can be waited for,
signalled and read about by its PID here.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.testcluster.controlplane.processes import ClusterFailed, Process, Processes
from tests.testcluster.controlplane.warden import remove_cgroup
from tests.testcluster.kubelets import cgroups, init

ENTER = 'for group in $GROUPS_TO_JOIN; do echo $$ > "$group/cgroup.procs" || exit 1; done; unset GROUPS_TO_JOIN; exec nsenter "$@"'
"""nsenter enters namespaces; a cgroup has to be joined before, by its path here"""
SPACES = ("mnt", "net", "uts", "ipc", "cgroup")
"""All but the PID namespace, which a process can't enter: its children are born there"""


@dataclass(slots=True, kw_only=True)
class Machine:
    """One that is up, or was switched off."""

    name: str
    folder: Path
    """its disk: stays when it is switched off"""
    processes: Processes
    groups: tuple[Path, ...] = ()
    _init: Process | None = None
    _on: list[Process] = field(default_factory=list)

    def switch_on(self) -> None:
        """Its first process and its mounts, with loopback up. Raises ClusterFailed and OSError."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / init.READY).unlink(missing_ok=True)
        self.groups = cgroups.made(f"{self.processes.folder.name}-{self.name}")
        for group in self.groups:
            self.processes.tell(f"cgroup {group}")
        command = [sys.executable, "-S", init.__file__, str(self.folder), *map(str, self.groups)]
        self._init = self.processes.start(f"{self.name}-init", command)
        self.processes.wait_for(lambda: (self.folder / init.READY).exists(), f"machine {self.name} to be up")

    @property
    def on(self) -> bool:
        return self._init is not None

    @property
    def pid(self) -> int:
        """Of the process whose namespaces are the machine's."""
        assert self._init is not None, f"machine {self.name} is off"
        return self._init.popen.pid

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> Process:
        """A process on it."""
        with self._born_there():
            process = self.processes.start(name, self.entering(*command), {**(environment or os.environ), **self.joining()})
        process.popen.args = list(command)  # as it would be started once more
        self._on.append(process)
        return process

    def entering(self, *command: str) -> list[str]:
        """The command, run in its namespaces but that of PIDs, with ``joining()`` in its environment."""
        spaces = [f"--{flag}=/proc/{self.pid}/ns/{name}" for name in SPACES for flag in ("mount" if name == "mnt" else name,)]
        return ["sh", "-c", ENTER, "sh", *spaces, "--", *command]

    def joining(self) -> dict[str, str]:
        """For the environment of ``entering``."""
        leaf = cgroups.LEAF if cgroups.unified(self.groups[0]) else ""
        return {"GROUPS_TO_JOIN": " ".join(str(group / leaf) for group in self.groups)}

    def run(self, *command: str) -> str:
        """What a program prints that has been run on it. Raises ClusterFailed with what it said where it fails."""
        environment = {**os.environ, **self.joining()}
        with self._born_there():
            popen = subprocess.Popen(
                self.entering(*command),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        out, err = popen.communicate()
        if popen.returncode != 0:
            raise ClusterFailed(f"{shlex.join(command)} on {self.name}: exit code {popen.returncode}: {err.strip()}")
        return out

    def path(self, inside: str) -> Path:
        """Where a file that only it sees, such as one under /run, is found from here."""
        return Path(f"/proc/{self.pid}/root{inside}")

    def switch_off(self) -> None:
        """As when its plug is pulled: everything on it is gone at once, its disk stays."""
        assert self._init is not None, f"machine {self.name} is off"
        for process in (*self._on, self._init):
            if process in self.processes.running:
                self.processes.running.remove(process)
        for process in (self._init, *self._on):
            process.popen.kill()
        for process in (*self._on, self._init):
            process.popen.wait()
        self._on.clear()
        self._init = None
        for group in self.groups:
            remove_cgroup(group)
        self.groups = ()

    @contextmanager
    def _born_there(self) -> Iterator[None]:
        """Within the block children of this thread are born in its PID namespace (setns(2)), and are children nonetheless."""
        own = os.open("/proc/thread-self/ns/pid", os.O_RDONLY)
        theirs = os.open(f"/proc/{self.pid}/ns/pid_for_children", os.O_RDONLY)
        try:
            _setns(theirs)
            try:
                yield
            finally:
                _setns(own)
        finally:
            os.close(own)
            os.close(theirs)


def _setns(descriptor: int) -> None:
    if _LIBC.setns(descriptor, 0):
        raise OSError(ctypes.get_errno(), "setns")


_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(slots=True, kw_only=True)
class On(Processes):
    """Processes whose every start is on a machine: what a control plane is started with, to be there."""

    machine: Machine

    def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None, inherited: Sequence[int] = ()
    ) -> Process:
        return self.machine.start(name, command, environment)


def there(machine: Machine) -> On:
    """The same processes, begun on the machine."""
    outer = machine.processes
    return On(folder=outer.folder, warden=outer.warden, running=outer.running, machine=machine)
