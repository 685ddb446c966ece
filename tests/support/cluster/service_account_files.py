"""What a pod of a service account is given, made for a process of this machine."""

from __future__ import annotations

from pathlib import Path

from cluster.client.access import Access
from tests.testcluster.controlplane.api import Api, Raw
from tests.testcluster.controlplane.cluster import Cluster

NAMESPACE, ACCOUNT = "kube-system", "berth-test"
SUBJECT = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
BINDING: Raw = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": ACCOUNT},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT},
    "subjects": [SUBJECT],
}
ROLE: Raw = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": ACCOUNT},
    "rules": [
        {"apiGroups": ["", "berth.dev"], "resources": ["*"], "verbs": ["list", "watch"]},
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"]},
    ],
}


def account(api: Api) -> None:
    """It may read what is followed."""
    for value in ({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}}, ROLE, BINDING):
        assert (reply := api.apply(value)).ok, reply.message


def token(api: Api, name: str) -> str:
    """Good until the Secret of this name is deleted."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE}}
    uid = api.create(secret)["metadata"]["uid"]
    bound = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": uid}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": [], "boundObjectRef": bound}}
    reply = api.call("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token", body)
    assert reply.ok, reply.message
    return str(reply.body["status"]["token"])


def mount(folder: Path, plane: Cluster, port: int, token: str) -> Access:
    """As InClusterConfig reads it; the API server is on ``port``, such as a proxy's."""
    (folder / "token").write_text(f"{token}\n")
    (folder / "ca.crt").write_bytes(plane.api.ca.read_bytes())
    (folder / "namespace").write_text("berth-system\n")
    return Access(None, mounted=folder, environment={"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)})
