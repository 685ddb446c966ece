"""Reviews that somebody made to hold the loop: each of one kind of part, as many of them as the bounds let through."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import yaml

from analysis.reviews.decoding import LARGEST_MENDED, MOST_MARKS, MOST_MENDED, MOST_READ
from analysis.reviews.workload_advice import MOST_TEMPLATES
from bench.load.workloads import REVIEWS
from policies import work_budget
from policies.patch.applied import APPLIED, digest
from policies.policy import GROUP
from policies.state.own_policies import MOST_OWN
from server.limits import Limits

NAMESPACE = "tenant"
AUDITED = 16
GRANTED = "pool"
"""key of the taints that a namespace's policies may tolerate"""
KEYS = (
    "karpenter.k8s.aws/instance-gpu-name",
    "cloud.google.com/gke-accelerator",
    "nvidia.com/gpu.product",
    "node.kubernetes.io/instance-type",
    "karpenter.sh/capacity-type",
    "karpenter.k8s.aws/instance-gpu-memory",
    "example.com/zone",
)
"""of several platforms, and of none"""
_GPU = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}}
_ROOM = 2 * 2**10
"""bytes left for what is around the parts"""
Spec = dict[str, Any]


def policies(folder: Path, *, strict: bool) -> Path:
    """A file of sixteen policies of the cluster in Audit, and as many in Enforce as act of one namespace's own. ``strict``: the first
    of these admits nothing that a pod may ask for, so that every pod is denied; otherwise each writes what it can. Both list as many
    tolerations as act (``snapshot.MOST_OWN_TOLERATIONS``)."""
    file = folder / f"{'strict' if strict else 'writing'}.yaml"
    file.write_text(yaml.dump_all(_policies(strict), Dumper=yaml.CSafeDumper))
    return file


def _policies(strict: bool) -> Iterator[dict[str, Any]]:
    for i in range(AUDITED):
        yield _policy(f"audited-{i:02}", None, "Audit", _audited(i))
    yield _policy("grants", None, "Enforce", {"allow": {"tolerations": [{"key": GRANTED}]}})
    for i in range(MOST_OWN):
        yield _policy(f"own-{i:03}", NAMESPACE, "Enforce", _own(i, strict))


def _policy(name: str, namespace: str | None, mode: str, spec: dict[str, Any]) -> dict[str, Any]:
    kind = "ClusterGPUPolicy" if namespace is None else "GPUPolicy"
    metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": kind, "metadata": metadata, "spec": {"mode": mode, **spec}}


def _audited(i: int) -> dict[str, Any]:
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


def _own(i: int, strict: bool) -> dict[str, Any]:
    team = {"key": "team", "value": str(i)}
    forbid = {"tolerations": {"forbid": [team]}} if strict else {}
    if strict and not i:
        return {"require": {"families": {"in": ["volta"]}, "capacity": ["reserved"], "gpusPerPod": {"max": 1}, **forbid}}
    models = {"notIn": [("T4", "V100", "P100", "K80", "P4")[i % 5]]}
    ways = ["requestsEqualLimits"] if strict else []
    require = {"models": models, "gpuMemory": {"min": 8 + i % 4}, **forbid, **{way: ["cpuAndMemory"] for way in ways}}
    tolerate = {} if strict else {"tolerate": [{**team, "key": GRANTED, "effect": "NoSchedule"}]}
    return {"require": require, "default": {"gracePeriod": f"{i + 1}m", "capacity": ["on-demand"], **tolerate}}


def everyday() -> bytes:
    """A training pod, as an API server sent it."""
    recorded = (REVIEWS / "pods-create-train-llama.json").read_bytes()
    return recorded.replace(b'"namespace":"default"', f'"namespace":"{NAMESPACE}"'.encode())


