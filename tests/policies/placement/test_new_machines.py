"""What machines that a NodePool may make have for a pod: CPU, memory, storage, pods, ports, and the limits of the NodePool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest

from kube.scheduling import Blocker, wants
from policies.offers.build import tables_of
from policies.offers.table import Table
from policies.placement.fleet import Fleet, best, blockers, fleet_of
from policies.placement.pool_blockers import machines
from policies.placement.unchecked import Unchecked
from tests.support.generators.random_worlds import catalog
from tests.support.scheduling.node_pools import AWS, node_pool, of_families, tables

GPU = "nvidia.com/gpu"
CPU, MEMORY = "karpenter.k8s.aws/instance-cpu", "karpenter.k8s.aws/instance-memory"
Raw = dict[str, Any]


def _pod(gpus: int = 1, ports: tuple[int, ...] = (), selector: Raw | None = None, **requests: str) -> Raw:
    amounts = {name.replace("_", "-"): amount for name, amount in requests.items()}
    container = {"resources": {"requests": amounts, "limits": {GPU: gpus}}, "ports": [{"hostPort": port} for port in ports]}
    return {"spec": {"containers": [container], "nodeSelector": selector or {}}}


def _daemon(name: str = "agent", **spec: Any) -> Raw:
    template = {"spec": {"tolerations": [{"operator": "Exists"}], **spec}}
    return {"kind": "DaemonSet", "metadata": {"name": name}, "spec": {"template": template}}


def _containers(port: int | None = None, **requests: str) -> list[Raw]:
    return [{"resources": {"requests": requests}, "ports": [{"hostPort": port}] if port else []}]


def _class(**spec: Any) -> Raw:
    return {"kind": "EC2NodeClass", "metadata": {"name": "default"}, "spec": {"amiFamily": "AL2023", **spec}}


def _fleet(pool: Raw, *others: Raw) -> Fleet:
    return fleet_of([pool, *others], catalog=catalog(), tables=tables())


def _found(pod: Raw, fleet: Fleet) -> list[Blocker]:
    return list(blockers(pod, fleet.pools[0], fleet))


def _unchecked(pod: Raw, fleet: Fleet) -> frozenset[Unchecked]:
    return fleet.unchecked(wants(pod))


def test_a_machine_of_the_pool_must_be_large_enough() -> None:
    """g5.xlarge to g5.16xlarge have one GPU, with up to 64 CPUs; the nearest is told with what it has for pods."""
    fleet = _fleet(node_pool("gpu", requirements=[of_families("g5")]), _daemon(containers=[]), _class())
    assert _found(_pod(cpu="63", memory="200Gi"), fleet) == []
    (found,) = _found(_pod(8, cpu="192"), fleet)
    assert (found.kind, found.key, found.found, found.need, found.have, found.certain) == (
        "machines",
        "cpu",
        "g5.48xlarge",
        192000,
        191450,
        True,
    )
    assert best(_pod(8, cpu="192"), fleet) == "never"


def test_one_machine_must_have_all_of_it() -> None:
    """g5.16xlarge has the memory and one GPU; four GPUs come with less memory on g5.12xlarge, with more on g5.24xlarge."""
    fleet = _fleet(node_pool("gpu", requirements=[of_families("g5")]), _daemon(containers=[]), _class())
    assert set(machines(wants(_pod(4, memory="300Gi")), fleet.pools[0])) == {"g5.24xlarge", "g5.48xlarge"}
    assert set(machines(wants(_pod(1, cpu="33")), fleet.pools[0])) == {"g5.16xlarge", "g5.12xlarge", "g5.24xlarge", "g5.48xlarge"}


def test_memory_between_the_estimate_and_the_machine_is_not_certain() -> None:
    """Karpenter takes 7.5 % off until it has seen such a node: of 32 GiB 29317Mi are left at first."""
    requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.2xlarge"]}]
    fleet = _fleet(node_pool("gpu", requirements=requirements), _daemon(containers=[]), _class())
    assert _found(_pod(memory="29317Mi"), fleet) == []
    (found,) = _found(_pod(memory="29318Mi"), fleet)
    assert (found.key, found.certain, found.have) == ("memory", False, 29317 * 2**20)
    (found,) = _found(_pod(memory="32Gi"), fleet)
    assert found.certain


def test_machines_of_an_open_pool_may_be_larger_than_the_catalog_knows() -> None:
    """Only where families or types are named, it is certain that none is large enough."""
    category = {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["g"]}
    fleet = _fleet(node_pool("gpu", requirements=[category]), _daemon(containers=[]), _class())
    (found,) = _found(_pod(memory="9000Gi"), fleet)
    assert (found.certain, best(_pod(memory="9000Gi"), fleet)) == (False, "unknown")


def test_daemonsets_take_their_part_of_a_new_node() -> None:
    """Only those that tolerate the taints, and whose labels a new node has: one for nodes with a label of GPU Feature Discovery comes
    later."""
    taint = {"key": GPU, "effect": "NoSchedule"}
    requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.xlarge"]}]
    place = node_pool("gpu", requirements=requirements, taints=[taint])
    pod = _pod(cpu="3900m")
    pod["spec"]["tolerations"] = [{"operator": "Exists"}]
    large = _containers(cpu="500m")
    assert _found(pod, _fleet(place, _class(), _daemon(containers=[]))) == []
    (found,) = _found(pod, _fleet(place, _class(), _daemon(containers=large)))
    assert (found.key, found.have) == ("cpu", 3420)
    assert _found(pod, _fleet(place, _class(), _daemon(containers=large, tolerations=[]))) == []
    assert _found(pod, _fleet(place, _class(), _daemon(containers=large, nodeSelector={"nvidia.com/gpu.present": "true"}))) == []
    other_type = {"node.kubernetes.io/instance-type": "g5.2xlarge"}
    assert _found(pod, _fleet(place, _class(), _daemon(containers=large, nodeSelector=other_type))) == []
    assert _found(pod, _fleet(place, _class(), _daemon(containers=large, resourceClaims=[{"name": "x"}]))) == []


def test_pods_and_ports_of_a_new_node() -> None:
    """A node class of one pod has no room beside a DaemonSet, and two pods cannot take one port of the host."""
    place = node_pool("gpu", requirements=[of_families("g5")])
    one = _class(kubelet={"maxPods": 1})
    (found,) = _found(_pod(), _fleet(place, one, _daemon(containers=_containers())))
    assert (found.kind, found.key, found.need, found.have) == ("machines", "pods", 1, 0)
    (found,) = _found(_pod(ports=(9400,)), _fleet(place, _class(), _daemon(containers=_containers(port=9400))))
    assert (found.kind, found.key, found.passing) == ("ports", "9400/TCP", False)
    assert _found(_pod(ports=(9401,)), _fleet(place, _class(), _daemon(containers=_containers(port=9400)))) == []


def test_storage_is_that_of_the_volume() -> None:
    """20Gi where the node class names none; of the machine's own disks it is not known."""
    place = node_pool("gpu", requirements=[of_families("g5")])
    (found,) = _found(_pod(ephemeral_storage="50Gi"), _fleet(place, _class(), _daemon(containers=[])))
    assert (found.key, found.have) == ("ephemeral-storage", 17 * 2**30)
    fleet = _fleet(place, _class(instanceStorePolicy="RAID0"), _daemon(containers=[]))
    assert not _found(_pod(ephemeral_storage="50Gi"), fleet)
    assert _unchecked(_pod(ephemeral_storage="50Gi"), fleet) == {"machineSizes"}


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        ({"key": CPU, "operator": "Lt", "values": ["9"]}, {"g5.xlarge", "g5.2xlarge"}),
        ({"key": CPU, "operator": "Gte", "values": ["64"]}, {"g5.16xlarge", "g5.24xlarge", "g5.48xlarge"}),
        ({"key": MEMORY, "operator": "In", "values": ["16384"]}, {"g5.xlarge"}),
        ({"key": MEMORY, "operator": "Gt", "values": ["400000"]}, {"g5.48xlarge"}),
    ],
)
def test_requirements_on_the_size_of_machines(requirement: Raw, expected: set[str]) -> None:
    """Of the NodePool, and as well of the pod."""
    fleet = _fleet(node_pool("gpu", requirements=[of_families("g5"), requirement]), _class())
    assert set(machines(wants(_pod()), fleet.pools[0])) == expected
    if requirement["operator"] == "In":
        open_ = _fleet(node_pool("gpu", requirements=[of_families("g5")]), _class())
        assert set(machines(wants(_pod(selector={MEMORY: "16384"})), open_.pools[0])) == expected
        (found,) = _found(_pod(selector={MEMORY: "1"}), open_)
        assert (found.kind, found.key) == ("machines", MEMORY)


