"""A pod twice as large costs twice as much, whatever is large in it: nobody holds up the others with one pod.

What is counted are calls of Python functions, which are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from documents.yaml_reader import documents as yaml_documents
from policies.engine import evaluate
from policies.objects.parse import parse_objects
from policies.request import Request
from policies.state.snapshot import NamespaceFacts
from tests.support.call_counts import work
from tests.support.generators.random_worlds import catalog
from tests.support.snapshots import build

SMALL = 150
AT_MOST = 2.6
"""times the calls for twice the size: 2 and what sorting adds; quadratic work has 4"""
POLICIES = """\
apiVersion: berth.dev/v1alpha1
kind: ClusterGPUPolicy
metadata: {name: enforced}
spec:
  mode: Enforce
  require:
    families: {in: [hopper, ampere]}
    capacity: [on-demand]
    sharing: [Exclusive]
    requestsEqualLimits: [accelerators, cpuAndMemory]
    gpusPerPod: {max: 100000}
    tolerations: {forbid: [{key: team, value: other}]}
  default: {acceleratorTaints: Tolerate, gracePeriod: 30m, protectFor: 1h, repair: [accelerators], tolerate: [{key: a}]}
---
apiVersion: berth.dev/v1alpha1
kind: ClusterGPUPolicy
metadata: {name: audited}
spec: {mode: Audit, require: {models: {notIn: [A100-40GB]}}, default: {gracePeriod: 1h, mig: {slice: 10gb}}}
---
apiVersion: berth.dev/v1alpha1
kind: ClusterGPUPolicy
metadata: {name: warned}
spec: {mode: Warn, require: {gpusPerPod: {max: 1}, families: {in: [hopper]}}}
"""


@cache
def facts() -> NamespaceFacts:
    documents, errors = yaml_documents(POLICIES, "policies.yaml")
    policies, mistakes, _ = parse_objects(documents, catalog())
    assert (errors, mistakes) == ([], [])
    return build(policies, catalog(), platforms=("karpenter-aws", "gfd")).facts_for("default")


def container(number: int, **resources: Any) -> dict[str, Any]:
    return {"name": f"c{number}", "resources": resources or {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}}


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": [container(0)], **spec}}


def terms(*expressions: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]} for expression in expressions]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


SHAPES: dict[str, Callable[[int], dict[str, Any]]] = {
    "containers": lambda n: pod(containers=[container(i) for i in range(n)]),
    "containers-that-mismatch": lambda n: pod(
        containers=[container(i, limits={"nvidia.com/gpu": "2"}, requests={"nvidia.com/gpu": "1"}) for i in range(n)]
    ),
    "containers-that-ask-wrongly": lambda n: pod(containers=[container(i, limits={"nvdia.com/gpu": "1"}) for i in range(n)]),
    "containers-with-both": lambda n: pod(
        containers=[container(i, limits={"nvidia.com/gpu": "1", "nvidia.com/mig-1g.10gb": "1"}) for i in range(n)]
    ),
    "init-containers": lambda n: pod(initContainers=[{**container(i), "restartPolicy": "Always"} for i in range(n)]),
    "resources": lambda n: pod(containers=[container(0, limits={f"nvidia.com/mig-{i}g.10gb": "1" for i in range(n)})]),
    "other-resources": lambda n: pod(containers=[container(0), container(1, limits={f"example.com/r{i}": "1" for i in range(n)})]),
    "probes": lambda n: pod(containers=[{**container(i), "livenessProbe": {}, "startupProbe": {}} for i in range(n)]),
    "terms": lambda n: pod(
        affinity=terms(*({"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "NotIn", "values": [f"x{i}"]} for i in range(n)))
    ),
    "terms-that-name": lambda n: pod(
        affinity=terms(*({"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "In", "values": [f"x{i}"]} for i in range(n)))
    ),
    "terms-on-own-keys": lambda n: pod(affinity=terms(*({"key": f"own/{i}", "operator": "Exists"} for i in range(n)))),
    "values": lambda n: pod(
        affinity=terms({"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "In", "values": [f"x{i}" for i in range(n)]})
    ),
    "expressions": lambda n: pod(
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "NotIn", "values": [f"x{i}"]} for i in range(n)
                            ]
                        }
                    ]
                }
            }
        }
    ),
    "preferences": lambda n: pod(
        affinity={
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "preference": {"matchExpressions": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": [f"s{i}"]}]},
                    }
                    for i in range(n)
                ]
            }
        }
    ),
    "node-selector": lambda n: pod(nodeSelector={f"karpenter.k8s.aws/instance-{i}": "x" for i in range(n)}),
    "tolerations": lambda n: pod(tolerations=[{"key": f"k{i}", "operator": "Exists"} for i in range(n)]),
    "forbidden-tolerations": lambda n: pod(
        tolerations=[{"key": "team", "value": "other", "effect": "NoSchedule", "tolerationSeconds": i} for i in range(n)]
    ),
    "claims": lambda n: pod(resourceClaims=[{"name": f"c{i}", "resourceClaimName": f"c{i}"} for i in range(n)]),
    "labels": lambda n: {
        **pod(),
        "metadata": {"labels": {f"l{i}": "x" for i in range(n)}, "annotations": {f"a{i}": "x" for i in range(n)}},
    },
    "owners": lambda n: {
        **pod(),
        "metadata": {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": f"j{i}"} for i in range(n)]},
    },
}


def calls(shape: str, size: int, phase: Any) -> int:
    """How many Python functions are called to judge the pod of this shape and size."""
    request = Request(namespace="default", pod=SHAPES[shape](size), phase=phase)
    evaluate(request, facts())  # what is remembered of names is remembered
    return work(lambda: evaluate(request, facts()))


@pytest.mark.parametrize("phase", ["mutate", "validate"])
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_as_large_is_twice_the_work(shape: str, phase: str) -> None:
    """In each phase, with policies in every mode."""
    assert calls(shape, 2 * SMALL, phase) < AT_MOST * calls(shape, SMALL, phase)
