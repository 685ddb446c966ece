"""Starting a rig: a control plane on a machine of its own, nodes on theirs, and a relay by which tests, kubectl and Helm reach it."""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from certs.authority import issue, make_ca
from tests.testcluster import programs
from tests.testcluster.controlplane.cluster import Options
from tests.testcluster.controlplane.processes import Processes, free_port, watched
from tests.testcluster.controlplane.starting import Starting
from tests.testcluster.kubelets import network, relay
from tests.testcluster.kubelets.machine import Machine, there
from tests.testcluster.kubelets.node import NODE_GRACE, Node
from tests.testcluster.kubelets.rig import PLANE, Rig

PORTS = 6
"""etcd two, kube-apiserver, kube-scheduler, kube-controller-manager, kwok"""
PROXY = "system:kube-proxy"
"""the user whom the API server's own roles know"""


@contextmanager
def rigged(*archives: Path, nodes: int = 3, options: Options | None = None, keep: Callable[[], bool] = lambda: False) -> Iterator[Rig]:
    """Every node is ready and has these images, of which one is ``node.PAUSE``. On leaving nothing is left. Raises NoProgram and
    BuildFailed for what is not there, ClusterFailed for what does not start."""
    for program in (*programs.PROGRAMS, *programs.ON_A_NODE):  # before anything is started
        if program.name != "karpenter":
            programs.path(program.name)
    with watched(keep=keep) as processes:
        rig = _started(processes, nodes, options or Options())
        try:
            rig.up(archives)
            yield rig
        finally:
            rig.cluster.api.close()
            rig.switch_off()


def _started(processes: Processes, count: int, options: Options) -> Rig:
    """The control plane runs; no node is on yet."""
    names = [f"node-{number}" for number in range(1, count + 1)]
    tokens = {name: secrets.token_urlsafe(16) for name in (*names, PROXY)}
    plane = Machine(name=PLANE, folder=processes.folder / PLANE, processes=processes)
    plane.switch_on()
    network.lay(plane)
    ports = iter(_carried(plane))
    _write_certificate(processes.folder / "certs")
    chosen = _for_real_nodes(options, tokens)
    cluster = Starting(processes=there(plane), options=chosen, port=lambda: next(ports)).cluster()
    rig = Rig(cluster=cluster, plane=plane, nodes={}, proxy_token=tokens[PROXY])
    for number, name in enumerate(names, 1):
        machine = Machine(name=name, folder=processes.folder / name, processes=processes)
        server = f"https://{network.PLANE}:{cluster.api.port}"
        rig.nodes[name] = Node(
            number=number, machine=machine, server=server, ca=cluster.api.ca, token=tokens[name], proxy_token=tokens[PROXY]
        )
    return rig


def _for_real_nodes(options: Options, tokens: dict[str, str]) -> Options:
    """The API server is reached from all machines, and knows each node as itself alone."""
    nodes = [(token, f"system:node:{name}", "system:nodes") for name, token in tokens.items() if name != PROXY]
    apiserver = ["--bind-address=0.0.0.0", f"--advertise-address={network.PLANE}", "--endpoint-reconciler-type=lease"]
    apiserver += ["--authorization-mode=Node", "--enable-admission-plugins=NodeRestriction", "--kubelet-preferred-address-types=InternalIP"]
    return replace(
        options,
        apiserver=(*apiserver, *options.apiserver),
        manager=(f"--node-monitor-grace-period={NODE_GRACE}s", *options.manager),
        tokens=(*nodes, (tokens[PROXY], PROXY, "system:authenticated")),
        real_nodes=True,
    )


def _carried(plane: Machine) -> Sequence[int]:
    """Ports of this machine's loopback that lead to the same ports of the plane's."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", free_port()), backlog=1024)) for _ in range(PORTS)]
        ports = [one.getsockname()[1] for one in sockets]
        inherited = [one.fileno() for one in sockets]
        words = [f"{descriptor}:{port}" for descriptor, port in zip(inherited, ports, strict=True)]
        enter = ["nsenter", f"--net=/proc/{plane.pid}/ns/net", sys.executable, "-S", relay.__file__]
        plane.processes.start("relay", [*enter, *words], inherited=inherited)
    return ports


def _write_certificate(folder: Path) -> None:
    """Where kube-apiserver looks before it makes one: it is called by names from both sides of the relay."""
    folder.mkdir()
    now = datetime.now(UTC)
    ca = make_ca(now, name="rig")
    names = ("127.0.0.1", network.PLANE, "10.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
    leaf = issue(ca, names, now, life=timedelta(days=30))
    (folder / "apiserver.crt").write_bytes(leaf.certificate_pem + ca.certificate_pem)
    (folder / "apiserver.key").write_bytes(leaf.key_pem)
