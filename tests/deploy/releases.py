"""Releases of the chart on a control plane without kubelets: Berth runs beside it, by the account and the rights that the chart makes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from registration.configurations import NAME
from tests.deploy.rendering import Raw
from tests.testcluster.addons.berth import COMMAND, PROBE, ROOT, Berth, listening
from tests.testcluster.addons.helm import helm
from tests.testcluster.addons.installed import token, write_kubeconfig
from tests.testcluster.controlplane.cluster import Cluster

SYSTEM = "berth-system"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
PODS = "validate.pods.berth.dev"
IDLE = {"mutate.claims.berth.dev", "validate.claims.berth.dev"}
"""The entries that are never called by default."""
ENDPOINTS: Raw = {
    "apiVersion": "discovery.k8s.io/v1",
    "kind": "EndpointSlice",
    "metadata": {"name": "berth-of-a-kubelet", "namespace": SYSTEM, "labels": {"kubernetes.io/service-name": "berth"}},
    "addressType": "IPv4",
    "endpoints": [{"addresses": ["198.18.0.99"], "conditions": {"ready": True}}],
}
"""What Kubernetes writes once a kubelet has found a replica ready."""


def release(cluster: Cluster, *words: str) -> str:
    """Helm, on that cluster."""
    return helm(*words, f"--namespace={SYSTEM}", kubeconfig=cluster.kubeconfig)


def accepted(cluster: Cluster, namespace: str) -> bool:
    """Whether a GPU pod can be created."""
    return cluster.api.try_create(PROBE, namespace, dry_run=True).ok


def entries(cluster: Cluster) -> list[Raw]:
    """Of both configurations."""
    found = [cluster.api.get("admissionregistration.k8s.io/v1", f"{kind}WebhookConfiguration", NAME) for kind in ("Mutating", "Validating")]
    return [entry for one in found if one is not None for entry in one["webhooks"]]


def published(cluster: Cluster) -> bool:
    """Whether Berth has told every entry of its CA."""
    found = entries(cluster)
    return bool(found) and all(entry["clientConfig"].get("caBundle") for entry in found)


def certificates_version(cluster: Cluster) -> str:
    """Return the resourceVersion of Berth's Secret of certificates."""
    secret = cluster.api.get("v1", "Secret", "berth-certificates", SYSTEM)
    assert secret is not None
    version: str = secret["metadata"]["resourceVersion"]
    return version


def beside(cluster: Cluster) -> Berth:
    """A replica with the rights that the chart gives."""
    file = cluster.folder / "of-the-chart.kubeconfig"
    write_kubeconfig(file, cluster, token(cluster))
    shared = ["--cert-secret", f"{SYSTEM}/berth-certificates", "--names", f"berth.{SYSTEM}.svc", "--lame-duck", "0"]
    where = ["--kubeconfig", str(file), "--listen", "127.0.0.1:0", "--health", "127.0.0.1:0"]
    process = cluster.processes.start("berth-of-the-chart", [*COMMAND, "serve", *where, *shared], {"PYTHONPATH": str(ROOT)})
    return listening(cluster, "of-the-chart", process)


@contextmanager
def replica(cluster: Cluster) -> Iterator[Berth]:
    """Run a replica that the API server can reach, as far as the cluster knows."""
    process = beside(cluster)
    cluster.api.create(ENDPOINTS)
    try:
        yield process
    finally:
        cluster.processes.end(process.process)
        cluster.api.delete(ENDPOINTS)


@dataclass(slots=True)
class Versions:
    """All versions of the validating configuration that the API server stored: whether each had the rules for pods."""

    with_rules: list[bool] = field(default_factory=list)


@contextmanager
def followed(cluster: Cluster) -> Iterator[Versions]:
    """Collect the versions that are stored within the block, and the one before."""
    before = cluster.api.call("GET", f"{VALIDATING}/{NAME}").body
    versions = Versions(with_rules=[has_rules(before)])
    yield versions
    query = f"watch=1&fieldSelector=metadata.name={NAME}&resourceVersion={before['metadata']['resourceVersion']}&timeoutSeconds=1"
    lines = cluster.api.text(f"{VALIDATING}?{query}").splitlines()
    versions.with_rules += [has_rules(json.loads(line)["object"]) for line in lines if line]


def has_rules(configuration: Raw) -> bool:
    """Return whether the API server calls Berth for pods."""
    return any(entry["name"] == PODS and entry.get("rules") for entry in configuration["webhooks"])


def in_effect(cluster: Cluster) -> bool:
    """Return whether every entry has its rules."""
    webhooks = entries(cluster)
    return bool(webhooks) and {entry["name"] for entry in webhooks if not entry.get("rules")} == IDLE


def kubectl(cluster: Cluster, *words: str) -> None:
    """Run kubectl as an administrator."""
    done = subprocess.run(cluster.kubectl(*words), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
