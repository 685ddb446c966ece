"""Random claims, policies about devices, and devices as drivers publish them."""

from __future__ import annotations

from random import Random
from typing import Any

from catalog import Catalog, Gpu
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_requests import DeviceClass
from policies.state.snapshot import NamespaceFacts
from tests.support import snapshots
from tests.support.cases.golden import policies_of
from tests.support.generators.written_claims import claim

Raw = dict[str, Any]
VERSIONS = ("v1", "v1beta2", "v1beta1")
CLASSES = {
    "gpu.nvidia.com": DeviceClass("gpu.nvidia.com", "nvidia.com/gpu", (("gpu.nvidia.com/type", "gpu"),), plain=True),
    "mig.nvidia.com": DeviceClass("gpu.nvidia.com", "", (("gpu.nvidia.com/type", "mig"),), plain=True),
    "any.nvidia": DeviceClass("gpu.nvidia.com", "", (), plain=True),
    "h100": DeviceClass("gpu.nvidia.com", "", (("gpu.nvidia.com/productName", "NVIDIA H100"),), plain=True),
    "gpu.amd.com": DeviceClass("gpu.amd.com", "", (), plain=True),
    "gpu.intel.com": DeviceClass("gpu.intel.com", "", (), plain=True),
    "gaudi.intel.com": DeviceClass("gaudi.intel.com", "", (), plain=True),
    "nics": DeviceClass("dra.net", "", (), plain=True),
}
ACCELERATORS = tuple(name for name in CLASSES if name != "nics")
UNKNOWN = ("acme", "tpu.google.com", "vfio.gpu.nvidia.com")
"""Classes of which no fact is known."""
AUTHORS = (
    'device.attributes["gpu.nvidia.com"].productName == "NVIDIA L4"',
    'device.attributes["gpu.nvidia.com"].?addressingMode.orValue("") != "ATS"',
    'device.driver == "gpu.nvidia.com" && has(device.attributes["gpu.nvidia.com"].architecture) && '
    'device.attributes["gpu.nvidia.com"].architecture in ["Hopper"]',
)
"""Selectors of authors; the last is as policies write it."""
NVIDIA = ("A100-40GB", "A100-80GB", "H100-80GB", "L4", "T4", "A10", "H200")
MODELS = (*NVIDIA, "A100", "H100", "MI300X", "MI325X", "Flex-170", "Gaudi2", "A10-4GB")
FAMILIES = ("ampere", "hopper", "ada-lovelace", "turing", "cdna3", "dg2", "gaudi2")


def facts_of(random: Random, catalog: Catalog, policies: list[Raw], namespace: str = "ml") -> NamespaceFacts:
    """Under these policies, in an order of its own, in a cluster with all classes."""
    shuffled = random.sample(policies, len(policies))
    cluster = ClusterFacts(device_classes=CLASSES)
    return snapshots.build(policies_of(shuffled, catalog), catalog, platforms=("gfd",)).with_facts(cluster).facts_for(namespace)


def policies(
    random: Random, *, modes: tuple[str, ...] = ("Enforce",), defaults: bool = True, more: bool = True, name: str = "p"
) -> list[Raw]:
    """One to three, each about devices."""
    found = []
    for number in range(random.randint(1, 3)):
        own = random.random() < 0.3
        spec: Raw = {"mode": random.choice(modes)}
        if random.random() < 0.8 or not defaults:
            spec["require"] = require(random, more=more)
        if defaults and (random.random() < 0.4 or "require" not in spec):
            spec["default"] = default(random)
        metadata = {"name": f"{name}{number}", **({"namespace": "ml"} if own else {})}
        found.append({"kind": "GPUPolicy" if own else "ClusterGPUPolicy", "metadata": metadata, "spec": spec})
    return found


def require(random: Random, *, more: bool = True) -> Raw:
    """What is required of a device, and of how many."""
    found = machine(random)
    if random.random() < 0.4:
        found["sharing"] = random.sample(["Exclusive", "MIG", "TimeSliced"], random.randint(1, 2))
    if more and random.random() < 0.2:
        found["gpusPerPod"] = {"max": random.choice([4, 8])}
    if more and random.random() < 0.2:
        found["tolerations"] = {"forbid": [{"key": "maintenance"}]}
    return found or {"families": {"notIn": ["turing"]}}


