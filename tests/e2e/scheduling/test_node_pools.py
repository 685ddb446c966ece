"""What is judged of NodePools, held against what Karpenter makes: its real provisioner, on simulated machines of AWS."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from analysis.fixes.edits import changed
from analysis.fixes.smallest import smallest
from policies.placement.fleet import Fleet, best, fleet_of
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.support.scheduling.every_change import admitted_as
from tests.support.scheduling.node_pools import FAMILY, tables
from tests.testcluster.addons import karpenter
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.fixtures import control_plane, needs_programs

GPU, NAME = "nvidia.com/gpu", "karpenter.k8s.aws/instance-gpu-name"
PODS = count(8, 100)
"""That no NodePool makes a machine for; each comes as it is, and mended."""
TEAM = {"key": "team", "value": "ml", "effect": "NoSchedule"}
POOLS = (
    karpenter.node_pool("small", requirements={FAMILY: ["g5", "g4dn"]}, labels={"example.com/team": "web"}),
    karpenter.node_pool(
        "large", requirements={FAMILY: ["p4d"]}, taints=(karpenter.TAINTS["nvidia"], TEAM), labels={"example.com/team": "ml"}
    ),
)
SELECTORS = {
    FAMILY: ("g5", "p4d", "p5"),
    NAME: ("a10g", "a100", "h100"),
    "example.com/team": ("web", "ml", "none"),
    "nvidia.com/gpu.product": ("NVIDIA-A10G",),
    "karpenter.sh/capacity-type": ("spot", "reserved"),
}


@pytest.fixture(scope="module")
def bought(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Karpenter with two NodePools."""
    needs_programs(request.config, ("karpenter",))
    with control_plane(request.session) as started:
        karpenter.start(started, karpenter.instance_types(catalog()))
        for pool in POOLS:
            started.api.create(pool)
        yield started


def _fleet() -> Fleet:
    """The places as AWS would have them: the simulated machines are of AWS, their node class is not."""
    pools = []
    for pool in POOLS:
        spec = pool["spec"]["template"]["spec"] | {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
        }
        pools.append({**pool, "spec": {**pool["spec"], "template": {**pool["spec"]["template"], "spec": spec}}})
    return fleet_of(pools, catalog=catalog(), tables=tables())


def _pod(random: Random, name: str) -> Raw:
    chosen = random.sample(tuple(SELECTORS), random.randint(0, 2))
    tolerated = [taint for taint in (karpenter.TAINTS["nvidia"], TEAM) if random.random() < 0.6]
    resource = random.choice((GPU, GPU, GPU, "nvidia.com/mig-1g.5gb"))
    spec = {
        "containers": [{"name": "c", "image": "i:1", "resources": {"limits": {resource: str(random.choice((1, 4, 8, 16)))}}}],
        "nodeSelector": {key: random.choice(SELECTORS[key]) for key in chosen},
        "tolerations": [{"key": taint["key"], "operator": "Exists"} for taint in tolerated],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_karpenter_makes_machines_for_mended_pods_alone(bought: Cluster) -> None:
    """Each pod that can never run waits for ever, and what it becomes by the smallest change runs."""
    random, fleet = Random(3), _fleet()
    never: list[Raw] = []
    fixed: list[Raw] = []
    while len(never) < PODS:
        pod = _pod(random, f"p{len(never)}")
        if best(pod, fleet) != "never":
            continue
        found = smallest(pod, fleet, catalog(), admitted_as).fix
        assert found is not None, pod
        never.append(pod)
        fixed.append({**changed(pod, found.edits), "metadata": {"name": f"fixed-{len(fixed)}"}})
    for one in (*never, *fixed):
        bought.api.create(one)
    bought.wait_for(lambda: all(_node(bought, one) for one in fixed), "machines for " + ", ".join(one["metadata"]["name"] for one in fixed))
    assert [one for one in never if _node(bought, one)] == []


def _node(cluster: Cluster, pod: Raw) -> str | None:
    value = cluster.api.get("v1", "Pod", pod["metadata"]["name"], "default")
    assert value is not None
    found: str | None = value["spec"].get("nodeName")
    return found
