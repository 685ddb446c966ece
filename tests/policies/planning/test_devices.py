"""What a pod asks for: every accelerator counts, and what nobody can count is open at the upper end."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from catalog import Resource
from kube.pod import ANY_NUMBER, NONE, ONE, CountInterval, Pod
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_requests import Claim, DeviceClass, RequestChoice
from policies.planning import devices
from policies.planning.devices import RequestedDevices
from tests.support.cases import golden
from tests.support.snapshots import build

CATALOG = golden.catalog_with()
CLASSES = {
    "gpu.nvidia.com": DeviceClass("gpu.nvidia.com"),
    "h100": DeviceClass("gpu.nvidia.com", "example.com/h100"),
    "odd": DeviceClass("", "example.com/odd"),
    "compute-domain": DeviceClass("compute-domain.nvidia.com", "example.com/domain"),
}
ONE_GPU = (RequestChoice("gpu.nvidia.com"),)
DOMAIN = (RequestChoice("compute-domain"),)


def asking(limits: dict[str, Any] | None = None, *claims: str, annotations: dict[str, Any] | None = None, **requests: Any) -> Pod:
    named = [{"name": name, "resourceClaimName": name} for name in claims]
    resources = {"limits": limits or {}, **({"requests": requests["requests"]} if requests else {})}
    return Pod(
        {"metadata": {"annotations": annotations or {}}, "spec": {"containers": [{"resources": resources}], "resourceClaims": named}}
    )


def read(pod: Pod, *, final: bool = False, **claims: Claim) -> RequestedDevices:
    known = {("ResourceClaim", "ml", name): claim for name, claim in claims.items()}
    cluster = ClusterFacts(device_classes=CLASSES, claims=known)
    return devices.read_devices(pod, build(golden.policies_of([], CATALOG), CATALOG, cluster=cluster).facts_for("ml"), final=final)


@pytest.mark.parametrize(
    ("name", "amount", "units", "whole"),
    [
        ("nvidia.com/gpu", 8, CountInterval(8, 8), CountInterval(8, 8)),
        ("nvidia.com/gpu.shared", 8, CountInterval(8, 8), CountInterval(8, 8)),
        ("aws.amazon.com/neuron", 8, CountInterval(8, 8), CountInterval(8, 8)),
        ("google.com/tpu", 8, CountInterval(8, 8), CountInterval(8, 8)),
        ("habana.ai/gaudi", 8, CountInterval(8, 8), CountInterval(8, 8)),
        ("amd.com/spx_nps1", 8, CountInterval(8, 8), CountInterval(8, 8)),
        ("amd.com/dpx_nps1", 8, CountInterval(8, 8), CountInterval(4, 4)),
        ("amd.com/cpx_nps4", 8, CountInterval(8, 8), CountInterval(1, 1)),
        ("amd.com/cpx_nps4", 48, CountInterval(48, 48), CountInterval(6, 8)),
        ("nvidia.com/mig-7g.80gb", 8, CountInterval(8, 8), CountInterval(8, 8)),
        ("nvidia.com/mig-1g.10gb", 1, CountInterval(1, 1), CountInterval(0, 0)),
        ("nvidia.com/mig-9g.999gb", 8, CountInterval(8, 8), CountInterval(0, 8)),
        ("example.com/h100", 8, CountInterval(8, 8), CountInterval(8, 8)),
        ("example.com/odd", 8, CountInterval(8, 8), CountInterval(8, 8)),
        ("deviceclass.resource.kubernetes.io/gpu.nvidia.com", 8, CountInterval(8, 8), CountInterval(8, 8)),
        ("nvidia.com/gpu", "$GPUS", ANY_NUMBER, ANY_NUMBER),
        ("nvidia.com/mig-1g.10gb", "$GPUS", ANY_NUMBER, ANY_NUMBER),
        ("aliyun.com/gpu-mem", 7, ONE, ONE),
        ("tencent.com/vcuda-core", 25, ONE, ONE),
        ("tencent.com/vcuda-core", 250, CountInterval(3, 3), CountInterval(3, 3)),
        ("koordinator.sh/gpu-core", "$CORES", ANY_NUMBER, ANY_NUMBER),
        ("huawei.com/Ascend910", 8, CountInterval(8, 8), CountInterval(8, 8)),
        ("example.com/domain", 8, NONE, NONE),
        ("cpu", 8, NONE, NONE),
    ],
)
def test_every_accelerator_counts(name: str, amount: Any, units: CountInterval, whole: CountInterval) -> None:
    """One each for ``match``; for ``gpusPerPod`` slices and partitions by the part of a device that they may be, rounded down."""
    found = read(asking({name: amount}))
    assert found.units == units
    assert found.whole(CATALOG) == whole


@pytest.mark.parametrize(
    ("containers", "count"),
    [
        ([{"volcano.sh/vgpu-number": 2, "volcano.sh/vgpu-memory": 4096}], 2),
        ([{"koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory-ratio": 100}], 1),
        ([{"koordinator.sh/gpu-core": 1, "koordinator.sh/gpu-memory-ratio": 400}], 4),
        ([{"aliyun.com/gpu-mem": 7}, {"aliyun.com/gpu-mem": 7}], 2),
        ([{"aliyun.com/gpu-mem": 7}, {"aliyun.com/gpu-count": 3}], 4),
        ([{"aliyun.com/gpu-mem": 7, "nvidia.com/gpu": 1}], 2),
    ],
    ids=str,
)
def test_parts_of_a_device_count_once_a_container(containers: list[dict[str, Any]], count: int) -> None:
    """By whichever part says the most; beside devices of the same maker for nothing more."""
    pod = {"spec": {"containers": [{"name": str(i), "resources": {"limits": amounts}} for i, amounts in enumerate(containers)]}}
    assert read(Pod(pod)).units == CountInterval(count, count)


def test_what_cannot_be_read_takes_nothing_from_the_rest() -> None:
    """Eight GPUs beside it are eight GPUs."""
    found = read(asking({"nvidia.com/gpu": 8, "amd.com/gpu": "$GPUS"}, "gone"))
    assert found.units == found.whole(CATALOG) == CountInterval(8, None)
    assert found.missing == (("ResourceClaim", "gone"),)


def test_slices_add_up_before_they_are_rounded() -> None:
    """Two halves are a GPU, in whatever names they come."""
    assert read(asking({"nvidia.com/mig-3g.40gb": 2})).whole(CATALOG) == ONE
    assert read(asking({"amd.com/dpx_nps1": 1, "nvidia.com/mig-3g.40gb": 1})).whole(CATALOG) == ONE


def test_a_share_is_known_as_far_as_models_agree() -> None:
    """By compute or by memory, whichever is more; of a slice of no known model it may be nearly nothing, or all."""
    shares = {name: devices.share(resource, CATALOG) for name in ("mig-7g.80gb", "mig-9g.999gb") if (resource := _resource(name))}
    assert shares == {"mig-7g.80gb": (Fraction(1), Fraction(1)), "mig-9g.999gb": (Fraction(0), Fraction(1))}
    assert devices.share(Resource(name="amd.com/gpu", vendor="amd", kind="gpu"), CATALOG) == (Fraction(1), Fraction(1))
    for profile, (least, most) in CATALOG.slice_shares.items():
        assert 0 < least <= most <= 1, profile


def _resource(name: str) -> Any:
    return CATALOG.resource(f"nvidia.com/{name}")


@pytest.mark.parametrize(
    ("requests", "count", "vendors"),
    [
        ((ONE_GPU,), ONE, {"nvidia"}),
        ((ONE_GPU, (RequestChoice("gpu.nvidia.com", 3, 3),)), CountInterval(4, 4), {"nvidia"}),
        (((RequestChoice("gpu.nvidia.com", 1, None),),), CountInterval(1, None), {"nvidia"}),
        (((RequestChoice("gpu.nvidia.com", 8, 8), RequestChoice("gpu.nvidia.com")),), CountInterval(1, 8), {"nvidia"}),
        (((RequestChoice("gpu.nvidia.com"), RequestChoice("gpu.nvidia.com", 1, None)),), CountInterval(1, None), {"nvidia"}),
        (((RequestChoice("gpu.nvidia.com", 8, 8), RequestChoice("compute-domain")),), CountInterval(0, 8), {"nvidia"}),
        (((RequestChoice("odd", 2, 2),),), CountInterval(2, 2), set()),
        (((RequestChoice("never-heard-of", 2, 2),),), CountInterval(2, 2), set()),
        ((DOMAIN,), NONE, set()),
        ((DOMAIN, ONE_GPU), ONE, {"nvidia"}),
        ((), NONE, set()),
    ],
)
def test_a_claim_counts_every_way_to_meet_it(requests: Claim, count: CountInterval, vendors: set[str]) -> None:
    """From the fewest devices to the most; devices of drivers that are known to be no accelerators are none, those of unknown ones are."""
    found = read(asking(None, "c"), c=requests)
    assert found.units == found.whole(CATALOG) == count
    assert found.vendors == vendors
    assert found.missing == ()


def test_a_claim_that_is_not_there_may_be_anything() -> None:
    """Named once, however often the pod names it."""
    found = read(asking(None, "gone", "gone"))
    assert found.units == ANY_NUMBER
    assert found.missing == (("ResourceClaim", "gone"),)
    assert [claim.vendors for claim in found.claimed] == [frozenset({""})]


def test_a_claim_that_a_pod_names_twice_is_one() -> None:
    """Of a template, each time that it is named makes another."""
    two: Claim = ((RequestChoice("gpu.nvidia.com", 2, 2),),)
    assert read(asking(None, "c", "c"), c=two).units == CountInterval(2, 2)


@pytest.mark.parametrize(
    ("annotations", "units", "whole"),
    [
        ({"gpu-fraction": "0.5"}, ONE, NONE),
        ({"gpu-memory": "2000"}, ONE, NONE),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "4"}, CountInterval(4, 4), CountInterval(4, 4)),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": 4}, CountInterval(4, 4), CountInterval(4, 4)),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"}, ONE, NONE),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "many"}, CountInterval(1, None), CountInterval(1, None)),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "9" * 5000}, CountInterval(1, None), CountInterval(1, None)),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "\u0664"}, CountInterval(1, None), CountInterval(1, None)),
        ({"gpu-fraction-num-devices": "4"}, NONE, NONE),
    ],
    ids=str,
)
def test_a_fraction_takes_a_part_of_as_many_devices_as_it_says(
    annotations: dict[str, Any], units: CountInterval, whole: CountInterval
) -> None:
    """Of one where it says nothing, which is less than a GPU; NVIDIA's alone are shared so."""
    found = read(asking(annotations=annotations))
    assert found.units == units
    assert found.whole(CATALOG) == whole
    assert found.vendors == ({"nvidia"} if units != NONE else set())


def test_of_dras_resources_request_and_limit_may_differ_in_the_end() -> None:
    """Until a repair can make them equal, the limit counts, as for every other."""
    pod = asking({"example.com/h100": "1"}, requests={"example.com/h100": "8"})
    assert read(pod).units == ONE
    assert read(pod, final=True).units == CountInterval(1, 8)
    other = asking({"nvidia.com/gpu": "1"}, requests={"nvidia.com/gpu": "8"})
    assert read(other, final=True).units == ONE


def test_what_is_asked_for_zero_times_is_not_asked_for() -> None:
    """Its name alone makes no GPU pod."""
    found = read(asking({"nvidia.com/gpu": "0", "amd.com/gpu": 1}))
    assert [a.resource.name for a in found.asked] == ["amd.com/gpu"]
    assert found.vendors == {"amd"}
