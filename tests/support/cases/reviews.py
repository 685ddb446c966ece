"""Reviews of pods and of workloads, as the API server would send them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.reviews.review import ObjectRequest
from analysis.reviews.workload_advice import from_document
from policies.request import Request

Raw = dict[str, Any]
RECORDED: Raw = json.loads((Path(__file__).parents[2] / "reviews" / "deployments-create-vllm-server.json").read_text())
"""what kube-apiserver 1.36 sent for a Deployment"""


def review_of(request: Request) -> Request:
    """Return the review of a request that a generator drew; no dry run."""
    return replace(request, uid="u", dry_run=False, phase="mutate")


def workload_document(api_version: str, kind: str, workload: object, **request: object) -> Raw:
    """Return the AdmissionReview of a workload. ``request``: fields of the request that differ from the recorded one."""
    group, _, version = api_version.rpartition("/")
    changed = {
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": f"{kind.lower()}s"},
        "object": workload,
        **request,
    }
    return {**RECORDED, "request": {**RECORDED["request"], **changed}}


def workload_review(api_version: str, kind: str, workload: object, **request: object) -> ObjectRequest:
    """Return the same, read."""
    return from_document(workload_document(api_version, kind, workload, **request))


def job_review(template: object, **request: object) -> ObjectRequest:
    """Return the review of a Job with this pod template."""
    return workload_review("batch/v1", "Job", {"metadata": {"name": "j"}, "spec": {"template": template}}, **request)


def ray_review(*templates: object, namespace: str = "ml-team", **spec: object) -> ObjectRequest:
    """Return the review of a RayCluster with a worker group for each pod template. ``spec``: more fields of its spec."""
    groups = [{"template": each} for each in templates]
    return workload_review("ray.io/v1", "RayCluster", {"spec": {"workerGroupSpecs": groups, **spec}}, namespace=namespace)
