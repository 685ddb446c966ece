"""Which platforms and which MIG strategy a cluster has, from what its nodes and NodePools say of themselves."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import Catalog
from catalog.parse import CatalogError
from policies.facts import platform_detection
from policies.facts.cluster_facts import ClusterFacts, NodePool, read_facts
from policies.facts.platform_detection import DetectedPlatform, Detector
from policies.policy import PolicySet
from tests.support.cases.golden import catalog_with
from tests.support.generators.strategies import examples
from tests.support.snapshots import build
from tests.testcluster.addons.karpenter import node_pool

CATALOG = catalog_with()
DETECTOR = Detector(CATALOG)
KARPENTER, AUTO, GROUP, HYPERPOD, GKE, AKS, AZURE, GFD = CATALOG.platforms
TYPE, POOL = "node.kubernetes.io/instance-type", "karpenter.sh/nodepool"
PRODUCT = "nvidia.com/gpu.product"
T4 = {TYPE: "g4dn.xlarge", "karpenter.k8s.aws/instance-gpu-name": "t4", "karpenter.k8s.aws/instance-family": "g4dn", POOL: "gpu"}
PLAIN = {TYPE: "m5.large", "karpenter.k8s.aws/instance-family": "m5", POOL: "default"}
NODEGROUP = {TYPE: "m5.large", "eks.amazonaws.com/nodegroup": "system"}
DISCOVERED = {PRODUCT: "NVIDIA-L40S", "nvidia.com/gpu.family": "ada-lovelace", "nvidia.com/gpu.present": "true"}


@pytest.mark.parametrize(
    ("labels", "platform", "gpus"),
    [
        (T4, KARPENTER, True),
        (PLAIN, KARPENTER, False),
        ({"eks.amazonaws.com/compute-type": "auto", "eks.amazonaws.com/instance-gpu-name": "l4", POOL: "gpu"}, AUTO, True),
        ({"eks.amazonaws.com/compute-type": "auto", "eks.amazonaws.com/instance-family": "c6i", POOL: "general-purpose"}, AUTO, False),
        (NODEGROUP, GROUP, False),
        ({**NODEGROUP, TYPE: "p4d.24xlarge"}, GROUP, True),
        ({**NODEGROUP, TYPE: "p9.48xlarge"}, GROUP, False),
        ({**NODEGROUP, TYPE: "p9.48xlarge", **DISCOVERED}, GROUP, True),
        ({"sagemaker.amazonaws.com/compute-type": "hyperpod", TYPE: "ml.p5.48xlarge"}, HYPERPOD, True),
        ({"sagemaker.amazonaws.com/compute-type": "hyperpod", "beta.kubernetes.io/instance-type": "ml.p5.48xlarge"}, HYPERPOD, True),
        ({"sagemaker.amazonaws.com/compute-type": "hyperpod", TYPE: "ml.c5.large", POOL: "cpu"}, HYPERPOD, False),
        ({"cloud.google.com/gke-nodepool": "l4", "cloud.google.com/gke-accelerator": "nvidia-l4"}, GKE, True),
        ({"cloud.google.com/gke-nodepool": "default", "cloud.google.com/machine-family": "n2", TYPE: "n2-standard-8"}, GKE, False),
        ({"kubernetes.azure.com/agentpool": "gpu", "kubernetes.azure.com/accelerator": "nvidia"}, AKS, True),
        ({"kubernetes.azure.com/agentpool": "system", TYPE: "Standard_D4s_v5"}, AKS, False),
        ({"karpenter.azure.com/sku-name": "Standard_NC24ads_A100_v4", "karpenter.azure.com/sku-gpu-name": "A100", POOL: "g"}, AZURE, True),
        ({"karpenter.azure.com/sku-name": "Standard_ND96asr_v4", TYPE: "Standard_ND96asr_v4", POOL: "g"}, AZURE, True),
        ({"karpenter.azure.com/sku-name": "Standard_D4s_v5", POOL: "g", "kubernetes.azure.com/agentpool": "aksmanagedap"}, AZURE, False),
        (DISCOVERED, GFD, True),
        ({"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, GFD, True),
        ({"gpu.intel.com/product": "Max_1550"}, GFD, True),
        ({**DISCOVERED, "eks.amazonaws.com/compute-type": "hybrid"}, GFD, True),
        ({"eks.amazonaws.com/compute-type": "fargate"}, "", False),
        ({**DISCOVERED, POOL: "gpu"}, "", False),
        ({**DISCOVERED, "provisioner.cast.ai/managed-by": "cast.ai"}, "", False),
        ({"kubernetes.io/hostname": "a", TYPE: "p4d.24xlarge"}, "", False),
        ({"nvidia.com/mig.strategy": "single"}, "", False),
        ({}, "", False),
    ],
    ids=str,
)
def test_a_node_says_whose_it_is_and_whether_it_has_gpus(labels: Mapping[str, str], platform: str, *, gpus: bool) -> None:
    """By its platform's anchor; a GPU by a label that only such machines have, or by its instance type."""
    assert DETECTOR.of_node(labels) == DetectedPlatform(platform, gpus)
    assert platform_detection.home(CATALOG, labels) == platform


