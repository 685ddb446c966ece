"""What a scan says of pods that wait, against what a real kube-scheduler does with them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from analysis.admission_preview import Admission
from analysis.scan.report import ScanReport, scan
from analysis.scan.seen import see
from catalog.prices import prices
from cli.inspect.scan import shipped
from sources.scanned_cluster import read_scanned
from sources.sources import Origin
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.support.recorded.scanned import OPTIONS
from tests.testcluster.addons import nodes
from tests.testcluster.addons.berth import create_namespace
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.fixtures import control_plane

Raw = dict[str, Any]
PODS = count(40, 400)
NAMESPACE = "waiting"
GPU = "nvidia.com/gpu"
MARK = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def scheduled(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """With GPU nodes of several models, one of them with a taint of a team, and kube-scheduler."""
    with control_plane(request.session, Options(kubelets=True)) as cluster:
        nodes.add(cluster, *nodes.bare_metal(catalog()))
        create_namespace(cluster, NAMESPACE)
        yield cluster


def wish(random: Random, name: str, products: list[str]) -> Raw:
    """A pod that asks for something that may or may not be there."""
    resource = random.choice([GPU, GPU, GPU, "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1g.5gb", "amd.com/gpu", "nvidia.com/gpu.shared"])
    amounts = {resource: str(random.choice([1, 1, 2, 4, 8, 9, 16]))}
    spec: Raw = {"containers": [{"name": "main", "image": "image:1", "resources": {"limits": amounts}}]}
    if random.random() < 0.7:
        spec["tolerations"] = [MARK, {"key": "amd.com/gpu", "operator": "Exists"}]
    if random.random() < 0.4:
        spec["nodeSelector"] = {"nvidia.com/gpu.product": random.choice(products)}
    if random.random() < 0.3:
        operator = random.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        values = {"values": random.sample(products, 2)} if operator in ("In", "NotIn") else {}
        term = {"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": operator, **values}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    if random.random() < 0.1:
        spec["containers"][0]["resources"]["requests"] = {"cpu": "500"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def report(cluster: Cluster) -> ScanReport:
    """Of the cluster as it is, read as the command reads it."""
    found = read_scanned(Origin(kubeconfig=str(cluster.kubeconfig)), None, catalog(), lambda kind, number: None)
    snapshot = shipped(catalog(), OPTIONS, found)
    assert not found.unread
    return scan(see(found, snapshot, prices(catalog())), Admission(snapshot))


def settled(cluster: Cluster) -> dict[str, Raw] | None:
    """All pods by name, once kube-scheduler has bound each or has said that it can't."""
    pods = {pod["metadata"]["name"]: pod for pod in cluster.api.list("v1", "Pod", NAMESPACE)}
    said = [pod for pod in pods.values() if pod.get("status", {}).get("conditions")]
    return pods if len(said) == len(pods) else None


def test_what_is_called_impossible_stays_without_a_node_and_all_others_are_bound(scheduled: Cluster) -> None:
    """Of pods that are there together, more than have room at once: those that are bound have no finding; those that wait are bound once
    others have ended, but for those of which the scan says that nothing can ever serve them, which still wait when all others are gone."""
    api, random = scheduled.api, Random(18)
    products = sorted({value for node in api.list("v1", "Node") if (value := node["metadata"]["labels"].get("nvidia.com/gpu.product"))})
    products.append("NVIDIA-B300-SXM6-AC")
    for number in range(PODS):
        api.create(wish(random, f"p{number}", products))
    before = scheduled.wait_for(lambda: settled(scheduled), "kube-scheduler to bind each pod or to say why not")
    bound = {name for name, pod in before.items() if pod["spec"].get("nodeName")}
    kinds = {hit.pod.stored.name: hit.kind for hit in report(scheduled).hits}
    waiting = {name for name, kind in kinds.items() if kind == "pending"}
    never = {name for name, kind in kinds.items() if kind == "never-fits"}
    assert (bound & set(kinds), set(before) - bound) == (set(), waiting | never)
    assert min(len(bound), len(never)) >= 5
    assert waiting

    def ended() -> bool:
        """Ends the pods that are bound; True when all that may run have run."""
        for pod in api.list("v1", "Pod", NAMESPACE):
            if pod["spec"].get("nodeName"):
                bound.add(pod["metadata"]["name"])
                api.delete({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]}, grace=0)
        return waiting <= bound

    scheduled.wait_for(lambda: ended() or None, "every pod that only waits for room to be bound")
    left = {pod["metadata"]["name"] for pod in api.list("v1", "Pod", NAMESPACE) if not pod["spec"].get("nodeName")}
    assert left == never
    assert bound.isdisjoint(never)
