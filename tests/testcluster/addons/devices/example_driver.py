"""The example DRA driver of Kubernetes on real kubelets: simulated GPUs in ResourceSlices, claims that are prepared with CDI.

    start(rig, "node-1", devices=2)

A container with a claim then has an environment variable for each device that it was given, GPU_DEVICE_N, whose value is the device's name
(internal/profiles/gpu of the driver, v0.4.0). No device file is made.
"""

from __future__ import annotations

import os

from tests.testcluster import thirdparty
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.processes import Process
from tests.testcluster.kubelets.rig import Rig

DRIVER = "gpu.example.com"
CLASS: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": DRIVER},
    "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
}
CDI = "/var/run/cdi"
"""Where containerd looks besides /etc/cdi, and each machine has its own"""


def start(rig: Rig, node: str, devices: int) -> Process:
    """The driver of one node, with the node's own rights, its devices published. Raises NoGo, BuildFailed, ClusterFailed."""
    reply = rig.api.apply(CLASS)
    assert reply.ok, reply.message
    machine = rig.nodes[node].machine
    kubelet = rig.nodes[node].folder / "kubelet"
    program = thirdparty.program(thirdparty.EXAMPLE_DRIVER, "dra-example-kubeletplugin")
    options = [
        f"--node-name={node}",
        f"--num-devices={devices}",
        f"--cdi-root={CDI}",
        f"--kubelet-registrar-directory-path={kubelet / 'plugins_registry'}",
        f"--kubelet-plugins-directory-path={kubelet / 'plugins'}",
        f"--kubeconfig={rig.nodes[node].folder / 'kubelet.kubeconfig'}",
    ]
    process = machine.start(f"{node}-example-driver", [str(program), *options], {**os.environ})

    def published() -> bool:
        slices = rig.api.list("resource.k8s.io/v1", "ResourceSlice")
        return any(one["spec"].get("nodeName") == node and one["spec"]["driver"] == DRIVER for one in slices)

    rig.cluster.wait_for(published, f"the example driver of {node} to publish its devices; its log is {process.log}")
    return process
