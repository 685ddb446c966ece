"""Answer reviews as authors of webhooks do in Python: Starlette on uvicorn, the standard library's json, the same edits hard-coded."""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

CAPACITY, MACHINE = "karpenter.sh/capacity-type", "karpenter.k8s.aws/instance-"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
EDITS = json.loads((Path(__file__).parents[1] / "go" / "edits.json").read_text())
UNITS = {"s": 1, "m": 60, "h": 3600}
Raw = dict[str, Any]


async def mutate(request: Request) -> JSONResponse:
    """Answer one review."""
    review = json.loads(await request.body())
    response: Raw = {"uid": review["request"]["uid"], "allowed": True}
    if fields := edited(review["request"]["object"]):
        patch = [{"op": "add", "path": path, "value": value} for path, value in fields.items()]
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
    return JSONResponse({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})


def edited(pod: Raw) -> Raw:
    """Return the fields that Berth's shipped policies change in the pods of the bench."""
    spec, metadata, fields = pod["spec"], pod["metadata"], Raw()
    gpus = sum(int(c.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", 0)) for c in spec["containers"])
    if not gpus:
        return fields
    tolerations, annotations = spec.get("tolerations", []), metadata.get("annotations", {})
    if EDITS["toleration"] not in tolerations:
        fields["/spec/tolerations"] = [*tolerations, EDITS["toleration"]]
    kind = next((owner["kind"] for owner in metadata.get("ownerReferences", ()) if owner.get("controller")), "")
    is_job = kind in ("Job", "PyTorchJob")
    is_training, is_server = is_job and gpus >= 4, kind == "ReplicaSet" and gpus == 1
    terms = spec.get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED, {}).get("nodeSelectorTerms", [{}])
    keys = [*spec.get("nodeSelector", {}), *(expression["key"] for term in terms for expression in term.get("matchExpressions", ()))]
    require: list[Raw] = []
    if (is_training or is_server) and not any(key.startswith(MACHINE) for key in keys):
        require += EDITS["training"] if is_training else EDITS["small"]
    if (is_job or is_server) and CAPACITY not in keys:
        duration = re.findall(r"(\d+)([smh])", annotations.get("berth.dev/expected-duration", "24h"))
        is_brief = sum(int(number) * UNITS[unit] for number, unit in duration) <= 7200
        require.append(EDITS["spot"] if is_job and is_brief else EDITS["onDemand"])
    if gpus >= 2:
        require += EDITS["whole"]
    if require:
        terms = [{**term, "matchExpressions": [*term.get("matchExpressions", ()), *require]} for term in terms]
        affinity = spec.get("affinity", {})
        node = {**affinity.get("nodeAffinity", {}), REQUIRED: {"nodeSelectorTerms": terms}}
        fields["/spec/affinity"] = {**affinity, "nodeAffinity": node}
    if is_job and spec.get("terminationGracePeriodSeconds", 30) == 30:  # otherwise the author's own
        fields["/spec/terminationGracePeriodSeconds"] = 1800 if is_training else 120
        for i, container in enumerate(spec["containers"]):
            for probe in ("livenessProbe", "startupProbe"):
                if probe in container and "terminationGracePeriodSeconds" not in container[probe]:
                    fields[f"/spec/containers/{i}/{probe}/terminationGracePeriodSeconds"] = 30
    protect = {"karpenter.sh/do-not-disrupt": "true"} if is_training else {}
    return {**fields, "/metadata/annotations": {**protect, **annotations, "berth.dev/applied": EDITS["note"]}}


if __name__ == "__main__":
    options = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    host, _, port = options["--listen"].rpartition(":")
    app = Starlette(routes=[Route("/mutate", mutate, methods=["POST"])])
    uvicorn.run(app, host=host, port=int(port), ssl_certfile=options["--cert"], ssl_keyfile=options["--key"], log_level="warning")
