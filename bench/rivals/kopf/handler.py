"""A handler as authors of webhooks write it in Python, on kopf: the same edits hard-coded.

Run by the Python of a virtual environment that holds requirements.txt, never by Berth's own. The operator's way of a review
is taken from the web server on (``kopf.WebhookServer``); what needs a cluster (watching, registration) is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import functools
import logging
import re
from typing import Any

import kopf
from kopf._cogs.configs.configuration import OperatorSettings
from kopf._cogs.structs.references import Insights, Resource
from kopf._core.engines.admission import serve_admission_request
from kopf._core.engines.indexing import OperatorIndexers
from kopf._core.reactor.inventory import ResourceMemories

GPU = "nvidia.com/gpu"
PROTECT = "karpenter.sh/do-not-disrupt"
CAPACITY = "karpenter.sh/capacity-type"
MACHINE = "karpenter.k8s.aws/instance-"
TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
TRAINING = [
    {"key": f"{MACHINE}family", "operator": "Exists"},
    {
        "key": f"{MACHINE}family",
        "operator": "NotIn",
        "values": ["g3", "g3s", "g4dn", "g5", "g5g", "g6", "g6e", "g6f", "g7", "g7e", "gr6", "gr6f", "p2", "p3", "p3dn", "p4d"],
    },
]
SMALL = [
    {"key": f"{MACHINE}gpu-name", "operator": "In", "values": ["l4"]},
    {"key": f"{MACHINE}gpu-memory", "operator": "In", "values": ["22888"]},
]
WHOLE = [
    {"key": "nvidia.com/gpu.sharing-strategy", "operator": "NotIn", "values": ["time-slicing", "mps"]},
    {"key": "nvidia.com/gpu.slices.gi", "operator": "DoesNotExist"},
]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NOTE = (
    '[{"by":["ClusterGPUPolicy/berth-default"],"rule":"tolerations","path":"/spec/tolerations/2","is":"ec582b1c"},'
    '{"by":["ClusterGPUPolicy/several-gpus-are-whole","ClusterGPUPolicy/training"],"rule":"node_affinity","path":'
    '"/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution","is":"d587f5cb"},'
    '{"by":["ClusterGPUPolicy/training"],"rule":"checkpoint_grace","path":"/spec/terminationGracePeriodSeconds","is":"e49ec846"}]'
)
"""stands for Berth's own annotation: as long as that one is on average"""
SHORT = 2 * 3600
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@kopf.on.mutate("pods", id="mutate")
def mutate(spec: kopf.Spec, meta: kopf.Meta, annotations: kopf.Annotations, patch: kopf.Patch, **_: Any) -> None:
    """Writes into ``patch`` what the pod lacks."""
    gpus = sum(int(c.get("resources", {}).get("limits", {}).get(GPU, 0)) for c in spec["containers"])
    if not gpus:
        return
    tolerations = spec.get("tolerations", [])
    if not any(
        t.get("key") == GPU and t.get("operator") == "Exists" and t.get("effect", "NoSchedule") == "NoSchedule" for t in tolerations
    ):
        patch.spec["tolerations"] = [*tolerations, TOLERATION]
    kind = next((owner["kind"] for owner in meta.get("ownerReferences", ()) if owner.get("controller")), "")
    job = kind in ("Job", "PyTorchJob")
    require: list[dict[str, Any]] = []
    if job or (kind == "ReplicaSet" and gpus == 1):
        if (not job or gpus >= 4) and not _says(spec, MACHINE):
            require += TRAINING if job else SMALL
        if not _says(spec, CAPACITY):
            stays = not job or not _brief(spec, annotations)
            require.append({"key": CAPACITY, "operator": "In", "values": ["on-demand", "reserved"] if stays else ["spot"]})
    if gpus >= 2:
        require += WHOLE
    if require:
        patch.spec["affinity"] = _affinity(spec, require)
    if job:
        _raise_grace(spec, patch, 1800 if gpus >= 4 else 120)
    if job and gpus >= 4 and PROTECT not in annotations:
        patch.metadata.annotations[PROTECT] = "true"
    patch.metadata.annotations["berth.dev/applied"] = NOTE


def _terms(spec: kopf.Spec) -> list[dict[str, Any]]:
    terms: list[dict[str, Any]] = spec.get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED, {}).get("nodeSelectorTerms", [])
    return terms


def _says(spec: kopf.Spec, key: str) -> bool:
    keys = [e["key"] for term in _terms(spec) for e in term.get("matchExpressions", ())]
    return any(name.startswith(key) for name in [*keys, *spec.get("nodeSelector", {})])


def _brief(spec: kopf.Spec, annotations: kopf.Annotations) -> bool:
    text = annotations.get("berth.dev/expected-duration")
    if text is None:
        return 0 < spec.get("activeDeadlineSeconds", 0) <= SHORT
    return sum(int(n) * UNITS[unit] for n, unit in re.findall(r"(\d+)([smhd])", text)) <= SHORT


def _affinity(spec: kopf.Spec, require: list[dict[str, Any]]) -> dict[str, Any]:
    affinity: dict[str, Any] = copy.deepcopy(dict(spec.get("affinity", {})))
    node = affinity.setdefault("nodeAffinity", {}).setdefault(REQUIRED, {"nodeSelectorTerms": [{"matchExpressions": []}]})
    for term in node["nodeSelectorTerms"]:
        term["matchExpressions"] = [*term.get("matchExpressions", ()), *require]
    return affinity


def _raise_grace(spec: kopf.Spec, patch: kopf.Patch, seconds: int) -> None:
    former = spec.get("terminationGracePeriodSeconds", 30)
    if former != 30:  # written by somebody
        return
    patch.spec["terminationGracePeriodSeconds"] = seconds
    if any(probe in container for container in spec["containers"] for probe in ("livenessProbe", "startupProbe")):
        containers = copy.deepcopy(list(spec["containers"]))
        for container in containers:
            for probe in ("livenessProbe", "startupProbe"):
                if probe in container:
                    container[probe].setdefault("terminationGracePeriodSeconds", former)
        patch.spec["containers"] = containers


async def main() -> None:
    """Answer until killed."""
    parser = argparse.ArgumentParser()
    for option in ("--listen", "--cert", "--key"):
        parser.add_argument(option, required=True)
    args = parser.parse_args()
    host, port = args.listen.rsplit(":", 1)
    insights = Insights()
    insights.webhook_resources.add(Resource("", "v1", "pods", kind="Pod", singular="pod", namespaced=True, preferred=True))
    answer = functools.partial(
        serve_admission_request,
        settings=OperatorSettings(),
        memories=ResourceMemories(),
        memobase=object(),
        registry=kopf.get_default_registry(),
        insights=insights,
        indices=OperatorIndexers().indices,
    )
    server = kopf.WebhookServer(addr=host, port=int(port), certfile=args.cert, pkeyfile=args.key)
    async for _ in server(answer):
        await asyncio.Event().wait()


if __name__ == "__main__":
    logging.disable(logging.INFO)  # a line for each call, which nobody reads here
    asyncio.run(main())