def machine(random: Random) -> Raw:
    """Some of the fields of a machine."""
    found: Raw = {}
    if random.random() < 0.5:
        found["families"] = wanted(random, FAMILIES)
    if random.random() < 0.4:
        found["models"] = wanted(random, MODELS)
    if random.random() < 0.3:
        found["gpuMemory"] = random.choice([{"min": 40}, {"max": 80}, {"min": 16, "max": 80}])
    return found


def wanted(random: Random, names: tuple[str, ...]) -> Raw:
    """``in``, ``notIn`` or both."""
    some = random.sample(names, random.randint(1, 4))
    other = random.choice([name for name in names if name not in some])
    return random.choice([{"in": some}, {"notIn": some}, {"in": some, "notIn": [other]}])


def default(random: Random) -> Raw:
    """A default of a device."""
    if random.random() < 0.4:
        return {"mig": random.choice([{"slice": "10gb"}, {"slice": "20gb"}, {"usableMemory": "9.5Gi"}])}
    return machine(random) or {"models": {"in": ["L4"]}}


def any_claim(random: Random, classes: tuple[str, ...] = (*CLASSES, *UNKNOWN)) -> Raw:
    """A claim or template of any version, with oddities."""
    api = random.choice(VERSIONS)
    requests = [_request(random, api, classes, number) for number in range(random.randint(1, 3))]
    found = claim(*requests, api=api, template=random.random() < 0.4)
    if random.random() < 0.3:
        found["metadata"]["annotations"] = random.choice([{"team": "vision"}, {"berth.dev/applied": "mine"}, {"berth.dev/applied": "[]"}])
    if random.random() < 0.2:
        found["unknown"] = {"kept": [1, None, {"x": "y"}]}
    return found


def _request(random: Random, api: str, classes: tuple[str, ...], number: int) -> Raw:
    name = f"gpu-{number}"
    if random.random() < 0.3:
        return {"name": name, "firstAvailable": [{"name": f"way-{i}", **way(random, classes)} for i in range(random.randint(1, 3))]}
    return {"name": name, **way(random, classes)} if api == "v1beta1" else {"name": name, "exactly": way(random, classes)}


def way(random: Random, classes: tuple[str, ...]) -> Raw:
    """One way to satisfy a request."""
    found: Raw = {"deviceClassName": random.choice(classes)}
    match random.randint(0, 5):
        case 0:
            found |= {"allocationMode": "All"}
        case 1:
            found |= {"allocationMode": "ExactCount", "count": random.choice([1, 2, 5, 9])}
    if random.random() < 0.1:
        found["tolerations"] = [{"key": "maintenance", "operator": "Exists"}]
    if random.random() < 0.3:
        found["selectors"] = [{"cel": {"expression": text}} for text in random.sample(AUTHORS, random.randint(0, 2))]
    return found


# --- devices -----------------------------------------------------------------------------------------------------------


def device(random: Random, gpu: Gpu, catalog: Catalog, name: str) -> Raw | None:
    """A device of this model as its driver publishes it (a slice now and then); None if no name of it is known."""
    driver = next(driver for driver, vendor in catalog.dra_drivers.items() if vendor == gpu.vendor)
    published = catalog.published[driver]
    if not published.names(gpu):
        return None
    product = random.choice(published.names(gpu))
    sliced = bool(gpu.mig) and random.random() < 0.3
    profile = random.choice(gpu.mig) if sliced else None
    attributes = {published.model or "": product.replace("-", " ") if published.spaces else product}
    if published.family is not None and gpu.family in published.families:
        attributes[published.family] = random.choice(published.families[gpu.family])
    if published.type is not None:
        attributes[published.type] = published.sharing["MIG" if sliced else "Exclusive"][0]
    if published.profile is not None and profile is not None:
        attributes[published.profile] = profile.name
    memory = profile.memory_gb if profile is not None else gpu.memory_gb
    capacity = {published.memory: {"value": f"{memory}Gi"}} if published.memory is not None and memory is not None else {}
    return {"name": name, "driver": driver, "attributes": {k: {"string": v} for k, v in attributes.items()}, "capacity": capacity}
