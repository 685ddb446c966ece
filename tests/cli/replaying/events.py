"""Audit events and reviews for tests, as kube-apiserver writes them."""

from __future__ import annotations

import json
from typing import Any

from policies.engine import evaluate
from policies.request import Request
from policies.state.snapshot import Snapshot
from webhook.admission.audit_annotations import audit_annotations

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


def lines(*values: Any) -> str:
    return "".join(json.dumps(value, separators=(",", ":")) + "\n" for value in values)
