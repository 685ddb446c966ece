"""What a second webhook may do to a GPU pod, well meant or not: add containers, strip what others wrote, flip values, reorder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from tests.testcluster.controlplane.api import Raw

GPU, SLICE, APPLIED = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "berth.dev/applied"
_call = count()


def _sidecar(pod: Raw) -> Raw:
    return {
        "name": f"sidecar-{len(pod['spec']['containers'])}",
        "image": "i:1",
        "resources": {"limits": {GPU: "1"}, "requests": {GPU: "1"}},
    }


def _add_sidecar(pod: Raw) -> None:
    pod["spec"]["containers"].append(_sidecar(pod))


def _add_sidecar_once(pod: Raw) -> None:
    if len(pod["spec"]["containers"]) == 1:
        _add_sidecar(pod)


def _add_gpu_init(pod: Raw) -> None:
    asked = {"limits": {GPU: "4"}, "requests": {GPU: "4"}}
    pod["spec"]["initContainers"] = [{"name": "warm-up", "image": "i:1", "resources": asked}]


def _annotate(pod: Raw) -> None:
    pod["metadata"].setdefault("annotations", {})[f"second.example/call-{next(_call)}"] = ""


def _strip(*fields: str) -> Callable[[Raw], None]:
    def strip(pod: Raw) -> None:
        for field in fields:
            pod["spec"].pop(field, None)

    return strip


def _strip_applied(pod: Raw) -> None:
    pod["metadata"].get("annotations", {}).pop(APPLIED, None)


def _strip_all(pod: Raw) -> None:
    _strip("affinity", "tolerations")(pod)
    _strip_applied(pod)


def _amount(name: str, limit: str, request: str) -> Callable[[Raw], None]:
    """In place of what the first container asks for."""

    def ask(pod: Raw) -> None:
        pod["spec"]["containers"][0]["resources"] = {"limits": {name: limit}, "requests": {name: request}}

    return ask


def _write(**fields: Any) -> Callable[[Raw], None]:
    return lambda pod: pod["spec"].update(fields)


def _tolerate(toleration: Raw) -> Callable[[Raw], None]:
    def tolerate(pod: Raw) -> None:
        if toleration not in (tolerations := pod["spec"].setdefault("tolerations", [])):
            tolerations.append(toleration)

    return tolerate


def _terms(pod: Raw) -> list[Raw]:
    required = pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms: list[Raw] = required.get("nodeSelectorTerms", [])
    return terms


def _reverse(pod: Raw) -> None:
    terms = _terms(pod)
    terms.reverse()
    for term in terms:
        term.get("matchExpressions", []).reverse()


def _flip_family(pod: Raw) -> None:
    """In whatever words it is written."""
    for term in _terms(pod):
        for expression in term.get("matchExpressions", []):
            if expression["key"].startswith("nvidia.com/gpu."):
                expression |= {"key": "nvidia.com/gpu.family", "operator": "In", "values": ["turing", "ampere"]}


def _loosen(pod: Raw) -> None:
    """One more term, beside the others: any of them is enough."""
    _terms(pod).append({"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]})


def _affinity(term: Raw) -> Raw:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


DOES: Mapping[str, Callable[[Raw], None]] = {
    "nothing": lambda pod: None,
    "annotate-each-time": _annotate,
    "add-a-gpu-sidecar": _add_sidecar_once,
    "add-a-gpu-sidecar-each-time": _add_sidecar,
    "add-a-gpu-init-container": _add_gpu_init,
    "strip-tolerations": _strip("tolerations"),
    "strip-affinity": _strip("affinity"),
    "strip-applied": _strip_applied,
    "strip-all": _strip_all,
    "reverse-terms": _reverse,
    "add-a-term": _loosen,
    "flip-family": _flip_family,
    "select-t4": _write(nodeSelector={"nvidia.com/gpu.product": "Tesla-T4"}),
    "select-h100": _write(nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}),
    "pin-to-t4": _write(affinity=_affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["t4"]}]})),
    "name-t4": _write(nodeName="t4"),
    "empty-terms": _write(affinity=_affinity({})),
    "ask-for-more": _amount(GPU, "8", "8"),
    "ask-unequally": _amount(GPU, "2", "1"),
    "ask-for-a-slice": _amount(SLICE, "1", "1"),
    "ask-for-none": lambda pod: pod["spec"]["containers"][0].update(resources={}),
    "tolerate-what-is-forbidden": _tolerate({"key": "team", "operator": "Equal", "value": "other", "effect": "NoSchedule"}),
    "tolerate-everything": _tolerate({"operator": "Exists"}),
    "tolerate-more": _tolerate({"key": "example.com/slow", "operator": "Exists"}),
    "wait-longer": _write(terminationGracePeriodSeconds=7200),
    "wait-shorter": _write(terminationGracePeriodSeconds=5),
}
