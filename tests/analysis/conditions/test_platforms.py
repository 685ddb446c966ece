"""Fields that a platform can't say."""

from __future__ import annotations

from tests.analysis.conditions.found import found, message_of, policy


def test_what_a_platforms_nodes_do_not_have_is_named() -> None:
    """Platform and field."""
    text = message_of(
        found(policy("p", require={"instanceFamilies": {"notIn": ["p2"]}}), platforms=["karpenter-aws", "gfd"])["p"], "Inexpressible"
    )
    assert text == "gfd: spec.require.instanceFamilies (instanceFamilies notIn [p2]) cannot be expressed on this platform; ignored"


def test_what_no_list_of_values_selects_is_named() -> None:
    """Time-sliced GPUs have labels only after the node has come up, and a cloud makes no node for them."""
    one = found(
        policy("p", require={"sharing": ["TimeSliced", "Exclusive"]}),
        policy("q", require={"sharing": ["Exclusive"]}),
        platforms=["eks-nodegroup"],
    )
    assert not message_of(one["q"], "Inexpressible")
    text = message_of(found(policy("p", require={"sharing": ["TimeSliced"]}), platforms=["eks-nodegroup"])["p"], "Inexpressible")
    assert (
        text == "eks-nodegroup: spec.require.sharing (sharing [TimeSliced]) cannot be expressed with the labels of this platform; ignored"
    )


def test_a_part_that_can_be_said_is_told_apart() -> None:
    """On AKS only spot is labelled: of spot and reserved, spot is written."""
    text = message_of(found(policy("p", default={"capacity": ["spot", "reserved"]}), platforms=["aks"])["p"], "Inexpressible")
    assert text == "aks: spec.default.capacity (capacity [spot, reserved]) can be expressed only in part; Berth writes that part"


def test_without_platforms_nothing_is_written_and_nothing_said() -> None:
    """--platforms is missing, which the server says once."""
    assert not message_of(found(policy("p", require={"instanceFamilies": {"notIn": ["p2"]}}), platforms=[])["p"], "Inexpressible")


def test_labels_that_nobody_maintains_are_named_with_what_to_type() -> None:
    """A GPUCluster runs no GPU Feature Discovery, and no node shows that somebody else does."""
    since, labels = {"creationTimestamp": "2026-11-01T00:00:00Z"}, {"nvidia.com/gpu.present": "true"}
    stack = {"apiVersion": "nvidia.com/v1alpha1", "kind": "GPUCluster", "metadata": {"name": "c", **since}}
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}}
    wanted = policy("p", require={"families": {"in": ["ampere"]}})
    assert not message_of(found(wanted, bare, platforms=["gfd"])["p"], "Inexpressible")
    text = message_of(found(wanted, bare, stack, platforms=["gfd"])["p"], "Inexpressible")
    assert text.startswith(
        "gfd: spec.require.families (families in [ampere]) cannot be expressed with the labels of this platform; ignored; labels"
    )
    assert text.endswith("run it: helm install gfd nvdp/nvidia-device-plugin --set devicePlugin.enabled=false,gfd.enabled=true")
