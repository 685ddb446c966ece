"""A real control plane as plain processes: etcd, kube-apiserver, kube-scheduler, kube-controller-manager, and kwok as every kubelet.

It cannot show kubelet admission: whatever kube-scheduler binds, kwok runs, and a Job's pod has succeeded after a while.
How it is started: ``tests/testcluster/controlplane/starting.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.testcluster import programs
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.api import Api, Raw
from tests.testcluster.controlplane.processes import Process, Processes, T

RUNS_FOR = "tests.berth.dev/runs-for"
"""Annotation of a Job's pod: how long kwok lets it run, as 90s or 2h."""
ENDS_AFTER = "tests.berth.dev/ends-after"
"""Annotation of a pod: how long it takes to end once it was deleted, as 90s or 2h. A pod without it is gone at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a cluster differs from the usual one."""

    release: str = programs.CURRENT
    """of Kubernetes: a folder of ``programs.MODULES``"""
    apiserver: tuple[str, ...] = ()
    controllers: str = "*"
    """of kube-controller-manager: *,-garbage-collector-controller leaves pods whose owners are invented"""
    manager: tuple[str, ...] = ()
    """more flags of kube-controller-manager"""
    kubelets: bool = True
    """kwok; without it a pod is bound and stays Pending, and no node is ready of itself"""
    job_seconds: float = 1.0
    """until a Job's pod has succeeded"""
    tokens: tuple[tuple[str, str, str], ...] = ()
    """(token, user, group) of callers beside the administrator"""
    real_nodes: bool = False
    """kubelets run beside kwok, which then keeps to nodes that are marked as its own; pods have the token of their account"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One that runs."""

    processes: Processes
    api: Api
    kubeconfig: Path
    named: dict[str, Process]
    """etcd, kube-apiserver ..."""

    @property
    def folder(self) -> Path:
        return self.processes.folder

    def audited(self) -> Iterator[Raw]:
        """Every event of the audit log: creations and changes of pods."""
        for line in (self.folder / "audit.log").read_text().splitlines(keepends=True):
            if line.endswith("\n"):  # the last one may be on its way
                yield json.loads(line)

    def kubectl(self, *words: str) -> list[str]:
        """The command, for this cluster: what it remembers of an API server goes by host and port, which another cluster may have had."""
        return [str(programs.path("kubectl")), f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.folder / 'kubectl'}", *words]

    def wait_for(self, found: Callable[[], T | None], what: str, seconds: float = PATIENCE) -> T:
        """What ``found()`` returns once it is true. Raises ClusterFailed where it never is, or a process of the cluster ends."""
        return self.processes.wait_for(found, what, seconds)
