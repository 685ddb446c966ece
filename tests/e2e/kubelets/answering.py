"""A Deployment of a container that says which pod it is, its Service, and a webhook that is it."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

from certs.authority import issue, make_ca
from tests.testcluster.controlplane.processes import ClusterFailed
from tests.testcluster.images.small_image import ANSWERING
from tests.testcluster.kubelets.rig import Rig

Raw = dict[str, Any]
GONE_SECONDS = 5
"""until a pod leaves a node that is not heard of; 300 where nothing is said"""


def deploy(rig: Rig, name: str, replicas: int) -> Raw:
    """Every replica is ready. Its Service has the same name."""
    labels = {"app": name}
    secret = _certificate(rig, name)
    pod: Raw = {"containers": [_container()], "volumes": [{"name": "tls", "secret": {"secretName": secret, "defaultMode": 0o444}}]}
    pod["tolerations"] = [
        {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": GONE_SECONDS}
        for taint in ("not-ready", "unreachable")
    ]
    pod["terminationGracePeriodSeconds"] = 2
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    pod["topologySpreadConstraints"] = [{**spread, "labelSelector": {"matchLabels": labels}}]
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    rig.api.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})
    ports = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "https", "port": 443, "targetPort": 8443}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"selector": labels, "ports": ports}}
    made = rig.api.create(service)
    rolled(rig, name)
    return made


def _container() -> Raw:
    return {
        "name": "answering",
        "image": ANSWERING,
        "env": [{"name": "CERTIFICATE", "value": "/tls"}],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
        "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
        "securityContext": {"runAsNonRoot": True, "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False},
    }


def _certificate(rig: Rig, name: str) -> str:
    """A Secret with it and its CA, for the Service's name; named as the Deployment."""
    now = datetime.now(UTC)
    ca = make_ca(now, name=name)
    leaf = issue(ca, [f"{name}.default.svc"], now)
    files = {"tls.crt": leaf.certificate_pem, "tls.key": leaf.key_pem, "ca.crt": ca.certificate_pem}
    data = {key: base64.b64encode(value).decode() for key, value in files.items()}
    rig.api.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data})
    return name


def register(rig: Rig, name: str) -> None:
    """It admits ConfigMaps, by its Service."""
    secret = rig.api.get("v1", "Secret", name, "default")
    assert secret is not None
    called = {"service": {"namespace": "default", "name": name, "path": "/admit"}, "caBundle": secret["data"]["ca.crt"]}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    webhook = {"name": f"{name}.tests.berth.dev", "clientConfig": called, "rules": [rule], "sideEffects": "None"}
    webhook |= {"admissionReviewVersions": ["v1"], "matchConditions": [{"name": "named", "expression": "object.metadata.name == 'asked'"}]}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    rig.api.create({**kind, "metadata": {"name": name}, "webhooks": [webhook]})


def rolled(rig: Rig, name: str) -> None:
    """The Deployment is as it is to be, with no pod of before."""
    rig.cluster.wait_for(lambda: _rolled(rig, name), f"Deployment {name} to be rolled out")


def _rolled(rig: Rig, name: str) -> bool:
    found = rig.api.get("apps/v1", "Deployment", name, "default")
    assert found is not None
    status, wanted = found.get("status", {}), found["spec"]["replicas"]
    seen = status.get("observedGeneration") == found["metadata"]["generation"]
    return seen and all(status.get(key, 0) == wanted for key in ("replicas", "updatedReplicas", "readyReplicas"))


def pods(rig: Rig, name: str) -> list[Raw]:
    return rig.api.list("v1", "Pod", "default", labelSelector=f"app={name}")


def names(rig: Rig, name: str) -> set[str]:
    return {pod["metadata"]["name"] for pod in pods(rig, name)}


def endpoints(rig: Rig, name: str) -> set[str]:
    """Addresses that the Service sends calls to."""
    slices = rig.api.list("discovery.k8s.io/v1", "EndpointSlice", "default", labelSelector=f"kubernetes.io/service-name={name}")
    found = [one for part in slices for one in part.get("endpoints") or ()]
    return {address for one in found if one["conditions"].get("ready") for address in one["addresses"]}


def asked(rig: Rig, address: str) -> str | None:
    """Which pod answers there; None where none does."""
    try:
        return rig.in_namespace("curl", "--silent", "--show-error", "--fail", "--max-time", "5", f"http://{address}").strip()
    except ClusterFailed:
        return None
