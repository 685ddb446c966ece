"""Requirements that Karpenter cannot read; what those that it reads mean is shown in tests/kube/upstream. And what machines have for
pods."""

from __future__ import annotations

import pytest

from kube.karpenter import MachineSize, NodeClass, allocatable, capacity, read_node_class, requirement


def test_what_cannot_be_read_is_none() -> None:
    """An unknown operator, and a bound that is no number."""
    assert requirement("Near", ("a",)) is None
    assert requirement("Gt", ("a",)) is None
    assert requirement("Gt", ()) is None


GIB = 2**30


@pytest.mark.parametrize(
    ("size", "family", "cpu", "memory"),
    [
        (MachineSize(8, 32768, 58), "al2023", 7910, 29317),
        (MachineSize(64, 524288, 737), "al2023", 63770, 476504),
        (MachineSize(4, 8192, 58, arm=True), "al2", 3920, 6525),
        (MachineSize(192, 2097152, 100), "bottlerocket", 191450, 1938410),
    ],
)
def test_a_machine_has_for_pods_what_karpenter_lists(size: MachineSize, family: str, cpu: int, memory: int) -> None:
    """The list of instance types of Karpenter's documentation, of g5.2xlarge, g6e.16xlarge, g5g.xlarge and p5.48xlarge."""
    found = allocatable(size, NodeClass(family=family))
    assert found["cpu"] == (cpu, cpu)
    assert found["memory"][0] == memory * 2**20
    assert found["memory"][0] < found["memory"][1] < size.memory_mib * 2**20
    assert found["ephemeral-storage"][0] == 17 * GIB
    assert found["pods"] == (size.pods, size.pods)


def test_an_ec2nodeclass_changes_what_a_machine_has() -> None:
    """What the kubelet keeps, when it evicts, how many pods it takes, and the volume on which they keep files."""
    kubelet = {
        "maxPods": 200,
        "podsPerCore": 10,
        "kubeReserved": {"cpu": "1", "memory": "2Gi"},
        "systemReserved": {"memory": "1Gi"},
        "evictionHard": {"memory.available": "5%", "nodefs.available": "10Gi"},
    }
    mappings = [{"deviceName": "/dev/sdb", "ebs": {"volumeSize": "1Ti"}}, {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "100Gi"}}]
    spec = {"amiSelectorTerms": [{"alias": "al2023@latest"}], "kubelet": kubelet, "blockDeviceMappings": mappings}
    node_class = read_node_class({"spec": spec})
    size = MachineSize(8, 32768, 58)
    found = allocatable(size, node_class)
    estimate = capacity(size, node_class)["memory"][0]
    assert node_class.readable
    assert found["pods"] == (80, 80)
    assert found["cpu"] == (7000, 7000)
    assert found["memory"][0] == estimate - 3 * GIB - -(-estimate // 20)
    assert found["ephemeral-storage"] == (89 * GIB, 89 * GIB)


def test_what_a_node_class_leaves_open_is_not_known() -> None:
    """Expressions, and local disks of any size; of an unknown machine also how many pods it takes."""
    assert not read_node_class({"spec": {"kubelet": {"maxPods": "default_enis * 2"}}}).readable
    assert not read_node_class({"spec": {"kubelet": {"kubeReserved": {"cpu": "vcpus * 10"}}}}).readable
    assert not read_node_class({"spec": {"kubelet": {"evictionHard": {"memory.available": "x%"}}}}).readable
    assert "ephemeral-storage" not in allocatable(MachineSize(8, 32768, 58), read_node_class({"spec": {"instanceStorePolicy": "RAID0"}}))
    assert allocatable(MachineSize(8, 32768, None), NodeClass()).keys() == {"cpu", "ephemeral-storage"}
    assert capacity(MachineSize(8, 32768, 58), read_node_class({"spec": {"amiFamily": "Windows2022"}}))["pods"] == (110, 110)
    assert read_node_class({"spec": {"amiFamily": "Custom", "blockDeviceMappings": [{"ebs": {"volumeSize": "9Gi"}}]}}).volume == 9 * GIB
