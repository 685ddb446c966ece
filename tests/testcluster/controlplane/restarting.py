"""Parts of a cluster that are killed, stopped for a while, started again, or set back to what their store once was."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import Process
from tests.testcluster.controlplane.starting import HOST, http_ok

STORE = ("etcd", "kube-apiserver")
"""in the order in which they are started"""


def kill(cluster: Cluster, name: str) -> None:
    """By SIGKILL, as a machine that goes. ``start`` brings it back."""
    process = cluster.named[name]
    if process in cluster.processes.running:
        cluster.processes.running.remove(process)
    process.popen.kill()
    process.popen.wait()


def end(cluster: Cluster, *names: str) -> None:
    """As an operator ends them: SIGTERM, the last first. A control plane of one server has nobody to hand over to, so it is not waited
    for longer than ``processes.END``."""
    for name in reversed(names):
        cluster.processes.end(cluster.named[name])


def start(cluster: Cluster, *names: str) -> None:
    """Once more with the same command, so on the same port and data, each ready before the next. Raises ClusterFailed."""
    cluster.api.close()  # kept connections are to the one that is gone
    for name in names:
        command = _command(cluster.named[name])
        cluster.named[name] = process = cluster.processes.start(name, command)
        url = _ready(name, command)
        cluster.wait_for(lambda process=process, url=url: _up(process, url), f"{name} to be back")  # type: ignore[misc]


@contextmanager
def paused(cluster: Cluster, name: str) -> Iterator[None]:
    """It stands still (SIGSTOP) within the block: its connections stay open, and nothing is answered."""
    cluster.named[name].signal(signal.SIGSTOP)
    try:
        yield
    finally:
        cluster.named[name].signal(signal.SIGCONT)


def backup(cluster: Cluster) -> Path:
    """A copy of the store as it is now: API server and etcd are ended for it, and started again."""
    copy = cluster.folder / "etcd-backup"
    end(cluster, *STORE)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(_data(cluster), copy)
    start(cluster, *STORE)
    return copy


def restore(cluster: Cluster, copy: Path) -> None:
    """The store is as it was: its revision goes back, and revisions that were given out are given again."""
    end(cluster, *STORE)
    shutil.rmtree(_data(cluster))
    shutil.copytree(copy, _data(cluster))
    start(cluster, *STORE)


def _data(cluster: Cluster) -> Path:
    return cluster.folder / "etcd"


def _command(process: Process) -> list[str]:
    words = process.popen.args
    assert isinstance(words, Sequence)
    return [str(word) for word in words]


def _ready(name: str, command: Sequence[str]) -> str:
    """The address that answers 200 once it is ready."""
    if name == "etcd":
        return f"{_flag(command, 'listen-client-urls')}/health"
    if name == "kwok":
        return f"http://{_flag(command, 'server-address')}/healthz"
    return f"https://{HOST}:{_flag(command, 'secure-port')}/{'readyz' if name == 'kube-apiserver' else 'healthz'}"


def _flag(command: Sequence[str], name: str) -> str:
    return next(word.partition("=")[2] for word in command if word.startswith(f"--{name}="))


def _up(process: Process, url: str) -> bool:
    process.check()
    return http_ok(url)
