"""Answer reviews as authors of webhooks do in Python: Starlette on uvicorn, the standard library's json, the same edits hard-coded."""

from __future__ import annotations

import argparse
import base64
import json
import re
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

PROTECT, APPLIED = "karpenter.sh/do-not-disrupt", "berth.dev/applied"
CAPACITY, MACHINE = "karpenter.sh/capacity-type", "karpenter.k8s.aws/instance-"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
EDITS = json.loads((Path(__file__).parents[1] / "go" / "edits.json").read_text())
UNITS = {"s": 1, "m": 60, "h": 3600}
Patch = list[dict[str, Any]]


async def mutate(request: Request) -> JSONResponse:
    """Answer one review."""
    review = json.loads(await request.body())
    response: dict[str, Any] = {"uid": review["request"]["uid"], "allowed": True}
    if patch := edits(review["request"]["object"]):
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
    return JSONResponse({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})


def edits(pod: dict[str, Any]) -> Patch:
    """Return the edits that Berth's shipped policies make for the pods of the bench."""
    spec, metadata, patch = pod["spec"], pod["metadata"], Patch()
    gpus = sum(int(c.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", 0)) for c in spec["containers"])
    if not gpus:
        return patch
    tolerations, annotations = spec.get("tolerations", []), metadata.get("annotations", {})
    if not any({"effect": "NoSchedule", **t} == EDITS["toleration"] for t in tolerations):
        patch.append(_add("/spec/tolerations", [*tolerations, EDITS["toleration"]]))
    kind = next((owner["kind"] for owner in metadata.get("ownerReferences", ()) if owner.get("controller")), "")
    is_job = kind in ("Job", "PyTorchJob")
    require: list[dict[str, Any]] = []
    if is_job or (kind == "ReplicaSet" and gpus == 1):
        if (not is_job or gpus >= 4) and not _names(spec, MACHINE):
            require += EDITS["training"] if is_job else EDITS["small"]
        if not _names(spec, CAPACITY):
            require.append(EDITS["spot"] if is_job and _is_brief(spec, annotations) else EDITS["onDemand"])
    if gpus >= 2:
        require += EDITS["whole"]
    if require:
        affinity = spec.get("affinity", {})
        node = affinity.setdefault("nodeAffinity", {}).setdefault(REQUIRED, {"nodeSelectorTerms": [{"matchExpressions": []}]})
        for term in node["nodeSelectorTerms"]:
            term["matchExpressions"] = [*term.get("matchExpressions", ()), *require]
        patch.append(_add("/spec/affinity", affinity))
    if is_job and spec.get("terminationGracePeriodSeconds", 30) == 30:  # otherwise the author's own
        patch.append(_add("/spec/terminationGracePeriodSeconds", 1800 if gpus >= 4 else 120))
        for i, container in enumerate(spec["containers"]):
            for probe in ("livenessProbe", "startupProbe"):
                if "terminationGracePeriodSeconds" not in container.get(probe, {"terminationGracePeriodSeconds": 0}):
                    patch.append(_add(f"/spec/containers/{i}/{probe}/terminationGracePeriodSeconds", 30))
    protect = {PROTECT: "true"} if is_job and gpus >= 4 else {}
    return [*patch, _add("/metadata/annotations", {**protect, **annotations, APPLIED: EDITS["note"]})]


def _add(path: str, value: object) -> dict[str, object]:
    return {"op": "add", "path": path, "value": value}


def _names(spec: dict[str, Any], prefix: str) -> bool:
    terms = spec.get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED, {}).get("nodeSelectorTerms", [])
    keys = [expression["key"] for term in terms for expression in term.get("matchExpressions", ())]
    return any(key.startswith(prefix) for key in [*keys, *spec.get("nodeSelector", {})])


def _is_brief(spec: dict[str, Any], annotations: dict[str, str]) -> bool:
    if (text := annotations.get("berth.dev/expected-duration")) is None:
        return 0 < spec.get("activeDeadlineSeconds", 0) <= 7200
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([smh])", text)) <= 7200


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for option in ("--listen", "--cert", "--key"):
        parser.add_argument(option, required=True)
    args = parser.parse_args()
    host, _, port = args.listen.rpartition(":")
    app = Starlette(routes=[Route("/mutate", mutate, methods=["POST"])])
    uvicorn.run(app, host=host, port=int(port), ssl_certfile=args.cert, ssl_keyfile=args.key, log_level="warning")
