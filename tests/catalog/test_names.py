"""Names that node software and people make up: which resources are accelerators, and which taints Berth never tolerates."""

from __future__ import annotations

import pytest

from catalog.names import CatalogNames
from policies.state.snapshot import Lookalikes
from tests.support.cases import golden

CATALOG = golden.catalog_with()

NETWORK = [
    "roce",
    "RoCE_GDR",
    "mlnx_sriov_netdevice",
    "ib_sriov",
    "IB_SRIOV",
    "rdma_shared_device_a",
    "hostdev1",
    "cx7_qsfp",
    "bf3-p0-vfs",
    "rdma_vf",
    "mlnxnics",
    "mlx5_0",
    "resibp24s0",
    "ibp24s0",
    "enp1s0f0",
    "eth0",
    "p0_vf",
    "vf-pool",
    "rail-1",
    "dpu_vf",
    "ConnectX7",
    "hca_shared_devices_a",
    "nvswitch",
    "GH100_H100_NVSwitch",
    "GH100_H100_NVSWITCH",
    "AD102_HIGH_DEFINITION_AUDIO_CONTROLLER",
    "priority",
]
"""names under nvidia.com/ of the examples of the network operator, of interfaces of hosts, and of other parts of boards"""

PASSTHROUGH = ["pgpu", "GA102GL_A10", "TU104GL_Tesla_T4", "TU104GL_TESLA_T4", "GH100_H100_SXM5_80GB", "GV100GL_Tesla_V100", "AD102GL_L40S"]
VIRTUAL = ["NVIDIA_A10-12Q", "GRID_T4-2B", "NVIDIA_RTX_Pro_6000_Blackwell_DC-1-12Q", "NVIDIA_A100-4-20C"]
OTHER = ["a100", "h100", "rtx-4090", "gpu-a100", "tesla-t4", "A100-SXM4-40GB", "gpu-small", "jetson", "mig-small"]


def kind(name: str) -> str | None:
    resource = CATALOG.resource(name) or Lookalikes(CATALOG).resource(name)
    return resource.kind if resource else None


@pytest.mark.parametrize("name", NETWORK)
def test_a_network_resource_of_nvidia_is_no_accelerator(name: str) -> None:
    """Whatever people call it, in whichever case."""
    assert kind(f"nvidia.com/{name}") is None


@pytest.mark.parametrize(
    ("name", "known"),
    [*((name, "passthrough") for name in PASSTHROUGH), *((name, "shared") for name in VIRTUAL), *((name, "other") for name in OTHER)],
)
def test_a_gpu_by_its_own_name_is_an_accelerator(name: str, known: str) -> None:
    """Passthrough GPUs by the name of their chip, virtual ones by that of their type, those that an administrator renamed as others."""
    assert kind(f"nvidia.com/{name}") == known


@pytest.mark.parametrize(
    "name",
    ["huawei.com/Ascend910B4-1-core", "huawei.com/Ascend910B2-memory", "enflame.com/gcu-core", "kunlunxin.com/vxpu-memory"],
)
def test_a_measure_of_a_part_is_no_device(name: str) -> None:
    """HAMi's shares in cores and memory stand beside the resource that counts."""
    assert kind(name) == "part"


@pytest.mark.parametrize(
    "key",
    [
        "karpenter.sh/disrupted",
        "karpenter.sh/rebooting",
        "sagemaker.amazonaws.com/node-health-status",
        "cloud.google.com/not-target-gke-version",
        "node.kubernetes.io/unreachable",
    ],
)
def test_a_taint_of_a_node_that_goes_away_is_never_tolerated(key: str) -> None:
    """A pod placed there would be taken away again."""
    assert CatalogNames(CATALOG).never_tolerated(key)
    assert not CatalogNames(CATALOG).never_tolerated("nvidia.com/gpu")


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("CronJob", "write Job"),
        ("cronjobs", "write Job"),
        ("Rollout", "write Deployment"),
        ("TrainJob", "write Job"),
        ("Pod", "remove workloads to match every pod"),
        ("Deploymnt", ""),
    ],
)
def test_a_kind_whose_pods_are_those_of_another_is_explained(name: str, written: str) -> None:
    """Its name matches no pod: the message names the kind that its pods show, and not the nearest spelling."""
    explained = CatalogNames(CATALOG).explain("workloads", name)
    assert explained.endswith(written)
    assert bool(explained) is bool(written)
    assert CatalogNames(CATALOG).explain("families", name) == ""
