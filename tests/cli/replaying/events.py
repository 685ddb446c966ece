"""Audit events and reviews for tests, as kube-apiserver writes them."""

from __future__ import annotations

import json
from typing import Any

from analysis.reviews.audit_annotations import audit_annotations
from policies.engine import evaluate
from policies.request import Request
from policies.state.snapshot import Snapshot

Raw = dict[str, Any]


def pod(name: str = "p", gpus: str | None = "1", **spec: Any) -> Raw:
    limits = {"cpu": "1"} | ({} if gpus is None else {"nvidia.com/gpu": gpus})
    container = {"name": "main", "image": "x:1", "resources": {"limits": limits, "requests": limits}}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 30, **spec},
    }


def of_job(name: str, job: str, **spec: Any) -> Raw:
    made = pod(name, **spec)
    made["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": "u", "controller": True}]
    return made


def event(made: Raw, number: int = 0, namespace: str = "team", annotations: dict[str, str] | None = None, **fields: Any) -> Raw:
    """A creation at level Request."""
    reference = {"resource": "pods", "namespace": namespace, "name": made["metadata"].get("name"), "apiVersion": "v1"}
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Request",
        "auditID": f"id-{number}",
        "stage": "ResponseComplete",
        "requestURI": f"/api/v1/namespaces/{namespace}/pods",
        "verb": "create",
        "user": {"username": "admin", "groups": ["system:authenticated"]},
        "objectRef": reference,
        "responseStatus": {"metadata": {}, "code": 201},
        "requestObject": made,
        "annotations": {"authorization.k8s.io/decision": "allow", **(annotations or {})},
        **fields,
    }


def decided(made: Raw, snapshot: Snapshot, namespace: str = "team", *, met: Raw | None = None) -> dict[str, str]:
    """The annotations of an event in which Berth decided by these policies; ``met``: the pod as its webhook met it."""
    asked = Request(namespace=namespace, user="admin", groups=("system:authenticated",), pod=met or made)
    verdict = evaluate(asked, snapshot.facts_for(namespace))
    noted = {f"mutate.pods.berth.dev/{key}": value for key, value in audit_annotations(verdict).items()}
    about = {"configuration": "zz-berth", "webhook": "mutate.pods.berth.dev"}
    if not verdict.violations:
        noted["mutation.webhook.admission.k8s.io/round_0_index_0"] = json.dumps({**about, "mutated": bool(verdict.patch)})
    if verdict.patch:
        patch = {**about, "patch": verdict.patch, "patchType": "JSONPatch"}
        noted["patch.webhook.admission.k8s.io/round_0_index_0"] = json.dumps(patch)
    return noted


def cloud_entry(of: Raw) -> Raw:
    """The same event as GKE's Cloud Audit Logs have it: a LogEntry with an AuditLog, the annotations as its labels."""
    reference, made = of["objectRef"], of.get("requestObject")
    resource = ".".join(filter(None, (reference["resource"], reference.get("subresource"))))
    path = "/".join(filter(None, ("core/v1/namespaces", reference["namespace"], reference["resource"], reference.get("name"))))
    method = f"io.k8s.core.v1.{resource}.{of['verb']}"
    payload = {
        "@type": "type.googleapis.com/google.cloud.audit.AuditLog",
        "authenticationInfo": {"principalEmail": of["user"]["username"]},
        "authorizationInfo": [{"granted": True, "permission": method, "resource": path}],
        "methodName": method,
        "requestMetadata": {"callerIp": "192.0.2.1", "callerSuppliedUserAgent": "kubectl"},
        "resourceName": path,
        "serviceName": "k8s.io",
        "status": {},
    }
    for name, found in (("request", made), ("response", of.get("responseObject"))):
        if found is not None:
            payload[name] = {"@type": f"core.k8s.io/v1.{found.get('kind')}", **found}
    return {
        "insertId": of["auditID"],
        "labels": of["annotations"],
        "logName": "projects/example/logs/cloudaudit.googleapis.com%2Factivity",
        "operation": {"first": True, "id": of["auditID"], "last": True, "producer": "k8s.io"},
        "protoPayload": payload,
        "receiveTimestamp": "2026-11-23T08:00:01Z",
        "resource": {"labels": {"cluster_name": "c", "location": "europe-west4", "project_id": "example"}, "type": "k8s_cluster"},
        "timestamp": "2026-11-23T08:00:00Z",
    }


def lines(*values: Any) -> str:
    return "".join(json.dumps(value, separators=(",", ":")) + "\n" for value in values)