def test_bounds_of_karpenters_own_operators() -> None:
    """Gte and Lte are Gt and Lt with another number."""
    count = "karpenter.k8s.aws/instance-gpu-count"
    for operator, values, expected in (("Gte", ["8"], {"g5.48xlarge"}), ("Lte", ["1"], 5), ("Gt", ["4"], {"g5.48xlarge"})):
        fleet = _fleet(node_pool("gpu", requirements=[of_families("g5"), {"key": count, "operator": operator, "values": values}]), _class())
        names = set(machines(wants(_pod()), fleet.pools[0]))
        assert names == expected or len(names) == expected


def test_limits_on_every_resource() -> None:
    """A limit that is used up lets no machine be made, whatever the pod asks for; one that leaves something lets smaller ones be made."""
    place = [of_families("g5")]
    used = _fleet(node_pool("gpu", requirements=place, limits={"cpu": "8"}, resources={"cpu": "8"}), _class())
    (found,) = _found(_pod(), used)
    assert (found.kind, found.key, found.have, found.passing, found.certain) == ("limits", "cpu", 0, True, True)
    none = _fleet(node_pool("gpu", requirements=place, limits={"cpu": "0"}), _class())
    assert best(_pod(), none) == "never"
    eight = _fleet(node_pool("gpu", requirements=place, limits={"cpu": "16"}, resources={"cpu": "8"}), _class())
    assert set(machines(wants(_pod()), eight.pools[0])) == {"g5.xlarge", "g5.2xlarge"}
    (found,) = _found(_pod(cpu="12"), eight)
    assert (found.kind, found.key, found.need, found.have) == ("limits", "cpu", 12000, 8000)
    (found,) = _found(_pod(4), eight)
    assert (found.kind, found.key, found.found, found.need, found.have) == ("limits", "cpu", "g5.12xlarge", 48000, 8000)
    memory = _fleet(node_pool("gpu", requirements=place, limits={"memory": "20Gi"}), _class())
    assert set(machines(wants(_pod()), memory.pools[0])) == {"g5.xlarge"}