def reviews() -> Iterator[tuple[str, str, bytes]]:
    """Its name, the path that it is sent to, and the body: every pod on both paths, then what is no pod."""
    for name, make in PODS.items():
        spec = make(_most(make))
        for path in ("mutate", "validate"):
            yield name, path, body(spec)
    for name, metadata in _metadata():
        yield name, "mutate", body({"containers": [_GPU]}, metadata)
    for name, text in _texts():
        yield name, "mutate", text
    yield "32 requests of a claim, each in 8 ways", "validate", _claim()
    yield f"{MOST_TEMPLATES} templates of a workload", "advise", _workload()


def body(spec: Spec, metadata: dict[str, Any] | None = None, **request: Any) -> bytes:
    """A pod's creation, its fields in the order in which the API server writes them."""
    resource = {"group": "", "version": "v1", "resource": "pods"}
    asked = {
        "uid": "0df2-a",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": resource,
        "namespace": NAMESPACE,
        "operation": "CREATE",
        "userInfo": {"username": "somebody", "groups": ["system:authenticated"]},
        "object": {"kind": "Pod", "apiVersion": "v1", "metadata": metadata or {}, "spec": {"terminationGracePeriodSeconds": 30, **spec}},
        **request,
    }
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": asked})


def _fits(spec: Spec) -> bool:
    return len(orjson.dumps(spec)) + _ROOM < MOST_READ and work_budget.items({"spec": spec}) <= work_budget.MOST


def _most(make: Callable[[int], Spec]) -> int:
    """The largest that is judged."""
    low, high = 1, 2
    while _fits(make(high)):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _fits(make(middle)) else (low, middle)
    return low


def _terms(number: int, expressions: Callable[[int], list[dict[str, Any]]], **more: Any) -> Spec:
    terms = [{"matchExpressions": expressions(i)} for i in range(number)]
    return {
        "containers": [_GPU],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}},
        **more,
    }


def _expression(i: int, operator: str, *values: str) -> dict[str, Any]:
    return {"key": KEYS[i % len(KEYS)], "operator": operator, **({"values": list(values)} if values else {})}


def _not_in(j: int, i: int = 0) -> dict[str, Any]:
    return _expression(j, "NotIn", f"x{i}-{j}")


def _apart(amounts: Callable[[int], dict[str, Any]]) -> Callable[[int], Spec]:
    return lambda n: {"containers": [_GPU, *({"name": f"c{j}", "resources": amounts(j)} for j in range(n))]}


def _slices(n: int) -> dict[str, str]:
    return {f"nvidia.com/mig-{j % 9}g.{j}gb": "1" for j in range(n)}


