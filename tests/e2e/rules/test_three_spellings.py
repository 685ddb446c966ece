"""One policy, three ways to ask for a GPU: of a device plugin, of DRA by a name, and by a claim.

Two clusters have the same machines: on one a device plugin offers their GPUs, on the other a DRA driver publishes them, and its class takes
the name nvidia.com/gpu too (KEP-5004); a second class has a name of its own, and each has one by its own name besides. Each random pod is
admitted in each spelling under the same policies, and placed by the real scheduler, alone: all on a GPU that the policies allow, or all
denied, or all waiting. In ``make prove`` so does Kubernetes 1.36, where DRA extended resources are beta and on unless switched off.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count as numbers
from random import Random
from typing import Any

import pytest

from catalog import Gpu
from catalog.resources import OF_A_CLASS
from kube.tree import apply_patch
from policies.claims import claim_verdict
from policies.claims.claim_request import ClaimRequest
from policies.engine import evaluate
from policies.facts.cluster_facts import ClusterFacts
from policies.request import Phase, Request
from policies.state.snapshot import NamespaceFacts
from tests.e2e.workloads import NVIDIA, pod
from tests.reference import claims as reference
from tests.support.cases.golden import catalog_with, policies_of
from tests.support.claims import published_devices as dra
from tests.support.claims import random_claims
from tests.support.counts import count, only_in_prove
from tests.support.generators.written_claims import claim, exactly
from tests.support.snapshots import build
from tests.testcluster.addons import nodes
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.fixtures import control_plane
from tests.testcluster.programs import CURRENT

CATALOG = catalog_with()
DRIVER = "gpu.nvidia.com"
MODELS = ("T4", "L4", "A10", "A100-40GB", "A100-80GB", "H100-80GB", "H200")
UNSAID = "A10-4GB"
"""A model for which nodes have no product label, and drivers no name"""
ON_EACH = 8
TAINTS: Raw = {
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "taints"},
    "spec": {"mode": "Enforce", "default": {"acceleratorTaints": "Tolerate"}},
}
OTHER = "example.com/gpu"
_NAMED = dra.class_of(DRIVER, OTHER, "gpu")
CLASSES = (dra.class_of(DRIVER, NVIDIA, "gpu"), {**_NAMED, "metadata": {"name": "whole"}})
NAMES = {"by name": NVIDIA, "by another": OTHER, "by the class": f"{OF_A_CLASS}{DRIVER}", "by the other class": f"{OF_A_CLASS}whole"}
BETA = "kubernetes-1.36"
DENIED, WAITS = "denied", "waits"
_number = numbers()


@dataclass(frozen=True, slots=True)
class Clusters:
    plugin: Cluster
    dra: Cluster
    pods: int
    """to be tried"""


def gpus() -> Iterator[Gpu]:
    for model in MODELS:
        (found,) = CATALOG.models(model)
        yield found


@pytest.fixture(scope="module", params=[CURRENT, pytest.param(BETA, marks=only_in_prove)])
def clusters(request: pytest.FixtureRequest) -> Iterator[Clusters]:
    """One machine of each model on both."""
    options = Options(release=request.param)
    with control_plane(request.session, options) as plugin, control_plane(request.session, options) as by_dra:
        machines = [nodes.whole(gpu.model.lower(), gpu, ON_EACH) for gpu in gpus()]
        nodes.add(plugin, *machines)
        nodes.add(by_dra, *(replace(machine, resources={}) for machine in machines))
        for one in CLASSES:
            by_dra.api.create(one)
        for gpu in gpus():
            by_dra.api.create(dra.slice_of(gpu.model.lower(), DRIVER, list(devices(gpu))))
        yield Clusters(plugin, by_dra, count(8, 500) if request.param == CURRENT else 40)


def devices(gpu: Gpu) -> Iterator[Raw]:
    """Whole GPUs of a machine, as the driver publishes them."""
    for number in range(ON_EACH):
        device = next(
            one for seed in numbers() if (one := random_claims.device(Random(seed), gpu, CATALOG, f"gpu-{number}")) and whole(one)
        )
        yield {key: value for key, value in device.items() if key != "driver"}


def whole(device: Raw) -> bool:
    return bool(device["attributes"]["type"]["string"] == "gpu")


def test_all_spellings_come_to_the_same(clusters: Clusters) -> None:
    """On the newest Kubernetes, and in ``make prove`` on 1.36. What differs has a cause that is known: where a policy admits time-sliced
    GPUs alone, nodes with a device plugin may be such, and devices of a driver are not."""
    random, same, different = Random(41), Counter[str](), Counter[str]()
    while same.total() + different.total() < clusters.pods:
        policies = random_claims.policies(random, defaults=False)
        if UNSAID in str(policies):
            continue  # on neither cluster can it be said, and the author is told (BERTH-205, BERTH-242)
        amount = random.choice((1, 1, 1, 2, 4, 8, ON_EACH + 1))
        allowed = {gpu.model for gpu in gpus() if all(reference.allowed(one["spec"]["require"], gpu, "Exclusive") for one in policies)}
        found = {
            "plugin": by_name(clusters.plugin, facts_of(policies, []), amount, NVIDIA),
            **{how: by_name(clusters.dra, facts_of(policies, CLASSES), amount, name) for how, name in NAMES.items()},
            "claim": by_claim(clusters.dra, policies, amount),
        }
        assert {where for where in found.values() if where not in (DENIED, WAITS)} <= allowed, (policies, amount, found)
        kinds = {where if where in (DENIED, WAITS) else "placed" for where in found.values()}
        if len(kinds) == 1:
            same[kinds.pop()] += 1
        else:
            different[cause(policies, found)] += 1
    print(f"the same: {dict(same)}; different: {dict(different)}")
    assert set(different) <= {"time-sliced"}
    assert same["placed"] > 2


def cause(policies: Sequence[Raw], found: Raw) -> str:
    """Why the spellings differ, as far as it is known."""
    lists = [set(one["spec"]["require"]["sharing"]) for one in policies if "sharing" in one["spec"]["require"]]
    if lists and "Exclusive" not in set.intersection(*lists) and found["claim"] == DENIED:
        return "time-sliced"
    return f"{policies} {found}"


def facts_of(policies: Sequence[Raw], objects: Sequence[Raw]) -> NamespaceFacts:
    given = policies_of([TAINTS, *policies], CATALOG)
    return build(given, CATALOG, platforms=("gfd",), cluster=ClusterFacts.from_objects(objects)).facts_for("ml")


def admitted(made: Raw, facts: NamespaceFacts) -> Raw | None:
    """The pod as it is admitted in both phases; None if it is denied."""
    request = Request(namespace="ml", user="alice", phase="mutate", pod=made)
    first = evaluate(request, facts)
    if first.violations:
        return None
    edited: Raw = apply_patch(copy.deepcopy(made), first.patch)
    second = evaluate(Request(namespace="ml", user="alice", phase="validate", pod=edited), facts)
    return None if second.violations else edited


def by_name(cluster: Cluster, facts: NamespaceFacts, amount: int, name: str) -> str:
    amounts = {name: str(amount)}
    made = admitted(pod({"limits": amounts, "requests": amounts}), facts)
    return DENIED if made is None else place(cluster, made)


def by_claim(cluster: Cluster, policies: Sequence[Raw], amount: int) -> str:
    name = f"gpus-{next(_number)}"
    template = claim(exactly(DRIVER, amount), template=True, name=name)
    phases: tuple[Phase, ...] = ("mutate", "validate")
    for phase in phases:
        asked = ClaimRequest(kind="ResourceClaimTemplate", made=template, phase=phase)
        verdict = claim_verdict.evaluate_claim(asked, facts_of(policies, CLASSES))
        if verdict.violations:
            return DENIED
        template = apply_patch(copy.deepcopy(template), verdict.patch)
    stored = {**template, "metadata": {**template["metadata"], "namespace": "ml"}}
    asking = pod({"claims": [{"name": "gpu"}]}, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": name}])
    made = admitted(asking, facts_of(policies, [*CLASSES, stored]))
    if made is None:
        return DENIED
    cluster.api.create(template)
    return place(cluster, made)


def place(cluster: Cluster, made: Raw) -> str:
    """The model of the machine on which the real scheduler puts the pod, or WAITS. The pod is gone afterwards."""
    spec: Any = {**made["spec"], "terminationGracePeriodSeconds": 0}
    name = cluster.api.create({**made, "metadata": {**made["metadata"], "generateName": "p-"}, "spec": spec})["metadata"]["name"]

    def decided() -> str | None:
        found = cluster.api.get("v1", "Pod", name, "default") or {}
        if node := found.get("spec", {}).get("nodeName"):
            return next(gpu.model for gpu in gpus() if gpu.model.lower() == node)
        conditions = found.get("status", {}).get("conditions", ())
        return WAITS if any(one.get("reason") == "Unschedulable" for one in conditions) else None

    where = cluster.wait_for(decided, f"kube-scheduler to decide on {name}")
    cluster.api.delete({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}}, grace=0)
    cluster.wait_for(lambda: not _claimed(cluster), "the devices to be given back")
    return where


def _claimed(cluster: Cluster) -> bool:
    return any(cluster.api.list("v1", "Pod", "default")) or any(
        one.get("status", {}).get("allocation") for one in cluster.api.list("resource.k8s.io/v1", "ResourceClaim", "default")
    )
