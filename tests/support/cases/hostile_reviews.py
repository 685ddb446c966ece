"""Make reviews that hold the loop: each of one kind of part, as many of them as the bounds let through, and the policies to meet them."""

from __future__ import annotations

import bisect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import yaml

from analysis.reviews.decoding import LARGEST_REPAIRED, MOST_MARKS, MOST_REPAIRED
from analysis.reviews.workload_advice import MOST_TEMPLATES
from policies import work_budget
from policies.patch.applied import APPLIED, digest
from policies.policy import API_VERSION, GROUP
from policies.state.compilation import MOST_OWN
from policies.work_budget import MOST_READ
from server.limits import Limits

REVIEWS = Path(__file__).parents[2] / "reviews"
NAMESPACE = "tenant"
AUDITED = 16
GRANTED = "pool"
"""key of the taints that a namespace's policies may tolerate"""
KEYS = (
    "karpenter.k8s.aws/instance-gpu-name", "cloud.google.com/gke-accelerator", "nvidia.com/gpu.product", "node.kubernetes.io/instance-type",
    "karpenter.sh/capacity-type", "karpenter.k8s.aws/instance-gpu-memory", "example.com/zone",
)  # fmt: skip
"""of several platforms, and of none"""
_ROOM = 2 * 2**10
"""bytes left for what is around the parts"""
Raw = dict[str, Any]


def policies(folder: Path) -> Path:
    """Write a file of sixteen policies of the cluster in Audit, and as many in Enforce as act of one namespace's own."""
    file = folder / "hostile.yaml"
    values = [_policy(f"audited-{i:02}", {"mode": "Audit", **_audited(i)}) for i in range(AUDITED)]
    values.append(_policy("grants", {"mode": "Enforce", "allow": {"tolerations": [{"key": GRANTED}]}}))
    values += [_policy(f"own-{i:03}", {"mode": "Enforce", **_own(i)}, namespace=NAMESPACE) for i in range(MOST_OWN)]
    file.write_text(yaml.dump_all(values, Dumper=yaml.CSafeDumper))
    return file


def _policy(name: str, spec: Raw, **metadata: str) -> Raw:
    kind = "GPUPolicy" if metadata else "ClusterGPUPolicy"
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def _audited(i: int) -> Raw:
    require = {
        "families": {"notIn": [("volta", "turing", "hopper", "ampere")[i % 4]]},
        "capacity": [["on-demand", "spot"], ["on-demand"], ["spot"], ["on-demand", "reserved"]][i % 4],
        "gpusPerPod": {"max": 8 + i}, "requestsEqualLimits": ["accelerators", "cpuAndMemory"],
        "tolerations": {"forbid": [{"key": "team", "value": f"audited-{i}"}]},
    }  # fmt: skip
    return {"require": require, "default": {"acceleratorTaints": "Tolerate", "gracePeriod": f"{i + 1}0m", "protectFor": f"{i + 1}h"}}


def _own(i: int) -> Raw:
    """Return what writes as much as it can, with as many tolerations as act (``snapshot.MOST_OWN_TOLERATIONS``)."""
    require = {"models": {"notIn": [("T4", "V100", "P100", "K80", "P4")[i % 5]]}, "gpuMemory": {"min": 8 + i % 4}}
    tolerate = [{"key": GRANTED, "value": str(i), "effect": "NoSchedule"}]
    return {"require": require, "default": {"gracePeriod": f"{i + 1}m", "capacity": ["on-demand"], "tolerate": tolerate}}


def everyday() -> bytes:
    """Return a training pod, as an API server sent it."""
    recorded = (REVIEWS / "pods-create-train-llama.json").read_bytes()
    return recorded.replace(b'"namespace":"default"', f'"namespace":"{NAMESPACE}"'.encode())


def reviews(every: int = 1) -> Iterator[tuple[str, str, bytes]]:
    """Yield (name, path, body): every pod, or one of so many, for both paths, then bodies that are slow to read and a workload."""
    for name, make in [*PODS.items()][::every]:
        spec = make(_most(make))
        yield from ((name, path, body(spec)) for path in ("mutate", "validate"))
    for name, metadata in _metadata():
        yield name, "mutate", body({"containers": [_GPU]}, metadata)
    yield from ((name, "mutate", text) for name, text in _texts())
    yield f"{MOST_TEMPLATES} templates of a workload", "advise", _workload()


