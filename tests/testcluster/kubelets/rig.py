"""A cluster with real kubelets: what a test does to it and asks of it. How it is started: ``kubelets/starting.py``."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tests.testcluster.addons import nodes
from tests.testcluster.addons.nodes import FakeNode
from tests.testcluster.controlplane import restarting
from tests.testcluster.controlplane.api import Api, Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import ClusterFailed, Process
from tests.testcluster.kubelets import containers, network
from tests.testcluster.kubelets.machine import Machine
from tests.testcluster.kubelets.node import Node, start_proxy

PLANE = "control-plane"
TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


@dataclass(slots=True, kw_only=True)
class Rig:
    """One that runs."""

    cluster: Cluster
    plane: Machine
    nodes: dict[str, Node]
    proxy_token: str
    _proxy: Process | None = None

    @property
    def api(self) -> Api:
        return self.cluster.api

    @property
    def outside(self) -> Cluster:
        """The same cluster for what runs on this machine itself and calls its API server, such as Karpenter."""
        return replace(self.cluster, processes=self.plane.processes)

    @property
    def kubeconfig(self) -> Path:
        """For kubectl and Helm on this machine: an administrator's."""
        return self.cluster.kubeconfig

    def up(self, archives: Sequence[Path]) -> None:
        """All nodes, with these images, and kube-proxy for the API server itself, whose node kwok plays."""
        nodes.add(self.cluster, FakeNode(name=PLANE, taints=(TAINT,), address=network.PLANE))
        self._start_all(archives)

    def load(self, *archives: Path) -> None:
        """Their images are on every node that is on; a node keeps what it has."""
        for node in self.nodes.values():
            if node.machine.on:
                _load(node, archives)

    def kubectl(self, *words: str) -> str:
        """What it prints. Raises ClusterFailed with what it complains of."""
        done = subprocess.run(self.cluster.kubectl(*words), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ClusterFailed(f"kubectl {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def in_namespace(self, *command: str) -> str:
        """What a program prints that runs beside the API server, where pods and Services have addresses. Raises ClusterFailed.

        ``plane.start`` starts one that goes on.
        """
        return self.plane.run(*command)

    def kill_container(self, pod: str, container: str, namespace: str = "default") -> None:
        """SIGKILL to its first process. Raises LookupError where none runs."""
        found = self.api.get("v1", "Pod", pod, namespace)
        if found is None:
            raise LookupError(f"there is no pod {namespace}/{pod}")
        node = self.nodes[found["spec"]["nodeName"]]
        containers.kill(node.machine, found["metadata"]["uid"], container)

    def logs(self, pod: str, namespace: str = "default") -> str:
        """All that its containers wrote, from the disks of the nodes: also of a pod that is gone for the API server."""
        files = (file for node in self.nodes.values() for file in sorted(node.folder.glob(f"pods/{namespace}_{pod}_*/*/*.log")))
        return "".join(file.read_text(errors="replace") for file in files)

    def drain(self, name: str) -> None:
        """Raises ClusterFailed where a pod does not leave."""
        self.kubectl("drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--force")

    def uncordon(self, name: str) -> None:
        self.kubectl("uncordon", name)

    def stop_node(self, name: str) -> None:
        """As a machine that vanishes: no connection is closed, no word is said, its disk stays."""
        node = self.nodes[name]
        network.cut(self.plane, node.machine)
        node.machine.switch_off()

    def start_node(self, name: str) -> None:
        """As it is switched on again: ready, with the images that it had."""
        self._finish(self.nodes[name], self._begin(self.nodes[name], ()))

    def restart_control_plane(self) -> None:
        """etcd and all that stands on it, killed and started on the same data."""
        self._kill_control_plane()
        restarting.start(self.cluster, *self.cluster.named)

    def stop_everything(self) -> None:
        """As when the power fails for all."""
        for name, node in self.nodes.items():
            if node.machine.on:
                self.stop_node(name)
        assert self._proxy is not None
        self._proxy.popen.kill()
        self._proxy.popen.wait()
        self.cluster.processes.running.remove(self._proxy)
        self._kill_control_plane()

    def start_everything(self) -> None:
        """From what is in etcd and on the disks."""
        restarting.start(self.cluster, *self.cluster.named)
        self._start_all(())

    def switch_off(self) -> None:
        """For good: of its disks only the logs stay, for whoever keeps them."""
        for machine in (*(node.machine for node in self.nodes.values()), self.plane):
            if machine.on:
                machine.switch_off()
            for name in ("containerd", "kubelet"):
                shutil.rmtree(machine.folder / name, ignore_errors=True)

    def _kill_control_plane(self) -> None:
        for name in self.cluster.named:
            restarting.kill(self.cluster, name)

    def _start_all(self, archives: Sequence[Path]) -> None:
        begun = [(node, self._begin(node, archives)) for node in self.nodes.values()]
        self._proxy = start_proxy(self.plane, PLANE, f"https://127.0.0.1:{self.api.port}", self.api.ca, self.proxy_token)
        for node, when in begun:
            self._finish(node, when)

    def _begin(self, node: Node, archives: Sequence[Path]) -> datetime:
        """When it was switched on."""
        node.machine.switch_on()
        others = [other.number for other in self.nodes.values() if other is not node]
        network.join(self.plane, node.machine, node.number, others)
        node.write_files()
        node.start_runtime()
        self.cluster.wait_for(node.answers, f"containerd of {node.name}")
        _load(node, archives)
        node.start_kubelet()
        return datetime.now(UTC).replace(microsecond=0)

    def _finish(self, node: Node, when: datetime) -> None:
        self.cluster.wait_for(lambda: self._ready_since(node, when), f"node {node.name} to be ready")
        node.start_proxy()

    def _ready_since(self, node: Node, when: datetime) -> bool:
        """What a kubelet has said before is no word of this one."""
        conditions: list[Raw] = (self.api.get("v1", "Node", node.name) or {}).get("status", {}).get("conditions", [])
        return any(
            one["type"] == "Ready" and one["status"] == "True" and datetime.fromisoformat(one["lastHeartbeatTime"]) >= when
            for one in conditions
        )


def _load(node: Node, archives: Sequence[Path]) -> None:
    for archive in archives:
        containers.load(node.machine, archive)
