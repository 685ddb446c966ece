"""Whether real kubelets can run on this machine, and what to do where they can't."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.testcluster.kubelets import cgroups

PLUGINS = Path("/usr/lib/cni")
"""where Debian and Ubuntu put those of containernetworking-plugins"""
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
PROGRAMS = {"runc": "runc", "iptables": "iptables", "ip": "iproute2", "nsenter": "util-linux", "mount": "mount"}
"""program -> package of Debian and Ubuntu"""
PARTS = """
mkdir "$1/lower" "$1/upper" "$1/merged"
mount -t tmpfs none "$1/upper"
mkdir "$1/upper/upper" "$1/upper/work"
mount -t overlay overlay -o "lowerdir=$1/lower,upperdir=$1/upper/upper,workdir=$1/upper/work" "$1/merged"
ip link add probe type bridge
ip link add one type veth peer name other
iptables -w -t nat -A POSTROUTING -m comment --comment probe -m statistic --mode random --probability 0.5 -j MASQUERADE
"""
"""what a machine of the rig is made of; $1 is an empty folder"""


def missing() -> str | None:
    """One sentence; None where they can run."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "real kubelets run as root on Linux alone: run this as root, best in a VM"
    if not cgroups.writable():
        return "real kubelets make cgroups, and /sys/fs/cgroup is not mounted here or can't be written: run this outside of containers"
    absent = {package: program for program, package in PROGRAMS.items() if shutil.which(program, path=PATH) is None}
    if not (PLUGINS / "bridge").exists():
        absent["containernetworking-plugins"] = str(PLUGINS / "bridge")
    if absent:
        return f"real kubelets need {' and '.join(absent.values())}: apt-get install {' '.join(absent)}"
    return _tried()


@cache
def _tried() -> str | None:
    """A machine's parts are made once, and go with the process that made them."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["unshare", "--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "--mount-proc", "sh", "-ec", PARTS, "sh", folder]
        done = subprocess.run(command, env={**os.environ, "PATH": PATH}, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return f"real kubelets need namespaces, bridges, iptables and overlay mounts, and one can't be made here ({why}): run this in a VM"
