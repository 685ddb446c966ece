"""One node: containerd, a kubelet with a node's identity, and kube-proxy, as they run on a machine of its own."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.testcluster import programs
from tests.testcluster.controlplane import kubeconfig
from tests.testcluster.controlplane.processes import Process
from tests.testcluster.kubelets import network
from tests.testcluster.kubelets.machine import Machine
from tests.testcluster.kubelets.possible import PATH, PLUGINS

Raw = dict[str, Any]
PAUSE = "localhost/pause:1"
"""the image of every pod's sandbox"""
SOCKET = "/run/containerd/containerd.sock"
LEASE_SECONDS = 8
"""The kubelet renews its lease four times as often; a node that has not for ``NODE_GRACE`` is taken for gone."""
NODE_GRACE = 20
"""seconds; 50 in a cluster as it comes, which only makes tests of vanished nodes longer"""
CONTAINERD = """version = 3
root = "{root}"
state = "/run/containerd"

[grpc]
address = "{socket}"

[plugins.'io.containerd.cri.v1.images']
snapshotter = "overlayfs"

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{pause}"

[plugins.'io.containerd.cri.v1.runtime']
disable_apparmor = true
restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["{plugins}"]
conf_dir = "{networks}"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false

[plugins.'io.containerd.nri.v1.nri']
disable = true
"""
"""AppArmor's profiles are the kernel's, and so no rig's own. A score below our own takes CAP_SYS_RESOURCE, which root may lack in a VM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One of a rig. ``token`` is known to the API server as the node's; ``proxy_token`` as kube-proxy's."""

    number: int
    machine: Machine
    server: str
    ca: Path
    token: str
    proxy_token: str

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    def folder(self) -> Path:
        return self.machine.folder

    def write_files(self) -> None:
        """What its programs read at their start."""
        networks = self.folder / "networks"
        networks.mkdir(exist_ok=True)
        (networks / "10-bridge.conflist").write_text(json.dumps(self._network()))
        settings = {"root": self.folder / "containerd", "networks": networks, "socket": SOCKET, "pause": PAUSE, "plugins": PLUGINS}
        (self.folder / "containerd.toml").write_text(CONTAINERD.format(**settings))
        (self.folder / "resolv.conf").write_text("")
        (self.folder / "kubelet.yaml").write_text(yaml.safe_dump(self._kubelet()))
        kubeconfig.write(self.folder / "kubelet.kubeconfig", self.server, self.ca, self.token)

    def start_runtime(self) -> Process:
        """containerd, which takes images once ``answers()``."""
        program = programs.path("containerd")
        for name in ("containerd-shim-runc-v2", "ctr"):  # it looks for the shim beside itself, or on the path
            programs.path(name)
        command = [str(program), "--config", str(self.folder / "containerd.toml")]
        return self.machine.start(f"{self.name}-containerd", command, {**os.environ, "PATH": f"{program.parent}:{PATH}"})

    def answers(self) -> bool:
        """Whether containerd does."""
        return self.machine.path(SOCKET).exists()

    def start_kubelet(self) -> Process:
        flags = [
            f"--config={self.folder / 'kubelet.yaml'}",
            f"--kubeconfig={self.folder / 'kubelet.kubeconfig'}",
            f"--root-dir={self.folder / 'kubelet'}",
            f"--cert-dir={self.folder / 'pki'}",
            f"--hostname-override={self.name}",
            f"--node-ip={network.address(self.number)}",
        ]
        return self.machine.start(f"{self.name}-kubelet", [str(programs.path("kubelet")), *flags])

    def start_proxy(self) -> Process:
        return start_proxy(self.machine, self.name, self.server, self.ca, self.proxy_token)

    def _kubelet(self) -> Raw:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "imageServiceEndpoint": f"unix://{SOCKET}",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},  # nobody but the rig can reach it
            "podLogsDir": str(self.folder / "pods"),
            "volumePluginDir": str(self.folder / "volumes"),
            "resolvConf": str(self.folder / "resolv.conf"),
            "failCgroupV1": False,
            "failSwapOn": False,
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "protectKernelDefaults": True,  # it must not change what is the whole machine's: init.KERNEL
            "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
            "imageGCHighThresholdPercent": 100,  # a full disk is not the rig's to clean
            "nodeLeaseDurationSeconds": LEASE_SECONDS,
            "nodeStatusReportFrequency": "10s",
            "nodeStatusUpdateFrequency": "1s",  # until a node's status has what its device plugin offers
            "serializeImagePulls": False,
            "readOnlyPort": 0,
        }

    def _network(self) -> Raw:
        """Pods on a bridge of the node; its addresses are forgotten where the machine is switched off, as on a real one."""
        ranges = {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": network.pods(self.number)}]]}
        bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True}
        bridge["ipam"] = {**ranges, "routes": [{"dst": "0.0.0.0/0"}]}
        return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]}


def start_proxy(machine: Machine, node: str, server: str, ca: Path, token: str) -> Process:
    """kube-proxy: Services have their addresses on this machine. The Node object has to be there, with an address."""
    file = kubeconfig.write(machine.folder / "proxy.kubeconfig", server, ca, token)
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(file)},
        "hostnameOverride": node,
        "mode": "iptables",
        "detectLocalMode": "ClusterCIDR",
        "clusterCIDR": network.PODS,
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},  # the kernel's own
        "iptables": {"localhostNodePorts": False, "minSyncPeriod": "0s"},
    }
    written = machine.folder / "proxy.yaml"
    written.write_text(yaml.safe_dump(config))
    return machine.start(f"{machine.name}-proxy", [str(programs.path("kube-proxy")), f"--config={written}"])