_LABEL = {"key": KEYS[0], "operator": "In", "values": ["h100"]}
PODS: dict[str, Callable[[int], Spec]] = {
    "terms of one label": lambda n: _terms(n, lambda i: [{"key": "example.com/zone", "operator": "Exists"}]),
    "terms of an unknown value": lambda n: _terms(n, lambda i: [_expression(3, "In", f"h{i}.x")]),
    "terms without a value": lambda n: _terms(n, lambda i: [_not_in(3, i)]),
    "terms of four": lambda n: _terms(n, lambda i: [_not_in(j, i) for j in range(4)]),
    "terms of numbers": lambda n: _terms(n, lambda i: [_expression(5, "Gt", str(i))]),
    "terms of seventeen": lambda n: _terms(n, lambda i: [_not_in(j, i) for j in range(17)]),
    "one term": lambda n: _terms(1, lambda i: [_not_in(j) for j in range(n)]),
    "one term of a model": lambda n: _terms(1, lambda i: [_LABEL, *(_not_in(j) for j in range(n))]),
    "one term of zones": lambda n: _terms(1, lambda i: [{"key": f"z{j}", "operator": "Exists"} for j in range(n)]),
    "one expression": lambda n: _terms(1, lambda i: [_expression(3, "In", *(f"p5.x{j}" for j in range(n)))]),
    "one expression without values": lambda n: _terms(1, lambda i: [_expression(3, "NotIn", *(f"p5.x{j}" for j in range(n)))]),
    "a selector": lambda n: {"containers": [_GPU], "nodeSelector": {f"k{j}": "v" for j in range(n)}},
    "a selector and terms": lambda n: _terms(n, lambda i: [_not_in(3, i)], nodeSelector={f"k{j}": "v" for j in range(n)}),
    "preferences": lambda n: {
        "containers": [_GPU],
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [_expression(0, "In", f"h{i}")]}} for i in range(n)
                ]
            }
        },
    },
    "slices that nobody makes": lambda n: {"containers": [{"name": "c", "resources": {"limits": _slices(n)}}]},
    "slices and terms": lambda n: {
        **_terms(n, lambda i: [_not_in(3, i)]),
        "containers": [{"name": "c", "resources": {"limits": _slices(n)}}],
    },
    "slices": _apart(lambda j: {"limits": {"nvidia.com/mig-1g.10gb": "1", "nvidia.com/mig-2g.20gb": "1"}}),
    "names that look like accelerators": _apart(lambda j: {"limits": {f"acme.example/gpu-{j}": "1"}}),
    "names of no accelerators": _apart(lambda j: {"limits": {f"x.com/r{j}": "1"}}),
    "names of one letter more": _apart(lambda j: {"limits": {f"nvidia.com/gpu{j}": "1"}}),
    "misspelt names": lambda n: {"containers": [{"name": "c", "resources": {"limits": {"nvdia.com/gpu": "1"}}}] * n},
    "containers": lambda n: {"containers": [_GPU] * n},
    "containers of two amounts": _apart(lambda j: {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "2"}}),
    "containers without a limit": _apart(lambda j: {"requests": {"nvidia.com/gpu": "1"}}),
    "containers of cpu": _apart(lambda j: {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
    "amounts": _apart(lambda j: {"limits": {"nvidia.com/gpu": f"1e{j % 18}"}, "requests": {"nvidia.com/gpu": f"0.{j}"}}),
    "an amount of digits": lambda n: {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "9" * n}}}]},
    "an amount of decimals": lambda n: {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "0." + "9" * n}}}]},
    "probes": lambda n: {"containers": [_GPU, *({"name": "p", "livenessProbe": {"a": 1}, "startupProbe": {"a": 1}} for _ in range(n))]},
    "tolerations": lambda n: {"containers": [_GPU], "tolerations": [{"key": f"k{j}", "operator": "Exists"} for j in range(n)]},
    "tolerations of everything": lambda n: {"containers": [_GPU], "tolerations": [{"operator": "Exists"}] * n},
    "tolerations of a forbidden key": lambda n: {"containers": [_GPU], "tolerations": [{"key": "team", "operator": "Exists"}] * n},
    "tolerations of numbers": lambda n: {
        "containers": [_GPU],
        "tolerations": [{"key": "team", "operator": "Gt", "value": str(-j)} for j in range(n)],
    },
    "claims": lambda n: {"containers": [_GPU], "resourceClaims": [{"name": f"c{j}", "resourceClaimName": f"x{j}"} for j in range(n)]},
    "a bit of each": lambda n: {
        **_terms(n, lambda i: [_not_in(j, i) for j in range(3)]),
        "containers": [_GPU, *({"resources": {"requests": {"nvidia.com/gpu": "1"}}, "livenessProbe": {"a": 1}} for _ in range(n))],
        "tolerations": [{"operator": "Exists"}] * n,
    },
}
"""The containers, terms ... that ``n`` stands for."""