def body(spec: Raw, metadata: Raw | None = None, **request: Any) -> bytes:
    """Return a pod's creation, its fields in the order in which the API server writes them."""
    fields = {
        "uid": "0df2-a", "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": NAMESPACE, "operation": "CREATE",
        "userInfo": {"username": "somebody", "groups": ["system:authenticated"]},
        "object": {"kind": "Pod", "apiVersion": "v1", "metadata": metadata or {}, "spec": {"terminationGracePeriodSeconds": 30, **spec}},
        **request,
    }  # fmt: skip
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": fields})


def _most(make: Callable[[int], Raw]) -> int:
    """Return the largest number of parts that is evaluated."""

    def is_too_large(number: int) -> bool:
        spec = make(number)
        return len(orjson.dumps(spec)) + _ROOM >= MOST_READ or work_budget.items({"spec": spec}) > work_budget.MOST

    return bisect.bisect(range(1, MOST_READ), False, key=is_too_large)  # noqa: FBT003 - what is looked for


def _container(limits: Raw) -> Raw:
    return {"name": "c", "resources": {"limits": limits, "requests": limits}}


_GPU = _container({"nvidia.com/gpu": "1"})


def _terms(number: int, expressions: Callable[[int], list[Raw]], **more: Any) -> Raw:
    terms = [{"matchExpressions": expressions(i)} for i in range(number)]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"containers": [_GPU], "affinity": {"nodeAffinity": required}, **more}


def _expression(i: int, operator: str, *values: str) -> Raw:
    return {"key": KEYS[i % len(KEYS)], "operator": operator, **({"values": list(values)} if values else {})}


def _not_in(j: int, i: int = 0) -> Raw:
    return _expression(j, "NotIn", f"x{i}-{j}")


def _slices(n: int) -> Raw:
    return _container({f"nvidia.com/mig-{j % 9}g.{j}gb": "1" for j in range(n)})


PODS: dict[str, Callable[[int], Raw]] = {
    "terms of one label": lambda n: _terms(n, lambda i: [_expression(6, "Exists")]),
    "terms of an unknown value": lambda n: _terms(n, lambda i: [_expression(3, "In", f"h{i}.x")]),
    "terms without a value": lambda n: _terms(n, lambda i: [_not_in(3, i)]),
    "terms of four": lambda n: _terms(n, lambda i: [_not_in(j, i) for j in range(4)]),
    "terms of numbers": lambda n: _terms(n, lambda i: [_expression(5, "Gt", str(i))]),
    "terms of seventeen": lambda n: _terms(n, lambda i: [_not_in(j, i) for j in range(17)]),
    "one term": lambda n: _terms(1, lambda i: [_not_in(j) for j in range(n)]),
    "one expression": lambda n: _terms(1, lambda i: [_expression(3, "In", *(f"p5.x{j}" for j in range(n)))]),
    "a selector": lambda n: {"containers": [_GPU], "nodeSelector": {f"k{j}": "v" for j in range(n)}},
    "a selector and terms": lambda n: _terms(n, lambda i: [_not_in(3, i)], nodeSelector={f"k{j}": "v" for j in range(n)}),
    "slices and terms": lambda n: _terms(n, lambda i: [_not_in(3, i)], containers=[_slices(n)]),
    "names like accelerators": lambda n: {"containers": [_GPU, *(_container({f"acme.example/gpu-{j}": "1"}) for j in range(n))]},
    "containers": lambda n: {"containers": [_GPU] * n},
    "amounts": lambda n: {"containers": [_container({"nvidia.com/gpu": f"1e{j % 18}"}) for j in range(n)]},
    "an amount of decimals": lambda n: {"containers": [_container({"nvidia.com/gpu": "0." + "9" * n})]},
    "probes": lambda n: {"containers": [_GPU, *[{"name": "p", "livenessProbe": {"a": 1}, "startupProbe": {"a": 1}}] * n]},
    "tolerations of numbers": lambda n: _terms(1, lambda i: [_not_in(3)], tolerations=[
        {"key": "team", "operator": "Gt", "value": str(-j)} for j in range(n)
    ]),
    "claims": lambda n: {"containers": [_GPU], "resourceClaims": [{"name": f"c{j}", "resourceClaimName": f"x{j}"} for j in range(n)]},
    "a bit of each": lambda n: _terms(
        n, lambda i: [_not_in(j, i) for j in range(3)], tolerations=[{"operator": "Exists"}] * n,
        containers=[_GPU, *[{"resources": {"requests": {"nvidia.com/gpu": "1"}}, "livenessProbe": {"a": 1}}] * n],
    ),
}  # fmt: skip
"""The containers, terms ... that ``n`` stands for"""


