"""Random pods made odder: what admission meets beyond the pods that rules are about."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from tests.support.generators.random_fields import chance
from tests.support.generators.random_pods import pod
from tests.support.generators.random_worlds import World, world

Raw = dict[str, Any]

NAMES = (
    "nvidiaxcom/gpu",
    "nvidia.com/gpumem",
    "xnvidia.com/gpu",
    "nvidia.com/gpux",
    "nvidia.com/gpu.",
    "NVIDIA.com/gpu",
    "nvidia.com/mig-1g.10gbx",
    "nvidia.com/mig-1gx10gb",
    "xnvidia.com/mig-1g.10gb",
    "nvidia.com/mig-1g.10gb.me.all",
    "amd.com/cpx_nps4x",
    "aws.amazon.com/neuroncores",
    "aws.amazon.com/neuroncore",
    "deviceclass.resource.kubernetes.io/",
    "deviceclassxresource.kubernetes.io/gpu",
    "vpc.amazonaws.com/efa",
    "hugepages-2Mi",
    "nvidia.com/GPU",
    "gpu",
)
ZEROS = ("0", "0m", "0e3", "-0", "0.000", 0, "0Ki")
"""The API server writes each as "0"."""
_NULLABLE = (
    ("metadata", "annotations"),
    ("metadata", "labels"),
    ("metadata", "ownerReferences"),
    ("spec", "initContainers"),
    ("spec", "resourceClaims"),
    ("spec", "tolerations"),
    ("spec", "nodeSelector"),
)


def odd_pod(random: Random, *, canonical: bool) -> Raw:
    """``canonical``: zero amounts as the API server writes them."""
    found = copy.deepcopy(pod(random, world(random) if chance(random, 0.02) else _WORLD))
    for container in _containers(found):
        _resources(random, container, ZEROS[:1] if canonical else ZEROS)
    spec, metadata = found["spec"], found["metadata"]
    if chance(random, 0.1):
        metadata.setdefault("annotations", {})[random.choice(("gpu-fraction", "gpu-memory", "gpu-fractions"))] = "0.5"
    if chance(random, 0.04):
        metadata.setdefault("annotations", {})["kubernetes.io/config.mirror"] = "x"
    if chance(random, 0.08):
        spec["resourceClaims"] = [{"name": "g", "resourceClaimName": "g"}] if chance(random, 0.7) else []
    if chance(random, 0.05) and "initContainers" in spec:
        spec["containers"] = random.choice(([], None))
    for parent, key in _NULLABLE:
        if chance(random, 0.05):
            found[parent][key] = None
    if chance(random, 0.02):
        found.pop("metadata")
    return found


_WORLD: World = world(Random(0))


def _containers(found: Raw) -> list[Raw]:
    return [*(found["spec"].get("initContainers") or ()), *found["spec"]["containers"]]


def _resources(random: Random, container: Raw, zeros: tuple[object, ...]) -> None:
    if chance(random, 0.25):
        container.pop("resources", None)
    if chance(random, 0.3):
        side = container.setdefault("resources", {}).setdefault(random.choice(("limits", "requests")), {})
        side[random.choice(NAMES)] = random.choice(("1", "1", *zeros))
    for side in ("limits", "requests"):
        amounts = container.get("resources", {}).get(side, {})
        for name in amounts:
            if chance(random, 0.12):
                amounts[name] = random.choice(zeros)
        if chance(random, 0.06):
            container.setdefault("resources", {})[side] = None
    if chance(random, 0.04):
        container["resources"] = None
