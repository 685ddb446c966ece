"""The rules that place a pod, once for real: a pod in by the API, the stored pod and the node it is bound to out.

First what becomes of the same pod without Berth. Bare metal (``--platforms gfd``); kwok plays the kubelets and runs what is
bound. The other four rules are in ``tests/e2e/rules/test_rules_limits.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.e2e.judged import Judged, judged, pool
from tests.e2e.workloads import (
    NVIDIA,
    TOLERATION,
    affinity,
    amounts,
    expression,
    gpus,
    node_of,
    pod,
    terms,
    tolerations,
    waiting,
)
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons import nodes
from tests.testcluster.addons.nodes import FakeNode
from tests.testcluster.controlplane.cluster import Cluster

RULES = ("tolerations", "node-affinity", "mig-resources")
PRODUCT = "nvidia.com/gpu.product"
FAMILY = "nvidia.com/gpu.family"
T4, H100 = "Tesla-T4", "NVIDIA-H100-80GB-HBM3"
SLICE = "nvidia.com/mig-1g.20gb"


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> Iterator[Judged]:
    with judged(cluster, "rules", namespaces={rule: {"rule": rule} for rule in RULES}) as found:
        yield found


@pytest.fixture(autouse=True)
def cleared(world: Judged) -> Iterator[None]:
    yield
    world.clear("Pod")


# --- tolerations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "key", "where"),
    [
        (NVIDIA, NVIDIA, {"t4", "a10g", "a100-shared", "h100", "h200"}),
        (SLICE, NVIDIA, {"a100-mig"}),
        ("amd.com/gpu", "amd.com/gpu", {"mi300x"}),
    ],
)
def test_a_pod_tolerates_the_taint_of_the_gpu_it_asks_for(world: Judged, resource: str, key: str, where: set[str]) -> None:
    """Without Berth it waits for ever; with it the vendor's toleration, the policy's own and no other are added, and it runs."""
    api = world.cluster.api
    assert "untolerated taint" in waiting(world.cluster, api.create(pod(gpus(name=resource)), world["plain"]))
    stored = api.create(pod(gpus(name=resource)), world["tolerations"])
    team = {"key": "team", "operator": "Equal", "value": "research", "effect": "NoSchedule"}
    assert tolerations(stored) == [{"key": key, "operator": "Exists", "effect": "NoSchedule"}, team]
    assert node_of(world.cluster, stored) in where


def test_a_team_reaches_its_own_tainted_nodes(world: Judged) -> None:
    """A node with a taint of the team besides the GPU's: only with ``tolerate`` is a pod bound to it."""
    plain = nodes.whole("team-node", catalog().models("T4")[0], 1)
    team = FakeNode(
        name=plain.name,
        labels=plain.labels,
        taints=(*plain.taints, {"key": "team", "value": "research", "effect": "NoSchedule"}),
        resources=plain.resources,
    )
    with pool(world.cluster, "team", team) as selector:
        known = world.cluster.api.create(pod(nodeSelector=selector, tolerations=[TOLERATION]), world["plain"])
        assert "untolerated taint" in waiting(world.cluster, known)
        stored = world.cluster.api.create(pod(nodeSelector=selector, tolerations=[TOLERATION]), world["tolerations"])
        assert tolerations(stored)[0] == TOLERATION  # the author's own stays first, and is not repeated
        assert len(tolerations(stored)) == 2
        assert node_of(world.cluster, stored) == "team-node"


def test_a_toleration_of_everything_is_denied_where_a_taint_is_reserved(world: Judged) -> None:
    """Without Berth such a pod runs on anybody's nodes."""
    everything = pod(tolerations=[{"operator": "Exists"}])
    assert node_of(world.cluster, world.cluster.api.create(everything, world["plain"]))
    assert "name the taint keys in spec.tolerations[0]" in world.denied("tolerations", everything, "BERTH-131")


# --- node_affinity -----------------------------------------------------------------------------------------------------


def test_a_preferred_gpu_that_is_not_allowed_is_not_used(world: Judged) -> None:
    """The author prefers a T4. Without Berth the pod lands there; with it on an allowed GPU, and the preference stands, unheard."""
    wish = pod(tolerations=[TOLERATION], affinity=affinity(preferred={PRODUCT: T4}))
    assert node_of(world.cluster, world.cluster.api.create(wish, world["plain"])) == "t4"
    reply = world.cluster.api.try_create(wish, world["node-affinity"])
    stored = reply.body
    assert terms(stored) == [{"matchExpressions": [expression(FAMILY, "hopper")]}]
    preferred = stored["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred == wish["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert any(warning.startswith("BERTH-214: ") for warning in reply.warnings), reply.warnings
    assert node_of(world.cluster, stored) in {"h100", "h200"}


def test_each_term_of_the_author_is_narrowed(world: Judged) -> None:
    """Terms are ORed, so the requirement goes into every one but the empty one, which selects nothing; a nodeSelector stays as it is."""
    hosts = [expression("kubernetes.io/hostname", "t4", "h100")], [expression("kubernetes.io/hostname", "a10g")]
    author = [{"matchExpressions": found} for found in hosts] + [{}]
    made = pod(
        tolerations=[TOLERATION],
        nodeSelector={"kubernetes.io/os": "linux"},
        affinity=affinity(*author, preferred={PRODUCT: T4}),
    )
    assert node_of(world.cluster, world.cluster.api.create(made, world["plain"])) == "t4"
    stored = world.cluster.api.create(made, world["node-affinity"])
    assert terms(stored) == [{"matchExpressions": [*found, expression(FAMILY, "hopper")]} for found in hosts] + [{}]
    assert stored["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert node_of(world.cluster, stored) == "h100"


def test_what_a_node_selector_says_already_is_not_repeated(world: Judged) -> None:
    """An author who chose an allowed GPU gets it, and no affinity."""
    stored = world.cluster.api.create(pod(nodeSelector={PRODUCT: H100}), world["node-affinity"])
    assert "affinity" not in stored["spec"]
    assert node_of(world.cluster, stored) == "h100"


def test_a_gpu_that_is_not_allowed_is_denied_with_those_that_are(world: Judged) -> None:
    """Without Berth the pod runs there."""
    made = pod(tolerations=[TOLERATION], nodeSelector={PRODUCT: T4})
    assert node_of(world.cluster, world.cluster.api.create(made, world["plain"])) == "t4"
    sentence = world.denied("node-affinity", made, "BERTH-121")
    assert sentence.startswith(f"spec.nodeSelector {PRODUCT}={T4} violates families in [hopper]; use one of ")
    hopper = {product for gpu in catalog().gpus if gpu.family == "hopper" for product in gpu.products}
    offered = set(re.findall(r"NVIDIA-[\w-]+", sentence.partition(" or remove it")[0]))
    assert offered
    assert offered <= hopper


# --- mig_resources -----------------------------------------------------------------------------------------------------


def test_a_whole_gpu_becomes_a_slice(world: Judged) -> None:
    """Without Berth the pod holds a whole GPU; with it the slice of that size in requests and limits, and the node that has it."""
    plain = world.cluster.api.create(pod(tolerations=[TOLERATION]), world["plain"])
    assert amounts(plain) == ({NVIDIA: "1"}, {NVIDIA: "1"})
    assert node_of(world.cluster, plain) != "a100-mig"
    stored = world.cluster.api.create(pod(), world["mig-resources"])
    assert amounts(stored) == ({SLICE: "1"}, {SLICE: "1"})
    assert node_of(world.cluster, stored) == "a100-mig"