def test_a_count_of_no_devices_is_no_gpu() -> None:
    """A label that says 0, or false, is as good as none."""
    assert not DETECTOR.of_node({**PLAIN, "karpenter.k8s.aws/instance-gpu-count": "0", "nvidia.com/gpu.present": "false"}).gpus
    assert DETECTOR.of_node({**PLAIN, "karpenter.k8s.aws/instance-gpu-count": "1"}).gpus


CATEGORY, FAMILY = "karpenter.k8s.aws/instance-category", "karpenter.azure.com/sku-family"


@pytest.mark.parametrize(
    ("group", "requirements", "seen"),
    [
        ("karpenter.k8s.aws", (), DetectedPlatform(KARPENTER, gpus=True)),
        ("karpenter.k8s.aws", (("kubernetes.io/arch", "In", ("amd64",)),), DetectedPlatform(KARPENTER, gpus=True)),
        ("karpenter.k8s.aws", ((CATEGORY, "In", ("g", "p")),), DetectedPlatform(KARPENTER, gpus=True)),
        ("karpenter.k8s.aws", ((CATEGORY, "In", ("c", "m", "r")),), DetectedPlatform(KARPENTER, gpus=False)),
        ("karpenter.k8s.aws", ((CATEGORY, "In", ("c", "g")),), DetectedPlatform(KARPENTER, gpus=True)),
        ("karpenter.k8s.aws", ((CATEGORY, "NotIn", ("dl", "g", "gr", "p")),), DetectedPlatform(KARPENTER, gpus=False)),
        ("karpenter.k8s.aws", ((CATEGORY, "NotIn", ("t",)),), DetectedPlatform(KARPENTER, gpus=True)),
        ("karpenter.k8s.aws", ((CATEGORY, "Exists", ()),), DetectedPlatform(KARPENTER, gpus=True)),
        ("karpenter.k8s.aws", (("karpenter.k8s.aws/instance-gpu-count", "DoesNotExist", ()),), DetectedPlatform(KARPENTER, gpus=False)),
        ("karpenter.k8s.aws", (("karpenter.k8s.aws/instance-family", "In", ("p9",)),), DetectedPlatform(KARPENTER, gpus=True)),
        ("eks.amazonaws.com", (("eks.amazonaws.com/instance-category", "In", ("c", "m", "r")),), DetectedPlatform(AUTO, gpus=False)),
        ("eks.amazonaws.com", (("eks.amazonaws.com/instance-category", "In", ("g",)),), DetectedPlatform(AUTO, gpus=True)),
        ("karpenter.sagemaker.amazonaws.com", ((TYPE, "Exists", ()),), DetectedPlatform(HYPERPOD, gpus=True)),
        ("karpenter.azure.com", ((FAMILY, "In", ("D",)),), DetectedPlatform(AZURE, gpus=False)),
        ("karpenter.azure.com", ((FAMILY, "In", ("N",)),), DetectedPlatform(AZURE, gpus=True)),
        ("karpenter.kwok.sh", (), DetectedPlatform()),
        ("karpenter.kwok.sh", ((CATEGORY, "In", ("g",)),), DetectedPlatform()),
        ("", (), DetectedPlatform()),
        ("", ((TYPE, "In", ("g5.xlarge",)),), DetectedPlatform()),
        ("", ((CATEGORY, "In", ("g",)),), DetectedPlatform(KARPENTER, gpus=True)),
        ("", ((FAMILY, "In", ("D",)),), DetectedPlatform(AZURE, gpus=False)),
    ],
    ids=str,
)
def test_a_nodepool_says_who_makes_its_nodes(group: str, requirements: tuple[Any, ...], seen: DetectedPlatform) -> None:
    """By the group of its node class; it counts for GPUs unless what it requires leaves none."""
    assert DETECTOR.of_pool(NodePool(group, requirements)) == seen


