"""The first process of a machine that a test plays: makes its namespaces, mounts what is its own, and reaps what is orphaned.

Run as a script with the machine's folder and its cgroups as arguments. It ends with whoever started it, and with it everything on the
machine: the kernel kills what is in a PID namespace whose first process is gone, then drops its mounts, addresses and rules.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

NEW = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000
"""Namespaces of mounts, cgroups, UTS, IPC, PIDs and network: CLONE_NEW* of unshare(2)"""
PR_SET_PDEATHSIG = 1
LEAF = "daemons"  # as cgroups.LEAF: this script runs without the project on its path
READY = "ready"
KERNEL = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}
"""What a kubelet wants of the kernel (--protect-kernel-defaults): of the whole machine, and so for no test to change: it reads these"""


def main(folder: Path, groups: list[Path]) -> None:
    """Until it is killed."""
    for group in groups:
        (group / "cgroup.procs").write_text(str(os.getpid()))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW):
        raise OSError(ctypes.get_errno(), "unshare")
    reading, writing = os.pipe()
    if child := os.fork():
        os.write(writing, b"x")
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) and 1)
    os.close(writing)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if not os.read(reading, 1):  # who was to end us has gone before we asked for it
        sys.exit(1)
    mount(groups)
    (folder / READY).touch()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # what is orphaned is reaped by the kernel
    while True:
        signal.pause()


def mount(groups: list[Path]) -> None:
    """Its own /proc, /sys, /run, and an upper layer over what kubelets and plugins write under /var."""
    _do("mount", "--make-rslave", "/")
    _leave_others_mounts()
    _do("mount", "-t", "proc", "proc", "/proc")
    _do("mount", "-t", "sysfs", "sysfs", "/sys")
    _mount_cgroups(groups)
    _do("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    for name in ("lib", "log"):
        upper, work = f"/run/layers/{name}", f"/run/layers/{name}.work"
        for made in (upper, work):
            os.makedirs(made)
        _do("mount", "-t", "overlay", "-o", f"lowerdir=/var/{name},upperdir={upper},workdir={work}", "overlay", f"/var/{name}")
    for name, value in KERNEL.items():
        file = Path("/run/kernel", name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
        _do("mount", "--bind", str(file), f"/proc/sys/{name}")
    _do("mount", "--make-rshared", "/")  # as systemd leaves it: a volume of the kubelet is seen by the containers
    _do("ip", "link", "set", "lo", "up")


def _leave_others_mounts() -> None:
    """Of containers that somebody else runs: as long as they were mounted here too, theirs could not be taken down."""
    for line in reversed(Path("/proc/self/mountinfo").read_text().splitlines()):
        front, _, back = line.partition(" - ")
        point = front.split(" ")[4]
        if back.startswith("overlay ") and point != "/":
            _do("umount", "--lazy", point)


def _mount_cgroups(groups: list[Path]) -> None:
    """As this machine alone has them: their roots are its own."""
    if (groups[0] / "cgroup.controllers").exists():
        leaf = groups[0] / LEAF
        leaf.mkdir(exist_ok=True)
        (leaf / "cgroup.procs").write_text("0")
        _do("mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup")
        return
    _do("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/sys/fs/cgroup")
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, _ = line.split(":", 2)
        if names:
            target = Path("/sys/fs/cgroup", names.removeprefix("name="))
            target.mkdir()
            options = f"none,{names}" if names.startswith("name=") else names
            _do("mount", "-t", "cgroup", "-o", options, "cgroup", str(target))


def _do(*words: str) -> None:
    program = shutil.which(words[0]) or f"/usr/sbin/{words[0]}"
    subprocess.run([program, *words[1:]], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [*map(Path, sys.argv[2:])])
