"""Class 0b, and quantities of 0e: one amount voids the rest, or is read more narrowly than the API server reads it.

Names of Kubernetes' own domain (``deviceclass.resource.kubernetes.io/``, ``alpha.kubernetes.io/nvidia-gpu``) are no extended resources to
the API server: it stores fractions of them, requests without limits, and limits that are not the request.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.e2e.bypasses.guardrails import asking, with_
from tests.e2e.bypasses.way import Way, creates
from tests.e2e.workloads import NVIDIA, gpus
from tests.testcluster.controlplane.api import Raw

DRA, OLD = "deviceclass.resource.kubernetes.io/ways-gpu", "alpha.kubernetes.io/nvidia-gpu"
ODD: dict[str, Raw] = {
    "half of a DRA resource": gpus(name=DRA) | {"limits": {DRA: "500m"}},
    "1.5 of a DRA resource": {"limits": {DRA: "1.5"}},
    "a nanodevice": {"limits": {DRA: "1n"}},
    "half requested, one allowed": {"limits": {DRA: "1"}, "requests": {DRA: "500m"}},
    "half requested, no limit": {"requests": {DRA: "500m"}},
    "half of a name from before device plugins": {"limits": {OLD: "500m"}},
    "half of a class that nobody knows": {"limits": {"deviceclass.resource.kubernetes.io/nobody": "500m"}},
    "more than an int64": {"limits": {DRA: "1e30"}},
}
MANY: dict[str, Raw] = {
    "1e3": gpus(name=NVIDIA) | {"limits": {NVIDIA: "1e3"}},
    "8k": {"limits": {NVIDIA: "8k"}},
    "1Ki": {"limits": {NVIDIA: "1Ki"}},
    "8000m": {"limits": {NVIDIA: "8000m"}},
    "0.008k": {"limits": {NVIDIA: "0.008k"}},
    "80e-1": {"limits": {NVIDIA: "80e-1"}},
    "+8": {"limits": {NVIDIA: "+8"}},
    "9E": {"limits": {NVIDIA: "9E"}},
    "8 and seventy zeros": {"limits": {NVIDIA: f"8.{'0' * 70}"}},
    "more than an int64": {"limits": {NVIDIA: "1e30"}},
    "8 of a DRA resource": gpus(8, DRA),
    "8 of a DRA resource, requested alone": {"requests": {DRA: "8"}},
    "8 of a DRA resource, 1 of them requested": {"requests": {DRA: "1"}, "limits": {DRA: "8"}},
}


def init(*resources: Raw, always: bool = False) -> list[Raw]:
    """``spec.initContainers``."""
    more = {"restartPolicy": "Always"} if always else {}
    return [{"name": f"i{n}", "image": "registry.example/init:1", "resources": one, **more} for n, one in enumerate(resources)]


def _beside() -> Iterator[Way]:
    """Eight GPUs, and beside them an amount of something else."""
    for name, odd in ODD.items():
        for where, attack in _wheres(odd):
            twin = creates(asking(gpus(2), gpus(2)))
            yield Way(name=f"{name}, {where}", guard="max", attack=creates(attack), twin=twin)
        yield Way(name=f"{name}, {where}", guard="one-of", attack=creates(attack), twin=twin)
        long = with_(attack, terminationGracePeriodSeconds=3600)
        yield Way(name=f"{name}, {where}", guard="large", attack=creates(long), twin=creates(asking(gpus(4))))


def _wheres(odd: Raw) -> Iterator[tuple[str, Raw]]:
    both = {side: {**amounts, NVIDIA: "8"} for side, amounts in odd.items()}
    both.setdefault("limits", {})[NVIDIA] = "8"
    yield "in the same container", asking(both)
    yield "in another container", asking(gpus(8), odd)
    yield "in an init container", with_(asking(gpus(8)), initContainers=init(odd))


def _many() -> Iterator[Way]:
    """More than may be, as somebody might not read it."""
    for name, resources in MANY.items():
        yield Way(name=name, guard="max", attack=creates(asking(resources)), twin=creates(asking(gpus(4))))
    spread: dict[str, Raw] = {
        "five containers of one": asking(*[gpus()] * 5),
        "an init container": with_(asking(gpus()), initContainers=init(gpus(8))),
        "sidecars": with_(asking(gpus()), initContainers=init(gpus(2), gpus(2), always=True)),
        "a sidecar before an init container": with_(asking(gpus()), initContainers=[*init(gpus(2), always=True), *init(gpus(3))[:1]]),
        "two vendors": asking(gpus(3), gpus(3, "amd.com/gpu")),
        "GPUs and DRA resources": asking(gpus(3), gpus(3, DRA)),
    }
    spread["a sidecar before an init container"]["spec"]["initContainers"][1]["name"] = "later"
    for name, made in spread.items():
        yield Way(name=f"spread over {name}", guard="max", attack=creates(made), twin=creates(asking(gpus(2), gpus(2))))


def _equal() -> Iterator[Way]:
    for name in (
        "half of a DRA resource",
        "1.5 of a DRA resource",
        "a nanodevice",
        "half requested, one allowed",
        "half requested, no limit",
    ):
        twin = creates(asking(gpus(1, DRA)))
        yield Way(name=name, guard="equal", attack=creates(asking(ODD[name])), twin=twin)
        yield Way(name=f"{name}, beside a GPU", guard="equal", attack=creates(asking(gpus(), ODD[name])), twin=twin)
    unequal: Raw = {"requests": {DRA: "1"}, "limits": {DRA: "2"}}
    for where, always in (("an init container", False), ("a sidecar", True)):
        attack, twin = (creates(with_(asking(gpus(1, DRA)), initContainers=init(one, always=always))) for one in (unequal, gpus(1, DRA)))
        yield Way(name=f"twice the request in {where}", guard="equal", attack=attack, twin=twin)


WAYS = (*_beside(), *_many(), *_equal())