def test_the_categories_of_gpu_machines_are_those_of_the_machines() -> None:
    """A category that came with a new machine and is not in gpuPools would hide the NodePools that ask for it."""
    for platform in CATALOG.platforms.values():
        for key, values in platform.gpu_pools.items():
            attribute = platform.labels.get(key)
            if attribute is not None:
                assert {m.attributes[attribute] for m in CATALOG.machines if m.cloud == platform.cloud} <= set(values)


def cluster(*nodes: Mapping[str, str], pools: Iterable[str | NodePool] = ()) -> ClusterFacts:
    found = [pool if isinstance(pool, NodePool) else NodePool(pool) for pool in pools]
    return ClusterFacts(nodes={f"n{i}": labels for i, labels in enumerate(nodes)}, nodepools={f"p{i}": p for i, p in enumerate(found)})


def small(group: str) -> NodePool:
    """One that makes no GPU nodes."""
    return NodePool(group, ((CATEGORY, "In", ("c", "m", "r")),))


GPU_GROUP = {**NODEGROUP, TYPE: "g5.xlarge"}


@pytest.mark.parametrize(
    ("facts", "platforms"),
    [
        (cluster(), ()),
        (cluster({}, {"zone": "a"}), ()),
        (cluster(DISCOVERED, {}), (GFD,)),
        (cluster(NODEGROUP), (GROUP,)),
        (cluster(NODEGROUP, PLAIN), (KARPENTER, GROUP)),
        (cluster(NODEGROUP, pools=["karpenter.k8s.aws"]), (KARPENTER,)),
        (cluster(NODEGROUP, pools=[small("karpenter.k8s.aws")]), (KARPENTER, GROUP)),
        (cluster(GPU_GROUP, PLAIN, pools=[small("karpenter.k8s.aws")]), (GROUP,)),
        (cluster(GPU_GROUP, NODEGROUP, pools=["karpenter.k8s.aws"]), (KARPENTER, GROUP)),
        (cluster(NODEGROUP, DISCOVERED), (GFD,)),
        (cluster(DISCOVERED, T4), (KARPENTER, GFD)),
        (cluster(NODEGROUP, pools=["karpenter.kwok.sh"]), (GROUP,)),
        (cluster({POOL: "gpu", **DISCOVERED}, pools=["karpenter.kwok.sh"]), ()),
    ],
)
def test_the_platforms_of_a_cluster(facts: ClusterFacts, platforms: tuple[str, ...]) -> None:
    """Those of GPU nodes and of NodePools that may make some; where there are none, those of all nodes."""
    assert platform_detection.detected(CATALOG, facts)[0] == platforms


def test_what_was_certain_is_not_forgotten() -> None:
    """A node that went away was scaled to zero, and what its platform writes is still wanted."""
    certain = DETECTOR.certain(DETECTOR.all(cluster(GPU_GROUP, DISCOVERED)))
    assert certain == (GROUP, GFD)
    assert DETECTOR.platforms(DETECTOR.all(cluster()), certain) == (GROUP, GFD)
    assert DETECTOR.platforms(DETECTOR.all(cluster(T4)), certain) == (KARPENTER, GROUP, GFD)
    assert DETECTOR.certain(DETECTOR.all(cluster(T4)), certain) == (KARPENTER, GROUP, GFD)


def test_what_was_only_likely_is() -> None:
    """The small group on which a cluster began is not among the platforms once a NodePool for GPUs is there: it has no slices to give."""
    before = DETECTOR.all(cluster(NODEGROUP))
    assert DETECTOR.platforms(before) == (GROUP,)
    assert DETECTOR.certain(before) == ()
    assert DETECTOR.platforms(DETECTOR.all(cluster(NODEGROUP, pools=["karpenter.k8s.aws"])), DETECTOR.certain(before)) == (KARPENTER,)