def _metadata() -> Iterator[tuple[str, dict[str, Any]]]:
    """What an author may write of a pod beside its spec."""
    true = {"by": ["ClusterGPUPolicy/a"], "rule": "tolerations", "path": "/spec/terminationGracePeriodSeconds", "is": digest(30)}
    yield "a record that Berth did not write", {"annotations": {APPLIED: json.dumps([true] * 8)}}
    yield "a record of brackets", {"annotations": {APPLIED: "[" * 1024}}
    yield "owners", {"ownerReferences": [{"kind": "a", "apiVersion": f"x/{i}", "controller": True} for i in range(1200)]}
    yield "annotations of our group", {"annotations": {f"{GROUP}/x{i}": "y" for i in range(2500)}}
    yield "a duration", {"annotations": {f"{GROUP}/expected-duration": "1h" * 30_000}}
    yield "the name of a template", {"annotations": {f"{GROUP}/node-template": "a" * 60_000}}


_MENDED = {
    "brackets": (b"[", b"]"),
    "maps": (b'{"f:a":[', b"]}"),
    "maps side by side": (b"{},", b""),
    "numbers": (b"1e400,", b""),
    "surrogates": (rb'"\ud800",', b""),
    "escapes": (rb'"\u0041",', b""),
    "bytes": (b'"\xff",', b""),
}
"""What orjson denies, many times over: as it opens and as it ends."""
_PARSED = {"maps": b"{},", "lists": b"[],", "maps of one": b'{"a":1},', "short texts": b'"\\u00e9",', "numbers": b"1.1,"}


def _texts() -> Iterator[tuple[str, bytes]]:
    """Bodies that are dear to read: what orjson denies, and what it takes, as large as each is read."""
    around = body({"containers": [_GPU]}, {"managedFields": "HERE"})
    before, _, behind = around.partition(b'"HERE"')
    for name, (part, end) in _MENDED.items():
        yield f"{name} to be mended", _mended(around, part, end)
        terms = PODS["terms of an unknown value"]
        yield f"{name} to be mended, and terms", _mended(body(terms(_most(terms)), {"managedFields": "HERE"}), part, end)
    for name, part in _PARSED.items():
        number = (MOST_MARKS - _marks(around) - 1) // _marks(part)
        yield f"{name} as many as are read", before + b"[" + part * number + b"1]" + behind
        yield f"{name} past what is read", before + b"[" + part * ((Limits().body - len(around)) // len(part)) + b"1]" + behind
    keys = b"".join(b'"%x":1,' % i for i in range(MOST_MARKS - 100))
    yield "keys as many as are read", before + b"{" + keys + b'"a":1}' + behind


def _mended(around: bytes, part: bytes, end: bytes) -> bytes:
    """As many as are mended."""
    before, _, behind = around.partition(b'"HERE"')
    number = (LARGEST_MENDED - len(around) - 16) // len(part + end)
    number = min(number, (MOST_MENDED - _marks(around) - 1) // max(1, _marks(part)))
    return before + b"[" + part * number + b"1e400" + end * number + b"]" + behind


def _marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"{") + text.count(b"[")


def _claim() -> bytes:
    way = {
        "deviceClassName": "gpu.nvidia.com",
        "allocationMode": "All",
        "adminAccess": True,
        "tolerations": [{"key": "team", "operator": "Exists"}] * 16,
    }
    requests = [{"name": f"r{i}", "firstAvailable": [{"name": f"w{j}", **way} for j in range(8)]} for i in range(32)]
    spec = {"devices": {"requests": requests}}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "a"}, "spec": spec}
    resource = {"group": "resource.k8s.io", "version": "v1", "resource": "resourceclaims"}
    return body({}, resource=resource, object=claim)


def _workload() -> bytes:
    template = {"spec": {"containers": [_GPU], "tolerations": [{"key": "a", "operator": "Exists"}]}}
    specs = {f"Role{i:03}": {"replicas": 1, "template": template} for i in range(MOST_TEMPLATES)}
    kind = {"group": "kubeflow.org", "version": "v1", "kind": "PyTorchJob"}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "a"}, "spec": {"pytorchReplicaSpecs": specs}}
    return body({}, kind=kind, resource={"group": "kubeflow.org", "version": "v1", "resource": "pytorchjobs"}, object=job)
