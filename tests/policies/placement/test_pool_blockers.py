"""What keeps a NodePool from making a machine for a pod."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kube.scheduling import Blocker, read_wants
from policies.placement.pool_blockers import machines, most_devices, of_pool
from policies.placement.pools import Pool
from tests.support.scheduling.node_pools import CATEGORY, of_families, pool

GPU = "nvidia.com/gpu"
TAINT = {"key": GPU, "effect": "NoSchedule"}


def _found(place: Pool, count: int = 1, name: str = GPU, **spec: Any) -> list[Blocker]:
    return list(of_pool(read_wants({"spec": {"containers": [{"resources": {"limits": {name: count}}}], **spec}}), place))


def _kinds(found: list[Blocker]) -> list[tuple[str, str]]:
    return [(one.kind, one.key) for one in found]


def _terms(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    found = [{"matchExpressions": term} for term in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": found}}}


def test_a_pool_of_such_machines_has_nothing_against_the_pod() -> None:
    """Its startup taints go before the pod comes."""
    assert _found(pool(requirements=[of_families("p4d")], startup=[TAINT]), 8) == []


def test_taints_must_be_tolerated() -> None:
    """As on a node."""
    place = pool(taints=[TAINT])
    assert _kinds(_found(place)) == [("taint", GPU)]
    assert _found(place, tolerations=[{"operator": "Exists"}]) == []


def test_no_machine_has_so_many() -> None:
    """Certain where the pool names its families; a machine that the catalog lacks may have more."""
    (found,) = _found(pool(requirements=[of_families("p4d", "g5")]), 16)
    assert (found.kind, found.need, found.have, found.certain) == ("machines", 16, 8, True)
    (found,) = _found(pool(requirements=[of_families("p99")]), 32)
    assert (found.kind, found.certain) == ("machines", False)


def test_slices_and_pools_without_gpus() -> None:
    """Karpenter buys no machine for a MIG slice, and none with a GPU from a pool of others."""
    (found,) = _found(pool(requirements=[of_families("p4d")]), name="nvidia.com/mig-1g.5gb")
    assert (found.kind, found.certain) == ("machines", True)
    plain = pool(requirements=[{"key": CATEGORY, "operator": "In", "values": ["c", "m"]}])
    assert _kinds(_found(plain)) == [("machines", GPU)]


def test_labels_that_nodes_have_only_once_they_run() -> None:
    """Karpenter denies a label that it does not know, unless the pool promises it; what is denied need not be known."""
    product = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}
    assert _kinds(_found(pool(), nodeSelector=product)) == [("label", "nvidia.com/gpu.product")]
    assert _found(pool(labels=product), nodeSelector=product) == []
    assert _found(pool(), affinity=_terms([{"key": "nvidia.com/gpu.product", "operator": "NotIn", "values": ["x"]}])) == []


def test_a_label_that_the_pool_contradicts() -> None:
    """With what the pool has instead; of the terms the nearest."""
    place = pool(requirements=[of_families("g5")], labels={"team": "ml"})
    (found,) = _found(place, nodeSelector={"team": "web"})
    assert (found.kind, found.key, found.values, found.found) == ("label", "team", ("web",), "ml")
    web, ml = ({"key": "team", "operator": "In", "values": [value]} for value in ("web", "ml"))
    other = {"key": "beta.kubernetes.io/instance-type", "operator": "Exists"}
    assert _found(place, affinity=_terms([web, other], [ml])) == []
    assert _kinds(_found(place, affinity=_terms([web, other]))) == [("label", "team")]


def test_machines_that_the_labels_leave() -> None:
    """A pool of any family has none whose GPU is an L4 with the family of another."""
    gpu, family = "karpenter.k8s.aws/instance-gpu-name", "karpenter.k8s.aws/instance-family"
    found = _found(pool(), nodeSelector={gpu: "l4", family: "p4d"})
    assert [one.kind for one in found] == ["machines"]


def test_a_new_machine_has_no_name_yet() -> None:
    """Neither by label nor by field."""
    assert _kinds(_found(pool(), nodeSelector={"kubernetes.io/hostname": "n1"})) == [("label", "kubernetes.io/hostname")]
    fields = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": fields}}
    assert _kinds(_found(pool(), affinity=affinity)) == [("name", "metadata.name")]


def test_limits_count_whole_machines() -> None:
    """A machine of eight breaks a limit that has three left; that passes once others go, a limit below the need does not."""
    eight = [of_families("p4d")]
    (found,) = _found(pool(requirements=eight, limits={GPU: 16}, resources={GPU: 13}))
    assert (found.kind, found.need, found.have, found.passing) == ("limits", 8, 3, True)
    (found,) = _found(pool(requirements=eight, limits={GPU: 4}))
    assert (found.kind, found.passing) == ("limits", False)
    (found,) = _found(pool(limits={"nodes": 1}, resources={"nodes": 1}))
    assert (found.kind, found.key, found.passing) == ("limits", "nodes", True)
    assert _found(pool(requirements=[of_families("g5")], limits={"cpu": 10, GPU: 1})) == []


def test_pools_that_make_nothing_now() -> None:
    """A fixed number of nodes, and one that is not ready."""
    assert _kinds(_found(pool(replicas=3))) == [("static", "")]


def test_of_an_unknown_cloud_only_its_own_words_are_judged() -> None:
    """Its machines may have any label and any number of devices."""
    place = pool(group="example.com", taints=[TAINT])
    assert _kinds(_found(place, 64, nodeSelector={"example.com/x": "y"})) == [("taint", GPU)]


def test_a_pod_on_a_named_node_and_a_pool_that_is_not_ready() -> None:
    """No machine that is made has that name; a pool that Karpenter does not use now may be used again."""
    place = replace(pool(requirements=[of_families("g5")]), ready=False)
    found = _found(place, nodeName="n1")
    assert [(one.kind, one.passing) for one in found] == [("not-ready", True), ("name", False)]


def test_what_cannot_be_read_is_left_out() -> None:
    """An operator of tomorrow, an amount that is none; a term without conditions matches nothing."""
    place = pool(requirements=[of_families("g5")])
    assert _found(place, affinity=_terms([{"key": "team", "operator": "Near"}])) == []
    assert _kinds(_found(place, affinity=_terms([]))) == [("label", "")]
    broken = {"containers": [{"resources": {"limits": {GPU: "x"}}}]}
    assert of_pool(read_wants({"spec": broken}), place) == ()


def test_machines_of_one_pool() -> None:
    """By name, and the most devices that any has; of an unknown cloud nothing is known."""
    place = pool(requirements=[of_families("p4d", "g5")])
    asks = read_wants({"spec": {"containers": [{"resources": {"limits": {GPU: 8}}}]}})
    assert set(machines(asks, place)) == {"p4d.24xlarge", "g5.48xlarge"}
    assert most_devices(place)[GPU] == 8
    unknown = pool(group="example.com")
    assert (machines(asks, unknown), most_devices(unknown)) == ((), {})


def test_terms_that_leave_no_machine() -> None:
    """Each of them narrows by itself; the first is shown."""
    gpu = "karpenter.k8s.aws/instance-gpu-name"
    place = pool(requirements=[of_families("p4d")])
    h100, a100 = ({"key": gpu, "operator": "In", "values": [value]} for value in ("h100", "a100"))
    assert _kinds(_found(place, affinity=_terms([h100], [h100]))) == [("machines", gpu)]
    assert _found(place, affinity=_terms([h100], [a100])) == []


def test_devices_that_the_cloud_does_not_count() -> None:
    """EC2 reports no GPU of g6f: none is made for a pod with a GPU, unless somebody tells Karpenter of it; other machines are."""
    (found,) = _found(pool(requirements=[of_families("g6f")]))
    assert (found.kind, found.have, found.certain) == ("machines", 0, False)
    assert found.found is not None
    assert found.found.startswith("g6f.")
    assert set(machines(read_wants(_pod_of(1)), pool(requirements=[of_families("g6f", "g5")]))).isdisjoint({"g6f.large"})


def test_machines_of_another_vendor_are_named_by_what_they_have() -> None:
    """g4ad has AMD's GPUs."""
    (found,) = _found(pool(requirements=[of_families("g4ad")]))
    assert (found.values, found.have, found.certain) == (("amd.com/gpu",), 0, True)


def test_of_the_machines_that_a_pod_selects_the_largest_is_told() -> None:
    """16 GPUs are on a p2.16xlarge; of L4 no machine has more than 8."""
    gpu = "karpenter.k8s.aws/instance-gpu-name"
    (found,) = _found(pool(), 16, nodeSelector={gpu: "l4"})
    assert (found.key, found.have, found.found) == (GPU, 8, "g6.48xlarge")
    assert _found(pool(), 16) == []


def _pod_of(count: int) -> dict[str, Any]:
    return {"spec": {"containers": [{"resources": {"limits": {GPU: count}}}]}}