def test_a_platform_of_another_catalog_is_dropped() -> None:
    """What was certain under a catalog that is no more has no table."""
    assert DETECTOR.certain((), ["no-such", GFD]) == (GFD,)


def test_the_test_clusters_karpenter() -> None:
    """Its NodePools name kwok's group: known only by the nodes that it makes, or by one line of a --catalog file."""
    pool = node_pool("gpu")
    facts = ClusterFacts.from_objects([pool])
    assert facts.nodepools["gpu"].node_class == "karpenter.kwok.sh"
    assert platform_detection.detected(CATALOG, facts)[0] == ()
    node = {"kind": "Node", "metadata": {"name": "n", "labels": T4}}
    assert platform_detection.detected(CATALOG, ClusterFacts.from_objects([pool, node]))[0] == (KARPENTER,)
    taught = catalog_with('[{"platforms": {"karpenter-aws": {"nodeClasses": ["karpenter.kwok.sh"]}}}]')
    assert platform_detection.detected(taught, facts)[0] == (KARPENTER,)
    assert "karpenter.k8s.aws" in taught.platforms[KARPENTER].node_classes


# --- MIG strategy ------------------------------------------------------------------------------------------------------

SINGLE = {PRODUCT: "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/gpu.slices.gi": "1", "nvidia.com/mig.strategy": "single"}
MIXED = {PRODUCT: "NVIDIA-A100-SXM4-40GB", "nvidia.com/mig-3g.20gb.count": "2", "nvidia.com/mig.strategy": "mixed"}
WHOLE = {PRODUCT: "NVIDIA-A100-SXM4-40GB", "nvidia.com/mig.strategy": "single", "nvidia.com/mig.capable": "true"}


@pytest.mark.parametrize(
    ("labels", "strategy"),
    [
        (SINGLE, "single"),
        ({PRODUCT: "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED"}, "single"),
        ({PRODUCT: "NVIDIA-A100-SXM4-40GB-MIG-INVALID"}, "single"),
        (MIXED, "mixed"),
        ({"nvidia.com/mig-1g.24gb.me.all.count": "1"}, "mixed"),
        (WHOLE, ""),
        ({PRODUCT: "NVIDIA-A100-SXM4-40GB-SHARED"}, ""),
        ({"nvidia.com/gpu.count": "8", "nvidia.com/gpu.deploy.mig-manager": "true", "nvidia.com/mig.config": "all-1g.5gb"}, ""),
        ({**T4, **SINGLE}, "single"),
    ],
    ids=str,
)
def test_a_node_shows_how_its_slices_are_offered(labels: Mapping[str, str], strategy: str) -> None:
    """By what it offers; nvidia.com/mig.strategy is only a setting, on nodes without slices too."""
    assert DETECTOR.of_node(labels).strategy == strategy


@pytest.mark.parametrize(
    ("nodes", "before", "strategy"),
    [
        ((), None, "mixed"),
        ((WHOLE,), None, "mixed"),
        ((SINGLE, WHOLE), None, "single"),
        ((MIXED, WHOLE), None, "mixed"),
        ((SINGLE, MIXED), None, "mixed"),
        ((WHOLE,), "single", "single"),
        ((), "mixed", "mixed"),
        ((MIXED,), "single", "mixed"),
        ((SINGLE,), "mixed", "single"),
    ],
    ids=str,
)
def test_the_mig_strategy_of_a_cluster(nodes: tuple[Mapping[str, str], ...], before: str | None, strategy: str) -> None:
    """What is offered now; mixed where both are; what it was where nothing is, and mixed at first."""
    assert platform_detection.mig_strategy(DETECTOR.all(cluster(*nodes)), before) == strategy


# --- laws --------------------------------------------------------------------------------------------------------------

KEYS = sorted(platform_detection.node_keys(CATALOG))
PAIRS = sorted({pair for labels in (T4, PLAIN, NODEGROUP, GPU_GROUP, DISCOVERED, SINGLE, MIXED) for pair in labels.items()})
LABELS = st.one_of(
    st.lists(st.sampled_from(PAIRS), max_size=6).map(dict),
    st.dictionaries(
        st.sampled_from(KEYS) | st.text(max_size=5), st.sampled_from(["", "true", "0", "auto", "p4d.24xlarge", "x"]), max_size=6
    ),
)
POOLS = st.builds(
    NodePool,
    st.sampled_from(["karpenter.k8s.aws", "eks.amazonaws.com", "karpenter.azure.com", "karpenter.kwok.sh", ""]),
    st.lists(
        st.tuples(st.sampled_from([CATEGORY, FAMILY, "x"]), st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", ""]),
                  st.lists(st.sampled_from(["g", "m", "N", "D"]), max_size=2).map(tuple)), max_size=2,
    ).map(tuple),
)  # fmt: skip


