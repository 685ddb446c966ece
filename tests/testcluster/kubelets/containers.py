"""Containers of a node, past Kubernetes: images are loaded, and a process is killed, by containerd's own client."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.testcluster import programs
from tests.testcluster.kubelets.machine import Machine
from tests.testcluster.kubelets.node import SOCKET

NAMESPACE = "k8s.io"
"""of containerd: what a kubelet sees"""
LABEL = "io.kubernetes"


def load(machine: Machine, archive: Path) -> None:
    """Every image of an archive (OCI or Docker), under the names that it has there."""
    ctr(machine, "images", "import", "--local", str(archive))


def kill(machine: Machine, uid: str, name: str) -> None:
    """SIGKILL to the first process of a pod's container. Raises LookupError where none runs."""
    alive = running(machine)
    for container in _of_pod(machine, uid, name):
        if container in alive:
            ctr(machine, "tasks", "kill", "--signal", "SIGKILL", container)
            return
    raise LookupError(f"no container {name} of the pod {uid} runs on {machine.name}")


def mounts(machine: Machine, uid: str, name: str) -> dict[str, str]:
    """Mount point -> type and options, as a pod's running container sees them. Raises LookupError where none runs."""
    lines = machine.run("cat", f"/proc/{_first_process(machine, uid, name)}/mounts").splitlines()
    return {at: f"{kind} {options}" for _, at, kind, options, *_ in map(str.split, lines)}


def environment(machine: Machine, uid: str, name: str) -> dict[str, str]:
    """The environment of a pod's running container. Raises LookupError where none runs."""
    text = machine.run("cat", f"/proc/{_first_process(machine, uid, name)}/environ")
    return dict(word.partition("=")[::2] for word in text.split("\0") if word)


def _first_process(machine: Machine, uid: str, name: str) -> str:
    """The PID, on the machine."""
    listed = ctr(machine, "tasks", "list")
    for container in _of_pod(machine, uid, name):
        if found := re.search(rf"^{container}\s+(\d+)\s+RUNNING", listed, re.MULTILINE):
            return found[1]
    raise LookupError(f"no container {name} of the pod {uid} runs on {machine.name}")


def _of_pod(machine: Machine, uid: str, name: str) -> Iterator[str]:
    labels = {"pod.uid": uid, "container.name": name}
    wanted = ",".join(f'labels."{LABEL}.{key}"=="{value}"' for key, value in labels.items())
    yield from ctr(machine, "containers", "list", "--quiet", wanted).split()


def running(machine: Machine) -> set[str]:
    """The containers that run, by containerd's names."""
    return set(re.findall(r"^(\S+)\s+\d+\s+RUNNING", ctr(machine, "tasks", "list"), re.MULTILINE))


def ctr(machine: Machine, *words: str) -> str:
    """What it prints. Raises ClusterFailed."""
    return machine.run(str(programs.path("ctr")), "--address", SOCKET, "--namespace", NAMESPACE, *words)
