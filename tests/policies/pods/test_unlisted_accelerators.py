"""Which names of resources look like accelerators, and which of a cluster's stand in no list."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import Resource
from policies.facts.cluster_facts import ClusterFacts
from policies.pods.unlisted_accelerators import WORD, is_extended, is_part, looks_like_one, may_contain_name, overlooked, unknown
from tests.support.generators.random_worlds import catalog

LIKE = [
    "acme.example/gpu", "acme.example/vgpu", "gpu.acme.example/card", "acme.example/gpu-shared", "tencent.com/vcuda-core",
    "huawei.com/Ascend910", "cambricon.com/mlu370", "cambricon.com/vmlu", "hygon.com/dcunum", "enflame.com/shared-gcu",
    "nvidia.com/GA102GL_A10", "nvidia.com/GRID_T4-2Q", "team.example/mig-large", "acme.example/npu", "google.com/tpu-v6", "x.io/xpu",
    "vpu.intel.com/hddl", "gpu.intel.com/dxg", "npu.intel.com/accel", "aliyun.com/gpu-mem", "volcano.sh/vgpu-number",
    "mthreads.com/vgpu", "koordinator.sh/gpu.shared",
]  # fmt: skip
UNLIKE = [
    "vpc.amazonaws.com/efa", "rdma/hca_shared_devices_a", "nvidia.com/hostdev", "nvidia.com/mlnxnics", "nvidia.com/gpumem",
    "nvidia.com/gpucores",
    "nvidia.com/rdma_shared_device_a", "intel.com/intel_sriov_netdevice", "qat.intel.com/generic", "smarter-devices/fuse",
    "github.com/fuse",
    "example.com/migration", "example.com/cputime", "example.com/input", "example.com/output", "xilinx.com/fpga-card",
    "devices.kubevirt.io/kvm",
    "gpu.intel.com/millicores", "hygon.com/gpumem", "ampere.example/config",
]  # fmt: skip


@pytest.mark.parametrize("name", LIKE)
def test_what_looks_like_one(name: str) -> None:
    """By a word of its own, or by the domain of who makes nothing else."""
    assert looks_like_one(name, catalog())


@pytest.mark.parametrize("name", UNLIKE)
def test_what_does_not(name: str) -> None:
    """Network cards, parts of a device, words that only hold such letters."""
    assert not looks_like_one(name, catalog())


_PIECES = [*"gntpusaBcCdmlvxhi9-/.", "gpu", "GPU", "npu", "input", "output", "tpu", "dcu", "gcu", "num", "mig", "cuda", "vcuda", "Gaudi"]
_PIECES += ["neuron", "core", "device", "ascend", "accelerator", "trainium", '"', "ü"]


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_a_text_contains_a_name_where_the_expression_finds_one(text: str) -> None:
    """The search by parts of names answers as the expression does."""
    assert may_contain_name(text.encode()) == (re.search(WORD.encode(), text.encode().lower()) is not None)


def test_a_text_with_too_many_parts_of_names_is_taken_to_contain_one() -> None:
    """Nobody makes the search slow, or escapes it, by repeating a part of a name."""
    assert not may_contain_name(b"input " * 1_999)
    assert may_contain_name(b"input " * 2_000)


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        ("a.b/c", True),
        ("deviceclass.resource.kubernetes.io/gpu", True),
        ("gpu", False),
        ("kubernetes.io/gpu", False),
        ("requests.a.b/c", False),
        ("a.b/c/d", False),
        ("a.b/" + "x" * 64, False),
        ("A.b/c", False),
        ("a.b/c\n", False),
        ("a" * 400 + "/b", False),
    ],
)
def test_what_a_pod_can_ask_for_as_an_extended_resource(name: str, *, extended: bool) -> None:
    """A domain of somebody's own and a name."""
    assert is_extended(name) == extended


def test_what_stands_in_no_list() -> None:
    """On nodes by how it looks; on DeviceClasses by the driver, whatever it looks like."""
    resources = {"nvidia.com/gpu": "8", "cpu": "8", "acme.example/gpu": "4", "rdma/hca": "1", "acme.example/card": "1"}
    classes = {
        "gpus": ("gpu.nvidia.com", "team.example/big"),
        "nics": ("dra.net", "team.example/nic"),
        "odd": ("", "odd.example/x"),
        "no": ("a", ""),
    }
    facts = ClusterFacts.from_objects(
        [
            {"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": resources, "allocatable": {"x.example/npu": "0"}}},
            *(
                {
                    "kind": "DeviceClass",
                    "metadata": {"name": name},
                    "spec": {
                        "selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}] if driver else [],
                        "extendedResourceName": extended,
                    },
                }
                for name, (driver, extended) in classes.items()
            ),
        ]
    )
    assert overlooked(facts, catalog()) == ("acme.example/gpu", "odd.example/x", "team.example/big", "x.example/npu")


def test_nothing_is_overlooked_where_nothing_is_known() -> None:
    """An empty cluster."""
    assert overlooked(ClusterFacts(), catalog()) == ()


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("aliyun.com/gpu-mem", True),
        ("koordinator.sh/gpu-memory-ratio", True),
        ("aliyun.com/gpu-core.percentage", True),
        ("tencent.com/vcuda-core", True),
        ("hygon.com/dcumem", True),
        ("hygon.com/dcunum", False),
        ("huawei.com/Ascend910", False),
        ("aws.amazon.com/neuroncore", False),
    ],
)
def test_what_is_a_part_of_a_device(name: str, *, part: bool) -> None:
    """Gibibytes and percents are no number of devices; what the catalog knows is counted as it says."""
    known = catalog().resource(name)
    assert is_part(known or Resource(name=name, vendor="", kind="other")) is part


def test_a_name_in_no_list_is_told_with_what_to_type() -> None:
    """Within 200 characters, for the longest that vendors use."""
    message = str(unknown("huawei.com/Ascend910C-memory"))
    assert "which is not in the catalog" in message
    assert "--catalog FILE" in message
    assert len(message) <= 200