def _metadata() -> Iterator[tuple[str, Raw]]:
    forged = {"by": ["ClusterGPUPolicy/a"], "rule": "tolerations", "path": "/spec/terminationGracePeriodSeconds", "is": digest(30)}
    yield "a record that Berth did not write", {"annotations": {APPLIED: json.dumps([forged] * 8)}}
    yield "a record of brackets", {"annotations": {APPLIED: "[" * 1024}}
    yield "owners", {"ownerReferences": [{"kind": "a", "apiVersion": f"x/{i}", "controller": True} for i in range(1200)]}
    yield "annotations of our group", {"annotations": {f"{GROUP}/x{i}": "y" for i in range(2500)}}
    yield "a duration", {"annotations": {f"{GROUP}/expected-duration": "1h" * 30_000}}
    yield "the name of a template", {"annotations": {f"{GROUP}/node-template": "a" * 60_000}}


_FIXED = {
    "brackets": (b"[", b"]"), "maps": (b'{"f:a":[', b"]}"), "maps side by side": (b"{},", b""), "numbers": (b"1e400,", b""),
    "surrogates": (rb'"\ud800",', b""), "escapes": (rb'"\u0041",', b""), "bytes": (b'"\xff",', b""),
}  # fmt: skip
"""What orjson denies, many times over: as it opens and as it ends"""
_PARSED = {"maps": b"{},", "lists": b"[],", "maps of one": b'{"a":1},', "short texts": b'"\\u00e9",', "numbers": b"1.1,"}


def _texts() -> Iterator[tuple[str, bytes]]:
    """Yield bodies that are slow to read: what orjson denies, and what it takes, as large as each is read."""
    around, terms = body({"containers": [_GPU]}, {"managedFields": "HERE"}), PODS["terms of an unknown value"]
    with_terms = body(terms(_most(terms)), {"managedFields": "HERE"})
    for name, (part, end) in _FIXED.items():
        for suffix, text in (("", around), (", and terms", with_terms)):
            number = (LARGEST_REPAIRED - len(text) - 16) // len(part + end)
            number = min(number, (MOST_REPAIRED - _marks(text) - 1) // max(1, _marks(part)))
            yield f"{name} to be fixed{suffix}", _filled(text, b"[" + part * number + b"1e400" + end * number + b"]")
    for name, part in _PARSED.items():
        read, past = (MOST_MARKS - _marks(around) - 1) // _marks(part), (Limits().body - len(around)) // len(part)
        yield f"{name} as many as are read", _filled(around, b"[" + part * read + b"1]")
        yield f"{name} past what is read", _filled(around, b"[" + part * past + b"1]")
    keys = b"".join(b'"%x":1,' % i for i in range(MOST_MARKS - 100))
    yield "keys as many as are read", _filled(around, b"{" + keys + b'"a":1}')


def _filled(text: bytes, content: bytes) -> bytes:
    return text.replace(b'"HERE"', content)


def _marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"{") + text.count(b"[")


def _workload() -> bytes:
    template = {"spec": {"containers": [_GPU], "tolerations": [{"key": "a", "operator": "Exists"}]}}
    specs = {f"Role{i:03}": {"replicas": 1, "template": template} for i in range(MOST_TEMPLATES)}
    kind = {"group": "kubeflow.org", "version": "v1", "kind": "PyTorchJob"}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "a"}, "spec": {"pytorchReplicaSpecs": specs}}
    return body({}, kind=kind, resource={"group": "kubeflow.org", "version": "v1", "resource": "pytorchjobs"}, object=job)
