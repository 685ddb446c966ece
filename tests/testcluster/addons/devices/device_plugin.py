"""A device plugin on a real kubelet, whose devices do not exist: it registers a resource, as NVIDIA's registers nvidia.com/gpu.

    plugin = start(rig, "node-1", "nvidia.com/gpu", healthy=4)
    plugin.offer(healthy=3, unhealthy=1)
    plugin.end()

A container that is given one gets nothing of it. Without the plugin the kubelet keeps the node's capacity and offers none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.testcluster import programs
from tests.testcluster.controlplane.processes import Process
from tests.testcluster.kubelets.rig import Rig


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlugin:
    """One that runs."""

    rig: Rig
    node: str
    resource: str
    file: Path
    process: Process

    def offer(self, *, healthy: int, unhealthy: int = 0) -> None:
        """Offer these devices from now on, and wait until the node's status has them."""
        _write(self.file, healthy, unhealthy)
        self.wait_for(healthy + unhealthy, healthy)

    def end(self) -> None:
        """Stop the process, and wait until the node offers no device."""
        self.rig.cluster.processes.end(self.process)
        self.rig.cluster.wait_for(lambda: self._amount("allocatable") == "0", f"{self.node} to offer no {self.resource}")

    def wait_for(self, capacity: int, allocatable: int) -> None:
        """Wait until the node's status has these amounts."""
        wanted = (str(capacity), str(allocatable))
        self.rig.cluster.wait_for(
            lambda: (self._amount("capacity"), self._amount("allocatable")) == wanted,
            f"{self.node} to have {capacity} and to offer {allocatable} {self.resource}; the plugin's log is {self.process.log}",
        )

    def _amount(self, name: str) -> str:
        node = self.rig.api.get("v1", "Node", self.node)
        assert node is not None
        return str(node["status"][name].get(self.resource, "0"))


def start(rig: Rig, node: str, resource: str, *, healthy: int) -> DevicePlugin:
    """Start one on a node, and wait until the node offers its devices. Raises NoProgram, BuildFailed, ClusterFailed."""
    file = rig.nodes[node].folder / f"devices-{resource.replace('/', '-')}"
    _write(file, healthy, 0)
    process = rig.nodes[node].machine.start(f"{node}-device-plugin", [str(programs.path("deviceplugin")), resource, str(file)])
    plugin = DevicePlugin(rig=rig, node=node, resource=resource, file=file, process=process)
    plugin.wait_for(healthy, healthy)
    return plugin


def _write(file: Path, healthy: int, unhealthy: int) -> None:
    states = ["Healthy"] * healthy + ["Unhealthy"] * unhealthy
    beside = file.with_suffix(".new")
    beside.write_text("".join(f"device-{number} {state}\n" for number, state in enumerate(states)))
    beside.rename(file)
