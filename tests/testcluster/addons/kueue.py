"""Kueue beside a cluster: the real controller, its definitions and its webhooks, built from sources (``tests.testcluster.thirdparty``).

    start(cluster)
    queues(cluster.api, "team-a", gpus=8)

It runs as a process and is called by URL, with a certificate of this test's own: Kueue's internal one names its Service, which nothing
resolves here. With certificates from outside Kueue reads those of its metrics from /etc/kueue (cmd/kueue/main.go), so it gets an /etc of
its own, in a mount namespace. The webhook configurations have the names of Kueue's own installation, which decide the order of calls.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import yaml

from certs.authority import KeyPair, issue, make_ca
from tests.testcluster import thirdparty
from tests.testcluster.controlplane.api import Api, Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import Process, free_port
from tests.testcluster.controlplane.starting import HOST, apply_crds, http_ok

NAMESPACE = "kueue-system"
NAME = "kueue-mutating-webhook-configuration"
QUEUE = "kueue.x-k8s.io/queue-name"
VERSION = "kueue.x-k8s.io/v1beta2"
FRAMEWORKS = (
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "ray.io/rayjob",
    "ray.io/raycluster",
    "pod",
)
EXCLUDED = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}]}
"""as Kueue's installation patches its webhooks for pods and workloads (config/components/webhook/kustomization.yaml)"""
_PRIVATE = 'mount --bind "$1" /etc && shift && exec "$@"'


def start(cluster: Cluster, frameworks: Sequence[str] = FRAMEWORKS) -> Process:
    """Kueue, ready, its webhooks registered. It ends with the cluster. Raises NoGo, BuildFailed, ClusterFailed.

    Kinds of operators that it shall manage must be defined before.
    """
    program = thirdparty.program(thirdparty.KUEUE, "kueue")
    components = thirdparty.files(thirdparty.KUEUE, "config/components")
    apply_crds(cluster.api, sorted((components / "crd" / "bases").glob("*.yaml")), cluster.processes)
    reply = cluster.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    assert reply.ok, reply.message
    folder = cluster.folder / "kueue"
    now = datetime.now(UTC)
    ca = make_ca(now, name="kueue")
    etc = _files(folder, issue(ca, [HOST], now))
    port, health = free_port(), free_port()
    (folder / "config.yaml").write_text(yaml.safe_dump(_configuration(folder, port, health, frameworks)))
    options = [f"--config={folder / 'config.yaml'}", "--feature-gates=VisibilityOnDemand=false"]
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = ["unshare", *as_root, "--mount", "sh", "-c", _PRIVATE, "sh", str(etc), str(program), *options]
    process = cluster.processes.start("kueue", command, {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)})
    cluster.wait_for(lambda: http_ok(f"http://{HOST}:{health}/readyz"), f"kueue to be ready; its log is {process.log}")
    for configuration in _webhooks(components, port, ca):
        reply = cluster.api.apply(configuration)
        assert reply.ok, reply.message
    return process


def _files(folder: Path, leaf: KeyPair) -> Path:
    """The certificate for webhooks and metrics; returns what stands in for /etc."""
    etc = folder / "etc"
    for place in (folder / "certs", etc / "kueue" / "metrics" / "certs"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "tls.crt").write_bytes(leaf.certificate_pem)
        (place / "tls.key").write_bytes(leaf.key_pem)
    for name in ("hosts", "nsswitch.conf", "passwd", "group", "resolv.conf"):
        if Path("/etc", name).exists():
            shutil.copyfile(Path("/etc", name), etc / name)
    return etc


def _configuration(folder: Path, port: int, health: int, frameworks: Sequence[str]) -> Raw:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"{HOST}:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": HOST, "port": port, "certDir": str(folder / "certs")},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "clientConnection": {"qps": 300, "burst": 500},
        "integrations": {"frameworks": list(frameworks)},
    }


def _webhooks(components: Path, port: int, ca: KeyPair) -> list[Raw]:
    documents = [one for one in yaml.safe_load_all((components / "webhook" / "manifests.yaml").read_text()) if one]
    for document in documents:
        document["metadata"]["name"] = f"kueue-{document['metadata']['name']}"
        for webhook in document["webhooks"]:
            path = webhook["clientConfig"].pop("service")["path"]
            bundle = base64.b64encode(ca.certificate_pem).decode()
            webhook["clientConfig"] |= {"url": f"https://{HOST}:{port}{path}", "caBundle": bundle}
            if not any("kueue.x-k8s.io" in rule["apiGroups"] for rule in webhook["rules"]):
                webhook["namespaceSelector"] = EXCLUDED
    return documents


def queues(api: Api, name: str, namespaces: Sequence[str], gpus: int, flavor: Raw | None = None, **more: Raw) -> None:
    """A ClusterQueue with so many GPUs, its flavor, and a LocalQueue of its name in each namespace.

    ``flavor``: its spec; without it, it is of any node. ``more``: further fields of the ClusterQueue's spec.
    """
    quota = [
        {"name": resource, "nominalQuota": amount} for resource, amount in (("cpu", 1000), ("memory", "1000Gi"), ("nvidia.com/gpu", gpus))
    ]
    group = {"coveredResources": [one["name"] for one in quota], "flavors": [{"name": name, "resources": quota}]}
    for value in (
        {"apiVersion": VERSION, "kind": "ResourceFlavor", "metadata": {"name": name}, **({"spec": flavor} if flavor else {})},
        {
            "apiVersion": VERSION,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {"namespaceSelector": {}, "resourceGroups": [group], **more},
        },
        *(
            {
                "apiVersion": VERSION,
                "kind": "LocalQueue",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"clusterQueue": name},
            }
            for namespace in namespaces
        ),
    ):
        reply = api.apply(value)
        assert reply.ok, reply.message


def workloads(api: Api, namespace: str) -> list[Raw]:
    """Kueue's own objects, one for each workload that it manages."""
    return api.list(VERSION, "Workload", namespace)


def admitted(workload: Raw) -> bool:
    conditions = (workload.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Admitted" and one["status"] == "True" for one in conditions)
