"""The object that a fix is written into, as somebody would apply it: without what the cluster added."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.admission.manifests import Manifest, ManifestPod
from analysis.admission.template_edits import project, written_edits
from kube.pod import CONTAINERS, DEFAULT_SCHEDULER
from kube.tree import Raw, map_at, maps_in, set_at, value_at
from policies.patch.record import APPLIED
from policies.verdict import Edit
from policies.workloads import parts

_METADATA = ("name", "namespace", "labels", "annotations")
_ANNOTATIONS = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "batch.kubernetes.io/job-tracking",
    APPLIED,
)
_OF_A_JOB = ("controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name")
"""Labels that the Job controller gives each Job anew, with the selector (pkg/registry/batch/job/strategy.go)."""
_DEFAULTS_OF_A_JOB = {
    "manualSelector": False,
    "completionMode": "NonIndexed",
    "suspend": False,
    "podReplacementPolicy": "TerminatingOrFailed",
}
_DEFAULTS_OF_A_POD = {"dnsPolicy": "ClusterFirst", "schedulerName": DEFAULT_SCHEDULER, "securityContext": {}}
_DEFAULTS_OF_A_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "resources": {}}
"""What is as if it were not written (pkg/apis/core/v1/defaults.go, pkg/apis/batch/v1/defaults.go): nobody wants to read it."""
_TOKEN = "kube-api-access-"
"""Volumes that the ServiceAccount admission adds (plugin/pkg/admission/serviceaccount)."""
REPLACED = ("Pod", "Job")
"""Kinds whose templates cannot be changed: they are made anew."""


def command(kind: str, name: str, file: str) -> str:
    """Return what to type to have the fix in the cluster. ``name``: "" of an object that is named by the API server."""
    if not name:
        return f"kubectl create -f {file}"
    return f"kubectl replace --force -f {file}" if kind in REPLACED else f"kubectl apply -f {file}"


def pod(value: Mapping[str, Any], edits: Sequence[Edit]) -> Raw:
    """Return a pod with the edits."""
    edited: Raw = project(value, edits)
    return edited


def fix_workload(manifest: Manifest, subject: ManifestPod, edits: Sequence[Edit]) -> Raw:
    """Return the object that makes the pod, with the edits in its template."""
    if subject.is_template:
        template = project(value_at(manifest.value, subject.template), edits)
        edited: Raw = set_at(manifest.value, subject.template, template) if subject.template else template
    else:
        edited = parts.write_parts(manifest.value, subject.written, project(subject.written, edits), subject.parts)
    return cleaned(edited)


def edits_of_author(subject: ManifestPod, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return the edits of the template as its author wrote it: none of amounts that only the API server fills in."""
    return tuple(written_edits(subject.written, edits))


def cleaned(value: Mapping[str, Any]) -> Raw:
    """Return an object without its status, and without what the API server and controllers wrote into it."""
    found: Raw = copy.deepcopy({key: one for key, one in value.items() if key != "status"})
    metadata = map_at(found, "metadata")
    found["metadata"] = {key: metadata[key] for key in _METADATA if metadata.get(key)}
    for key in _ANNOTATIONS if found.get("kind") != "Pod" else _ANNOTATIONS[:-1]:
        found["metadata"].get("annotations", {}).pop(key, None)
    found = {key: found[key] for key in ("apiVersion", "kind", "metadata") if key in found} | found
    spec = found.get("spec")
    if not isinstance(spec, dict):
        return found
    if found.get("kind") == "Pod":
        _cleaned_pod(spec)
    if found.get("kind") == "Job" and not spec.get("manualSelector"):
        spec.pop("selector", None)
        for labels in (found["metadata"].get("labels"), map_at(spec, "template", "metadata").get("labels")):
            if isinstance(labels, dict):
                for key in _OF_A_JOB:
                    labels.pop(key, None)
    if found.get("kind") == "Job":
        _without(spec, _DEFAULTS_OF_A_JOB)
    _without_defaults(spec)
    found["metadata"] = {key: one for key, one in found["metadata"].items() if one}
    return found


def _without_defaults(value: Any) -> None:
    """Take away what the API server writes where an author is silent and means nothing, in a pod wherever it stands in an object."""
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _without_defaults(one)
    if not isinstance(value, dict):
        return
    if any(isinstance(value.get(field), list) for field in CONTAINERS):
        _without(value, _DEFAULTS_OF_A_POD)
        for container in (one for field in CONTAINERS for one in maps_in(value.get(field))):
            _without(container, _DEFAULTS_OF_A_CONTAINER)
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and "spec" in value:
        for key in [key for key, one in metadata.items() if one is None or one == {}]:
            del metadata[key]
        if not metadata:
            del value["metadata"]


def _without(value: Any, defaults: Mapping[str, Any]) -> None:
    for key, default in defaults.items():
        if key in value and value[key] == default and type(value[key]) is type(default):
            del value[key]


def _cleaned_pod(spec: Raw) -> None:
    spec.pop("nodeName", None)
    if isinstance(spec.get("volumes"), list):
        spec["volumes"] = [one for one in spec["volumes"] if not str(map_at(one).get("name")).startswith(_TOKEN)]
    for field in CONTAINERS:
        for container in spec.get(field) or ():
            if isinstance(container, dict) and isinstance(container.get("volumeMounts"), list):
                mounts = container["volumeMounts"]
                container["volumeMounts"] = [one for one in mounts if not str(map_at(one).get("name")).startswith(_TOKEN)]