def test_a_limit_on_memory_that_the_estimate_keeps() -> None:
    """g5.xlarge is counted as 15155Mi at first, and as up to 16Gi once one was seen."""
    place = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.xlarge"]}]
    (found,) = _found(_pod(), _fleet(node_pool("gpu", requirements=place, limits={"memory": "15500Mi"}), _class()))
    assert (found.kind, found.certain) == ("limits", False)
    (found,) = _found(_pod(), _fleet(node_pool("gpu", requirements=place, limits={"memory": "14Gi"}), _class()))
    assert found.certain


def test_what_is_not_known_of_new_nodes_is_named() -> None:
    """DaemonSets, the node class, and what other providers keep; nothing of a pod that asks for devices alone."""
    place = node_pool("gpu", requirements=[of_families("g5")])
    asks = _pod(cpu="1")
    assert _unchecked(asks, _fleet(place)) == {"daemonSets", "nodeClasses"}
    assert _unchecked(asks, _fleet(place, _class())) == {"daemonSets"}
    assert _unchecked(asks, _fleet(place, _daemon(containers=[]))) == {"nodeClasses"}
    assert _unchecked(asks, _fleet(place, _class(kubelet={"maxPods": "1 + 1"}), _daemon(containers=[]))) == {"nodeClasses"}
    assert _unchecked(asks, _fleet(place, _class(), _daemon(containers=[]))) == set()
    assert _unchecked(_pod(), _fleet(place)) == set()