@given(nodes=st.lists(LABELS, max_size=6), pools=st.lists(POOLS, max_size=3), gone=st.sets(st.integers(0, 5)), seed=st.integers())
@examples(120, 20_000)
def test_what_is_said_has_no_order_and_loses_nothing(nodes: list[dict[str, str]], pools: list[NodePool], gone: set[int], seed: int) -> None:
    """Replicas that see the same say the same; with fewer nodes, what was certain still is; names come in the catalog's order."""
    facts = cluster(*nodes, pools=pools)
    seen = DETECTOR.all(facts)
    shuffled = list(seen) * 2
    random.Random(seed).shuffle(shuffled)
    assert DETECTOR.platforms(shuffled) == DETECTOR.platforms(seen)
    assert platform_detection.mig_strategy(shuffled) == platform_detection.mig_strategy(seen) in ("single", "mixed")
    certain = DETECTOR.certain(seen)
    fewer = DETECTOR.all(cluster(*(labels for i, labels in enumerate(nodes) if i not in gone)))
    later = DETECTOR.platforms(fewer, certain)
    assert set(later) >= set(certain)
    assert list(later) == [name for name in CATALOG.platforms if name in later]


@given(labels=LABELS)
@examples(120, 20_000)
def test_the_labels_that_are_kept_are_enough(labels: dict[str, str]) -> None:
    """A node whose other labels were dropped is seen as before, by all that reads labels of nodes."""
    entry, *_ = read_facts("Node", {"metadata": {"name": "n", "labels": labels}}, platform_detection.node_keys(CATALOG))
    assert DETECTOR.of_node(entry.value) == DETECTOR.of_node(labels)
    assert platform_detection.home(CATALOG, entry.value) == platform_detection.home(CATALOG, labels)


def keys_of_tables(catalog: Catalog) -> set[str]:
    """Every label that a row of any table may have: all that judging a known node looks at."""
    tables = [build(PolicySet(), catalog, mig_strategy=strategy).tables for strategy in ("single", "mixed")]
    return {key for table in itertools.chain(*(t.values() for t in tables)) for key in table.values}


def test_the_labels_that_are_kept_are_all_that_tables_have() -> None:
    """A key that was dropped would say nothing of a known node, in silence."""
    assert keys_of_tables(CATALOG) <= set(KEYS)
    assert len(KEYS) < 200


def test_few_things_are_seen_of_many_nodes() -> None:
    """Whoever counts them counts tens, not thousands."""
    many = (DETECTOR.of_node({**labels, "kubernetes.io/hostname": str(i)}) for i in range(1_000) for labels in (T4, PLAIN, MIXED))
    assert len(set(many)) == 3


@pytest.mark.parametrize(
    ("written", "note"),
    [
        ('{"gpuPools": {"a/b": "g"}}', 'platforms.gfd.gpuPools["a/b"]: must be a list, found the text "g"; write a/b: [g]'),
        ('{"nodeClasses": "g"}', 'platforms.gfd.nodeClasses: must be a list, found the text "g"; write nodeClasses: [g]'),
        ('{"notWith": [1]}', "platforms.gfd.notWith[2]: must be text, found the number 1; write it in quotes"),
        ('{"anchorValue": 1}', "platforms.gfd.anchorValue: must be text, found the number 1; write it in quotes"),
        ('{"nodeClass": ["g"]}', 'platforms.gfd.nodeClass: unknown field "nodeClass"; did you mean "nodeClasses"?'),
    ],
)
def test_a_mistake_in_what_tells_a_platform_is_told_with_its_place(written: str, note: str) -> None:
    """As of every other field of a --catalog file."""
    with pytest.raises(CatalogError) as caught:
        catalog_with(f'[{{"platforms": {{"gfd": {written}}}}}]')
    assert [one.partition("overlay 1: ")[2] or one for one in caught.value.notes] == [note]
