"""Make reviews that hold the loop: each of one kind of part, as many of them as the bounds let through, and the policies to meet them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import yaml

from bench.inputs.workloads import REVIEWS, required
from policies import work_budget
from policies.patch.applied import APPLIED, digest
from policies.policy import API_VERSION, GROUP
from policies.state.own_policies import MOST_OWN
from server.limits import Limits
from webhook.admission.decoding import LARGEST_MENDED, MOST_MARKS, MOST_MENDED, MOST_READ
from webhook.admission.workload_advice import MOST_TEMPLATES

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


def policies(folder: Path, *, is_strict: bool) -> Path:
    """Write a file of sixteen policies of the cluster in Audit, and as many in Enforce as act of one namespace's own.

    If ``is_strict``, the first of these admits nothing that a pod may ask for, so that every pod is denied; otherwise each writes what it
    can. Both list as many tolerations as act (``snapshot.MOST_OWN_TOLERATIONS``).
    """
    file = folder / f"{'strict' if is_strict else 'writing'}.yaml"
    values = [_policy(f"audited-{i:02}", {"mode": "Audit", **_audited(i)}) for i in range(AUDITED)]
    values.append(_policy("grants", {"mode": "Enforce", "allow": {"tolerations": [{"key": GRANTED}]}}))
    values += [_policy(f"own-{i:03}", {"mode": "Enforce", **_own(i, is_strict=is_strict)}, namespace=NAMESPACE) for i in range(MOST_OWN)]
    file.write_text(yaml.dump_all(values, Dumper=yaml.CSafeDumper))
    return file


def _policy(name: str, spec: Raw, **metadata: str) -> Raw:
    kind = "GPUPolicy" if metadata else "ClusterGPUPolicy"
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def _audited(i: int) -> Raw:
    return {
        "require": {
            "families": {"notIn": [("volta", "turing", "hopper", "ampere")[i % 4]]},
            "capacity": [["on-demand", "spot"], ["on-demand"], ["spot"], ["on-demand", "reserved"]][i % 4],
            "gpusPerPod": {"max": 8 + i},
            "requestsEqualLimits": ["accelerators", "cpuAndMemory"],
            "tolerations": {"forbid": [{"key": "team", "value": f"audited-{i}"}]},
        },
        "default": {"acceleratorTaints": "Tolerate", "gracePeriod": f"{i + 1}0m", "protectFor": f"{i + 1}h"},
    }


def _own(i: int, *, is_strict: bool) -> Raw:
    team = {"key": "team", "value": str(i)}
    forbid = {"tolerations": {"forbid": [team]}, "requestsEqualLimits": ["cpuAndMemory"]} if is_strict else {}
    if is_strict and not i:
        return {
            "require": {
                "families": {"in": ["volta"]},
                "capacity": ["reserved"],
                "gpusPerPod": {"max": 1},
                "tolerations": forbid["tolerations"],
            }
        }
    require = {"models": {"notIn": [("T4", "V100", "P100", "K80", "P4")[i % 5]]}, "gpuMemory": {"min": 8 + i % 4}, **forbid}
    tolerate = {} if is_strict else {"tolerate": [{**team, "key": GRANTED, "effect": "NoSchedule"}]}
    return {"require": require, "default": {"gracePeriod": f"{i + 1}m", "capacity": ["on-demand"], **tolerate}}


def everyday() -> bytes:
    """Return a training pod, as an API server sent it."""
    recorded = (REVIEWS / "pods-create-train-llama.json").read_bytes()
    return recorded.replace(b'"namespace":"default"', f'"namespace":"{NAMESPACE}"'.encode())


def reviews() -> Iterator[tuple[str, str, bytes]]:
    """Yield (name, path, body): every pod for both paths, then bodies that are slow to read, a claim and a workload."""
    for name, make in PODS.items():
        spec = make(_most(make))
        yield from ((name, path, body(spec)) for path in ("mutate", "validate"))
    for name, metadata in _metadata():
        yield name, "mutate", body({"containers": [_GPU]}, metadata)
    yield from ((name, "mutate", text) for name, text in _texts())
    yield "32 requests of a claim, each in 8 ways", "validate", _claim()
    yield f"{MOST_TEMPLATES} templates of a workload", "advise", _workload()


def body(spec: Raw, metadata: Raw | None = None, **request: Any) -> bytes:
    """Return a pod's creation, its fields in the order in which the API server writes them."""
    fields = {
        "uid": "0df2-a",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": NAMESPACE,
        "operation": "CREATE",
        "userInfo": {"username": "somebody", "groups": ["system:authenticated"]},
        "object": {"kind": "Pod", "apiVersion": "v1", "metadata": metadata or {}, "spec": {"terminationGracePeriodSeconds": 30, **spec}},
        **request,
    }
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": fields})


