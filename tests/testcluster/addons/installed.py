"""Berth's kinds and rights in a cluster, as a user installs them, and how Berth then calls its API server: as its own service account."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.testcluster.controlplane import kubeconfig
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.starting import apply_crds

DEPLOY = Path(__file__).parents[3] / "deploy"
NAMESPACE, ACCOUNT, AUDITOR = "berth-system", "berth", "berth-audit"
TOKEN_SECONDS = 24 * 3600
"""longer than any test"""


def install(cluster: Cluster) -> Path:
    """``kubectl apply -f deploy/crds -f deploy/rbac.yaml``; the kubeconfig of the account that it makes. May be done twice."""
    apply_crds(cluster.api, sorted((DEPLOY / "crds").glob("*.yaml")), cluster.processes)
    for value in yaml.safe_load_all((DEPLOY / "rbac.yaml").read_text()):
        reply = cluster.api.apply(value)
        assert reply.ok, reply.message
    file = cluster.folder / "berth.kubeconfig"
    write_kubeconfig(file, cluster, token(cluster))
    return file


def token(cluster: Cluster, seconds: int = TOKEN_SECONDS, account: str = ACCOUNT) -> str:
    """A new one for an account of Berth's (TokenRequest); an API server gives none of less than 600 s."""
    asked: Raw = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}}
    reply = cluster.api.call("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token", asked)
    assert reply.ok, reply.message
    found: str = reply.body["status"]["token"]
    return found


def write_kubeconfig(file: Path, cluster: Cluster, token: str, port: int | None = None) -> None:
    """``port``: of a proxy before the API server."""
    kubeconfig.write(file, f"https://{cluster.api.host}:{port or cluster.api.port}", cluster.api.ca, token, NAMESPACE)
