"""Claims by which somebody tries to get a device that policies do not allow, or more of them."""

from __future__ import annotations

from typing import Any

from policies.claims import cel
from policies.claims.claim_request import EXTENDED
from tests.support.generators.written_claims import claim, exactly, first_of

Raw = dict[str, Any]
REQUIRE: Raw = {
    "families": {"in": ["hopper"]},
    "sharing": ["Exclusive"],
    "gpusPerPod": {"max": 4},
    "tolerations": {"forbid": [{"key": "maintenance"}]},
}
"""Under which they are tried"""
_OF_NVIDIA = 'device.attributes["gpu.nvidia.com"]'
FAMILY, TYPE = (
    f'device.driver == "gpu.nvidia.com" && has({_OF_NVIDIA}.{name}) && {_OF_NVIDIA}.{name} in {listed}'
    for name, listed in (("architecture", '["Hopper"]'), ("type", '["gpu", "vfio"]'))
)
"""What an honest claim gets"""


def saying(*texts: Any, device_class: str = "gpu.nvidia.com", **more: Any) -> Raw:
    """A request with these selectors."""
    return exactly(device_class, selectors=[{"cel": {"expression": text}} for text in texts], **more)


def with_spec(made: Raw, **more: Any) -> Raw:
    return {**made, "spec": {**made["spec"], "devices": {**made["spec"]["devices"], **more}}}


def with_metadata(made: Raw, **more: Any) -> Raw:
    return {**made, "metadata": {**made["metadata"], **more}}


MANY = tuple(f"device.driver != 'no-{number}'" for number in range(40))
CONSTRAINED = [{"requests": ["gpu"], "matchAttribute": "gpu.nvidia.com/architecture"}]
DISTINCT = [{"requests": ["gpu"], "distinctAttribute": "gpu.nvidia.com/architecture"}]
PLACE = "/spec/devices/requests/0/exactly/selectors/0"
TIME_SLICED = {"driver": "gpu.nvidia.com", "parameters": {"kind": "GpuConfig", "sharing": {"strategy": "TimeSlicing"}}}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": "0a1b2c3d-0000-4000-8000-00000000f0f0", "controller": True}