def _most(make: Callable[[int], Raw]) -> int:
    """Return the largest number of parts that is evaluated."""

    def fits(number: int) -> bool:
        spec = make(number)
        return len(orjson.dumps(spec)) + _ROOM < MOST_READ and work_budget.items({"spec": spec}) <= work_budget.MOST

    low, high = 1, 2
    while fits(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _container(limits: Raw | None = None, requests: Raw | None = None) -> Raw:
    return {
        "name": "c",
        "resources": {key: amounts for key, amounts in (("limits", limits), ("requests", requests)) if amounts is not None},
    }


_GPU = _container({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"})


def _terms(number: int, expressions: Callable[[int], list[Raw]], **more: Any) -> Raw:
    return {"containers": [_GPU], "affinity": required(expressions(i) for i in range(number)), **more}


def _expression(i: int, operator: str, *values: str) -> Raw:
    return {"key": KEYS[i % len(KEYS)], "operator": operator, **({"values": list(values)} if values else {})}


def _not_in(j: int, i: int = 0) -> Raw:
    return _expression(j, "NotIn", f"x{i}-{j}")


def _beside(container: Callable[[int], Raw]) -> Callable[[int], Raw]:
    return lambda n: {"containers": [_GPU, *(container(j) for j in range(n))]}


def _slices(n: int) -> Raw:
    return {f"nvidia.com/mig-{j % 9}g.{j}gb": "1" for j in range(n)}


_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
PODS: dict[str, Callable[[int], Raw]] = {
    "terms of one label": lambda n: _terms(n, lambda i: [{"key": "example.com/zone", "operator": "Exists"}]),
    "terms of an unknown value": lambda n: _terms(n, lambda i: [_expression(3, "In", f"h{i}.x")]),
    "terms without a value": lambda n: _terms(n, lambda i: [_not_in(3, i)]),
    "terms of four": lambda n: _terms(n, lambda i: [_not_in(j, i) for j in range(4)]),
    "terms of numbers": lambda n: _terms(n, lambda i: [_expression(5, "Gt", str(i))]),
    "terms of seventeen": lambda n: _terms(n, lambda i: [_not_in(j, i) for j in range(17)]),
    "one term": lambda n: _terms(1, lambda i: [_not_in(j) for j in range(n)]),
    "one term of a model": lambda n: _terms(1, lambda i: [_expression(0, "In", "h100"), *(_not_in(j) for j in range(n))]),
    "one term of zones": lambda n: _terms(1, lambda i: [{"key": f"z{j}", "operator": "Exists"} for j in range(n)]),
    "one expression": lambda n: _terms(1, lambda i: [_expression(3, "In", *(f"p5.x{j}" for j in range(n)))]),
    "one expression without values": lambda n: _terms(1, lambda i: [_expression(3, "NotIn", *(f"p5.x{j}" for j in range(n)))]),
    "a selector": lambda n: {"containers": [_GPU], "nodeSelector": {f"k{j}": "v" for j in range(n)}},
    "a selector and terms": lambda n: _terms(n, lambda i: [_not_in(3, i)], nodeSelector={f"k{j}": "v" for j in range(n)}),
    "preferences": lambda n: {"containers": [_GPU], "affinity": {"nodeAffinity": {_PREFERRED: [
        {"weight": 1, "preference": {"matchExpressions": [_expression(0, "In", f"h{i}")]}} for i in range(n)
    ]}}},
    "slices that nobody makes": lambda n: {"containers": [_container(_slices(n))]},
    "slices and terms": lambda n: _terms(n, lambda i: [_not_in(3, i)], containers=[_container(_slices(n))]),
    "slices": _beside(lambda j: _container({"nvidia.com/mig-1g.10gb": "1", "nvidia.com/mig-2g.20gb": "1"})),
    "names that look like accelerators": _beside(lambda j: _container({f"acme.example/gpu-{j}": "1"})),
    "names of no accelerators": _beside(lambda j: _container({f"x.com/r{j}": "1"})),
    "names of one letter more": _beside(lambda j: _container({f"nvidia.com/gpu{j}": "1"})),
    "misspelt names": lambda n: {"containers": [_container({"nvdia.com/gpu": "1"})] * n},
    "containers": lambda n: {"containers": [_GPU] * n},
    "containers of two amounts": _beside(lambda j: _container({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "2"})),
    "containers without a limit": _beside(lambda j: _container(None, {"nvidia.com/gpu": "1"})),
    "containers of cpu": _beside(lambda j: _container({"cpu": "1"}, {"cpu": "2"})),
    "amounts": _beside(lambda j: _container({"nvidia.com/gpu": f"1e{j % 18}"}, {"nvidia.com/gpu": f"0.{j}"})),
    "an amount of digits": lambda n: {"containers": [_container({"nvidia.com/gpu": "9" * n})]},
    "an amount of decimals": lambda n: {"containers": [_container({"nvidia.com/gpu": "0." + "9" * n})]},
    "probes": _beside(lambda j: {"name": "p", "livenessProbe": {"a": 1}, "startupProbe": {"a": 1}}),
    "tolerations": lambda n: {"containers": [_GPU], "tolerations": [{"key": f"k{j}", "operator": "Exists"} for j in range(n)]},
    "tolerations of everything": lambda n: {"containers": [_GPU], "tolerations": [{"operator": "Exists"}] * n},
    "tolerations of a forbidden key": lambda n: {"containers": [_GPU], "tolerations": [{"key": "team", "operator": "Exists"}] * n},
    "tolerations of numbers": lambda n: {"containers": [_GPU], "tolerations": [
        {"key": "team", "operator": "Gt", "value": str(-j)} for j in range(n)
    ]},
    "claims": lambda n: {"containers": [_GPU], "resourceClaims": [{"name": f"c{j}", "resourceClaimName": f"x{j}"} for j in range(n)]},
    "a bit of each": lambda n: _terms(
        n, lambda i: [_not_in(j, i) for j in range(3)], tolerations=[{"operator": "Exists"}] * n,
        containers=[_GPU, *[{**_container(None, {"nvidia.com/gpu": "1"}), "livenessProbe": {"a": 1}}] * n],
    ),
}  # fmt: skip
"""The containers, terms ... that ``n`` stands for."""


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
    before, _, behind = around.partition(b'"HERE"')
    for name, (part, end) in _FIXED.items():
        yield f"{name} to be fixed", _repeated(around, part, end)
        yield f"{name} to be fixed, and terms", _repeated(body(terms(_most(terms)), {"managedFields": "HERE"}), part, end)
    for name, part in _PARSED.items():
        yield f"{name} as many as are read", before + b"[" + part * ((MOST_MARKS - _marks(around) - 1) // _marks(part)) + b"1]" + behind
        yield f"{name} past what is read", before + b"[" + part * ((Limits().body - len(around)) // len(part)) + b"1]" + behind
    keys = b"".join(b'"%x":1,' % i for i in range(MOST_MARKS - 100))
    yield "keys as many as are read", before + b"{" + keys + b'"a":1}' + behind


def _repeated(around: bytes, part: bytes, end: bytes) -> bytes:
    """Return a body with as many parts as are fixed."""
    before, _, behind = around.partition(b'"HERE"')
    number = (LARGEST_MENDED - len(around) - 16) // len(part + end)
    number = min(number, (MOST_MENDED - _marks(around) - 1) // max(1, _marks(part)))
    return before + b"[" + part * number + b"1e400" + end * number + b"]" + behind


def _marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"{") + text.count(b"[")


def _claim() -> bytes:
    tolerations = [{"key": "team", "operator": "Exists"}] * 16
    way = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All", "adminAccess": True, "tolerations": tolerations}
    requests = [{"name": f"r{i}", "firstAvailable": [{"name": f"w{j}", **way} for j in range(8)]} for i in range(32)]
    spec = {"devices": {"requests": requests}}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "a"}, "spec": spec}
    return body({}, resource={"group": "resource.k8s.io", "version": "v1", "resource": "resourceclaims"}, object=claim)


def _workload() -> bytes:
    template = {"spec": {"containers": [_GPU], "tolerations": [{"key": "a", "operator": "Exists"}]}}
    specs = {f"Role{i:03}": {"replicas": 1, "template": template} for i in range(MOST_TEMPLATES)}
    kind = {"group": "kubeflow.org", "version": "v1", "kind": "PyTorchJob"}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "a"}, "spec": {"pytorchReplicaSpecs": specs}}
    return body({}, kind=kind, resource={"group": "kubeflow.org", "version": "v1", "resource": "pytorchjobs"}, object=job)
