"""What a rig leaves on the machine: nothing, also where whoever started it was killed; and nothing of the machine is changed meanwhile."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.calls.server_process import ROOT, until
from tests.testcluster.calls import PATIENCE
from tests.testcluster.kubelets.fixtures import needs_kubelets
from tests.testcluster.kubelets.init import KERNEL

STARTED = """
import sys, time
from pathlib import Path
from tests.testcluster.kubelets.starting import rigged

with rigged(*map(Path, sys.argv[1:]), nodes=1) as rig:
    spec = {"containers": [{"name": "c", "image": "localhost/answering:1"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec}
    rig.cluster.wait_for(lambda: rig.api.try_create(pod, "default").ok, "the account of the pod to be there")
    running = lambda: rig.api.get("v1", "Pod", "one", "default")["status"].get("phase") == "Running"
    rig.cluster.wait_for(running, "the pod to run")
    print(rig.cluster.folder, flush=True)
    sys.stdin.read()
"""
"""Runs a pod on one node, says where, and stays."""


def of_the_machine() -> dict[str, str]:
    """Addresses, routes, rules, links, mounts and settings of the kernel."""
    commands = ["ip addr", "ip route show table all", "ip rule", "iptables-save", "ip netns", "cat /proc/self/mounts"]
    found = {command: subprocess.run(command.split(), capture_output=True, text=True, check=False).stdout for command in commands}
    found |= {name: Path("/proc/sys", name).read_text() for name in (*KERNEL, "net/ipv4/ip_forward", "net/netfilter/nf_conntrack_max")}
    return {name: re.sub(r"valid_lft \S+ preferred_lft \S+|#.*|\[\d+:\d+\]", "", text) for name, text in found.items()}


def left(folder: Path) -> list[str]:
    """What is there still of the rig of this folder."""
    processes = [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(folder) in text(path)]
    groups = [path for path, _, _ in os.walk("/sys/fs/cgroup") if f"{folder.name}-" in path]
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in line]
    return [*map(str, processes), *groups, *mounts, *([str(folder)] if folder.exists() else [])]


def text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "ended"])
def test_nothing_is_left(request: pytest.FixtureRequest, *, killed: bool) -> None:
    """Neither processes, mounts, cgroups nor the folder, also where its test was killed in the midst of it; all that the machine itself
    has is as it was, and was so while the rig ran."""
    images = needs_kubelets(request.config)
    before = of_the_machine()
    command = [sys.executable, "-c", STARTED, *map(str, images)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert folder.name, "the rig did not start"
        during, running = of_the_machine(), left(folder)
        if killed:
            process.kill()
        process.stdin.close()
        process.wait(PATIENCE)
    assert during == before
    assert len(running) > 10
    until(lambda: left(folder) == [], f"nothing of {folder} to be left")
    assert of_the_machine() == before