DENIED: dict[str, tuple[Raw, str]] = {
    "a way by another vendor's class": (claim(first_of(exactly(), exactly("gpu.amd.com"))), "BERTH-126"),
    "a way by a class of slices": (claim(first_of(exactly(), exactly("mig.nvidia.com"))), "BERTH-126"),
    "the last of eight ways by a class that nobody knows": (claim(first_of(*[exactly()] * 7, exactly("acme"))), "BERTH-126"),
    "a class that nobody knows": (claim(exactly("acme")), "BERTH-126"),
    "a driver of which no model is known": (claim(exactly("tpu.google.com")), "BERTH-126"),
    "no class at all": (claim({"name": "gpu", "exactly": {}}), "BERTH-126"),
    "a class at the place that it had before": (claim({"name": "gpu", "deviceClassName": "gpu.amd.com"}), "BERTH-126"),
    "all that there are": (claim(exactly(count=None, allocationMode="All")), "BERTH-111"),
    "all, in the last way": (claim(first_of(exactly(), exactly(count=None, allocationMode="All"))), "BERTH-111"),
    "a mode that nobody knows yet": (claim(exactly(count=None, allocationMode="AtMost")), "BERTH-111"),
    "a mode that nobody knows yet, with a count": (claim(exactly(allocationMode="AtLeast")), "BERTH-111"),
    "requests that add up": (claim(*({**exactly(), "name": f"gpu-{number}"} for number in range(5))), "BERTH-111"),
    "a count that is no number": (claim({"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": "1"}}), "BERTH-111"),
    "devices that others hold": (claim(exactly(adminAccess=True)), "BERTH-116"),
    "every taint tolerated": (claim(exactly(tolerations=[{"operator": "Exists"}])), "BERTH-131"),
    "a taint tolerated in one way": (
        claim(first_of(exactly(), exactly(tolerations=[{"key": "maintenance", "operator": "Exists"}]))),
        "BERTH-131",
    ),
    "no room for what is required": (claim(saying(*MANY[:32])), "BERTH-127"),
    "room for a part of what is required": (claim(saying(*MANY[:31])), "BERTH-127"),
    "no room in one way": (claim(first_of(exactly(), saying(*MANY[:32]))), "BERTH-127"),
    "a claim as if kube-scheduler had made it": (with_metadata(claim(exactly(count=8)), annotations={EXTENDED: "true"}), "BERTH-111"),
    "a claim as if it were generated": (
        with_metadata(claim(exactly(count=8)), annotations={"resource.kubernetes.io/pod-claim-name": "gpu"}, ownerReferences=[OWNER]),
        "BERTH-111",
    ),
    "a claim with an allocation of its own": (
        {**claim(exactly(count=8)), "status": {"allocation": {"devices": {"results": []}}}},
        "BERTH-111",
    ),
    "another request beside one of network cards": (
        claim({**exactly("nics", count=8), "name": "nic"}, exactly("gpu.amd.com")),
        "BERTH-126",
    ),
    "a template of many": (claim(exactly(count=8), template=True), "BERTH-111"),
    "an older version": (claim({"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 8}, api="v1beta1"), "BERTH-111"),
    "an older version, with a way": (claim(first_of(exactly(), exactly(count=8)), api="v1beta1"), "BERTH-111"),
}
CONFINED: dict[str, Raw] = {
    "an honest one": claim(exactly()),
    "a template": claim(exactly(), template=True),
    "an older version": claim({"name": "gpu", "deviceClassName": "gpu.nvidia.com"}, api="v1beta1"),
    "a selector of everything": claim(saying("true || false")),
    "what is required, or anything": claim(saying(f"{FAMILY} || true", f"true || {TYPE}")),
    "what is required, in a comment": claim(saying(f"true // {FAMILY}", f"true // && {TYPE}")),
    "what is required, as a text": claim(saying(f"'{FAMILY}' != ''")),
    "what is required, turned round": claim(saying(f"!({FAMILY})")),
    "what is required, where it is not asked": claim(saying(f"true ? true : {FAMILY}")),
    "what is required, with one space more": claim(saying(FAMILY.replace(" in ", "  in "), f"{TYPE} ")),
    "what is required of another driver": claim(saying(FAMILY.replace('driver == "gpu.nvidia.com"', 'driver == "gpu.amd.com"'))),
    "what is required of another domain": claim(saying(FAMILY.replace('attributes["gpu.nvidia.com"]', 'attributes["mine.example.com"]'))),
    "a longer list, written as policies write it": claim(saying(FAMILY.replace('["Hopper"]', '["Hopper", "Turing"]'))),
    "letters as escapes": claim(saying(FAMILY.replace("Hopper", "\\u0048opper"))),
    "another type, written as policies write it": claim(saying(TYPE.replace('["gpu", "vfio"]', '["gpu", "mig", "vfio"]'))),
    "in one way alone": claim(first_of(saying(FAMILY, TYPE), exactly(), saying("true"))),
    "selectors that are no texts": claim(saying(None, 7)),
    "a selector of a kind that is not known yet": claim(exactly(selectors=[{"cue": {"expression": FAMILY}}])),
    "selectors as long as they may be": claim(saying(*("true".ljust(cel.LONGEST) for _ in range(30)))),
    "what policies wrote, said to be there": with_metadata(
        claim(exactly()),
        annotations={"berth.dev/applied": f'[{{"path": "{PLACE}", "is": "{0:064}", "rule": "device_selectors"}}]'},
    ),
    "a constraint on the architecture": with_spec(claim(exactly(count=2)), constraints=CONSTRAINED),
    "architectures that must differ": with_spec(claim(exactly(count=2)), constraints=DISTINCT),
    "an attribute of the claim's own, called as the driver's": with_spec(
        claim(exactly(derivedAttributes=[{"name": "gpu.nvidia.com/architecture", "expression": '"Hopper"'}])), constraints=CONSTRAINED
    ),
    "a part of a device's capacity": claim(exactly(capacity={"requests": {"memory": "1Gi"}})),
    "a class of any type": claim(exactly("any.nvidia")),
    "a class that selects another model": claim(exactly("h100")),
    "a configuration of the driver": with_spec(claim(exactly()), config=[{"requests": ["gpu"], "opaque": TIME_SLICED}]),
}