def test_nodes_whose_pods_are_not_known() -> None:
    """A node that is empty as far as anybody knows is no place that was checked; one that was checked whole is enough."""
    node = {"kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {GPU: 8, "cpu": "9", "pods": 10}}}
    assert _unchecked(_pod(), _fleet(node)) == {"podsOnNodes"}
    known = fleet_of([node], catalog=catalog(), tables=tables(), occupants=())
    assert _unchecked(_pod(), known) == set()
    assert _unchecked(_pod(9), known) == set()


def test_pods_with_claims_get_no_new_node_by_default() -> None:
    """Karpenter leaves them alone, unless an option of its own is on: it is not certain."""
    pod = {"spec": {"resourceClaims": [{"name": "gpu"}], "containers": [{}]}}
    (found,) = _found(pod, _fleet(node_pool("gpu")))
    assert (found.kind, found.certain) == ("claims", False)


def test_sizes_of_another_provider_bound_what_fits() -> None:
    """What it keeps of a machine is not known, so nothing fits for certain, but more than the whole machine never does; a limit between
    is not checked."""
    place: dict[str, Any] = {
        "group": "eks.amazonaws.com",
        "requirements": [{**of_families("g5"), "key": "eks.amazonaws.com/instance-family"}],
    }

    def fleet(**parts: Any) -> Fleet:
        return fleet_of([node_pool("gpu", **place, **parts), _daemon(containers=[])], catalog=catalog(), tables=_auto())

    assert not _found(_pod(cpu="1"), fleet())
    assert _unchecked(_pod(cpu="1"), fleet()) == {"machineSizes"}
    assert _unchecked(_pod(cpu="1"), fleet(limits={"memory": "64Gi"})) == {"machineSizes", "nodePoolLimits"}
    (found,) = _found(_pod(cpu="193"), fleet())
    assert (found.key, found.need, found.have, found.certain) == ("cpu", 193000, 192000, True)
    (found,) = _found(_pod(), fleet(limits={"cpu": "8"}, resources={"cpu": "8"}))
    assert (found.kind, found.key) == ("limits", "cpu")


def test_karpenters_simulated_cloud_keeps_little() -> None:
    """Where a catalog names its node class as that of machines of AWS, they have their own sizes without 100m and 10Mi."""
    aws = replace(catalog().platforms[AWS], node_classes=("karpenter.kwok.sh",))
    taught = replace(catalog(), platforms={**catalog().platforms, AWS: aws})
    known = tables_of(taught, (AWS,), "mixed", frozenset(), (), frozenset())
    place = node_pool("gpu", group="karpenter.kwok.sh", requirements=[of_families("g5")])
    fleet = fleet_of([place, _daemon(containers=[])], catalog=taught, tables=known)
    assert not _found(_pod(8, cpu="191900m"), fleet)
    assert not _unchecked(_pod(8, cpu="191900m"), fleet)
    (found,) = _found(_pod(8, cpu="192"), fleet)
    assert (found.key, found.have, found.certain) == ("cpu", 191900, True)


@lru_cache(1)
def _auto() -> Mapping[str, Table]:
    return tables_of(catalog(), ("eks-auto",), "mixed", frozenset(), (), frozenset())


def test_machines_that_the_catalog_lacks_have_no_known_size() -> None:
    """It has machines with GPUs alone; of a family that is newer or has none, neither size nor limits are checked."""
    plain = {"spec": {"containers": [{"resources": {"requests": {"cpu": "500"}}}]}}
    for families, pod in ((("m7i",), plain), (("p99",), _pod(8, cpu="500"))):
        place = node_pool("gpu", requirements=[of_families(*families)], limits={"cpu": "1000"})
        fleet = _fleet(place, _class(), _daemon(containers=[]))
        assert _unchecked(pod, fleet) == ({"machineSizes", "nodePoolLimits"} if not _found(pod, fleet) else set())
        assert best(pod, fleet) in ("now", "unknown")
    assert _unchecked(plain, fleet_of([node_pool("web", requirements=[of_families("m7i")])], catalog=catalog(), tables=tables()))
