"""metrics-server beside the API server, as a process: what a HorizontalPodAutoscaler reads is what the kubelets tell of their pods."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from tests.testcluster import programs
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.kubelets import network
from tests.testcluster.kubelets.rig import Rig

NAME, NAMESPACE = "metrics-server", "kube-system"
PORT = 4443
"""In the namespace of the control plane's machine, where nobody else has it"""


def start(rig: Rig) -> None:
    """Until pods have metrics. Raises NoProgram, BuildFailed and ClusterFailed."""
    flags = [f"--{flag}={rig.kubeconfig}" for flag in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")]
    flags += ["--authentication-skip-lookup", "--kubelet-insecure-tls", "--kubelet-preferred-address-types=InternalIP"]
    flags += [f"--cert-dir={rig.plane.folder / NAME}", f"--secure-port={PORT}", "--metric-resolution=15s"]  # as in its own manifests
    rig.plane.start(NAME, [str(programs.path(NAME)), *flags])
    for value in _objects():
        reply = rig.api.apply(value)
        assert reply.ok, reply.message
    rig.cluster.wait_for(lambda: usage(rig, "kube-system") is not None, "metrics.k8s.io to be served")


def usage(rig: Rig, namespace: str) -> dict[str, float] | None:
    """Millicores by pod, as metrics-server tells; None where it is not served."""
    reply = rig.api.call("GET", f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods")
    if not reply.ok:
        return None
    return {one["metadata"]["name"]: sum(_millicores(part["usage"]["cpu"]) for part in one["containers"]) for one in reply.body["items"]}


def _millicores(quantity: str) -> float:
    """Of what metrics-server writes: 12345678n, 123u, 12m or 1."""
    digits = quantity.rstrip("num")
    return float(digits) * {"n": 1e-6, "u": 1e-3, "m": 1.0, "": 1e3}[quantity[len(digits) :]]


def _objects() -> Iterator[Raw]:
    """metrics-server's own manifests, but for the pod, whose place the process takes.

    The rig's API server has no certificate by which those whom it forwards calls to would know it, so nobody in particular reads them.
    """
    folder = programs.manifests(NAME, "manifests/base") / "manifests" / "base"
    service, registered = (yaml.safe_load((folder / f"{name}.yaml").read_text()) for name in ("service", "apiservice"))
    yield from (value for value in yaml.safe_load_all((folder / "rbac.yaml").read_text()) if value["kind"] == "ClusterRole")
    yield from (_for_all(role) for role in ("system:discovery", "system:aggregated-metrics-reader"))
    (port,) = service["spec"]["ports"]
    service["spec"] = {"ports": [{**port, "targetPort": PORT}]}
    yield service
    yield {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": "IPv4",
        "ports": [{"name": port["name"], "port": PORT, "protocol": "TCP"}],
        "endpoints": [{"addresses": [network.PLANE], "conditions": {"ready": True}}],
    }
    yield registered


def _for_all(role: str) -> Raw:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{role}:{NAME}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "system:anonymous"}],
    }
