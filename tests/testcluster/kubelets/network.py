"""The network of a rig: one bridge that joins its machines, in the namespace of the machine that has the control plane.

Addresses are of 198.18.0.0/15, which is kept for tests of networks (RFC 2544); they exist in the rig's namespaces alone.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from tests.testcluster.controlplane.processes import ClusterFailed
from tests.testcluster.kubelets.machine import Machine

BRIDGE = "lan"
PLANE = "198.18.0.1"
"""the control plane's address"""
PODS = "198.19.0.0/16"
SERVICES = "10.0.0.0/24"
"""as ``controlplane.starting`` gives it to the API server"""


def address(number: int) -> str:
    """Of the node with this number, from 1 on."""
    return f"198.18.0.{10 + number}"


def pods(number: int) -> str:
    """The addresses of the pods of a node."""
    return f"198.19.{number}.0/24"


def lay(plane: Machine) -> None:
    """The bridge. A route to the Services has to be there, although their addresses are nobody's: kube-proxy rewrites what has one."""
    _ip(plane, f"link add {BRIDGE} type bridge", f"addr add {PLANE}/24 dev {BRIDGE}", f"link set {BRIDGE} up")
    _ip(plane, f"route add {SERVICES} dev {BRIDGE} src {PLANE}")
    _forward(plane)


def join(plane: Machine, node: Machine, number: int, others: Sequence[int]) -> None:
    """A cable from the node to the bridge, and the ways to the pods of all. Its hardware address stays, as a machine's does."""
    hardware = f"02:00:00:00:00:{number:02x}"
    cable = f"link add {node.name} type veth peer name eth0 address {hardware} netns {node.pid}"
    _ip(plane, cable, f"link set {node.name} master {BRIDGE} up", f"route replace {pods(number)} via {address(number)}")
    ways = [f"route add {pods(other)} via {address(other)}" for other in others]
    _ip(node, f"addr add {address(number)}/24 dev eth0", "link set eth0 up", f"route add default via {PLANE}", *ways)
    _forward(node)


def cut(plane: Machine, node: Machine) -> None:
    """Its cable is gone: nothing of the node is heard any more, not even that its connections end."""
    _ip(plane, f"link del {node.name}")


def _ip(machine: Machine, *lines: str) -> None:
    """Lines for ip(8) in the machine's network; PIDs in them are of this machine."""
    _run(machine, ["ip", "-batch", "-"], "\n".join(lines))


def _forward(machine: Machine) -> None:
    """Packets of pods are passed on; nothing of redirects, which a bridge with one leg would send for each."""
    for name, value in (("ip_forward", 1), ("conf/all/send_redirects", 0), ("conf/default/send_redirects", 0)):
        _run(machine, ["tee", f"/proc/sys/net/ipv4/{name}"], f"{value}")


def _run(machine: Machine, command: list[str], given: str) -> None:
    entering = ["nsenter", f"--net=/proc/{machine.pid}/ns/net", *command]
    done = subprocess.run(entering, input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ClusterFailed(f"network of {machine.name}: {' '.join(command)}: {done.stderr.strip()}\n{given}")
