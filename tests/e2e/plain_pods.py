"""Pods that ask for no accelerator, in every shape on which a webhook's condition may stumble. Berth is to be called for none of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Raw = dict[str, Any]
NOBODY = "no-such-scheduler"
"""places them: they are created by the hundred, and no node need hold them"""
NEAR_MISSES = (
    "nvidia.com/gpumem",
    "nvidia.com/gpucores",
    "nvidia.com/gpu.memory",
    "nvidia.com/mig",
    "nvidia.com/migs-1g.10gb",
    "amd.example/gpumem",
    "aws.amazon.com/neuro",
    "gpu.intel.com/memory.max",
    "example.com/gpu",
    "d.example/n",
    "a.example/nvidia.com_gpu",
    "xnvidia.com/gpu",
    "nvidia.com.example/gpu",
)
"""resource names that look like an accelerator's and are none: shares of HAMi, labels, other vendors'. Those that begin as a pattern does
(``amd.com/gpumem``) are sent, as docs/operations.md says."""
ZEROS = ("0", 0, "0m", "0Ki", "0e3", "-0", "+0", "0.0")
"""amounts that ask for nothing, as templates write them"""


def plain_pods() -> Iterator[Raw]:
    """One of each shape; without namespace, named by ``named``."""
    empty: tuple[Raw | None, ...] = (None, {})
    resources: tuple[Raw | None, ...] = (*empty, {"limits": None, "requests": None}, {"limits": {}}, {"requests": {}})
    yield _pod()
    yield from (_pod(resources=value) for value in resources)
    yield _pod(resources={"limits": {"cpu": "1", "memory": "1Gi"}})
    yield _pod(resources={"limits": {"hugepages-2Mi": "2Mi", "cpu": 1, "ephemeral-storage": "1Gi"}, "requests": {"cpu": 0.5}})
    yield from (_pod(resources={"limits": {name: "1"}}) for name in NEAR_MISSES)
    yield from (_pod(resources={"limits": {"nvidia.com/gpu": zero}, "requests": {"nvidia.com/gpu": zero}}) for zero in ZEROS)
    yield from (_pod(resources={"limits": {"amd.com/gpu": zero, "nvidia.com/mig-1g.5gb": zero}}) for zero in ZEROS[:3])
    yield from (_of(annotations=value, labels=value) for value in empty)
    yield _of(annotations={f"example.com/note-{i}": "x" * 1000 for i in range(200)})
    yield _of(annotations={"nvidia.com/gpu": "1", "example.com/empty": "é", "berth.dev/mig-slice": "10gb"} | {"berth.dev/opt-out": "grace"})
    yield _many(200, {"limits": {"cpu": "1", "memory": "1Gi"}})
    yield _many(200, {"limits": dict.fromkeys(NEAR_MISSES[:5], "1"), "requests": {"cpu": "1"}})
    yield _many(200, None)
    yield _pod(env=[{"name": "DATA", "value": "<&>" * 50_000}])
    yield from _spec_shapes()


def _spec_shapes() -> Iterator[Raw]:
    busy = {"name": "first", "image": "i:1", "resources": {"limits": {"cpu": "1"}}}
    yield _spec(initContainers=None)
    yield _spec(initContainers=[busy, {"name": "sidecar", "image": "i:1", "restartPolicy": "Always", "resources": {"limits": None}}])
    yield _spec(nodeSelector=None, tolerations=None, affinity=None, volumes=None, resourceClaims=None)
    yield _spec(nodeSelector={}, tolerations=[], affinity={}, volumes=[], resourceClaims=[])
    yield _spec(tolerations=[{"operator": "Exists"}], nodeSelector={"nvidia.com/gpu.present": "true"})
    yield _spec(ephemeralContainers=None, volumes=[{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}, _ephemeral_volume()])
    yield _spec(schedulingGates=[{"name": "example.com/wait"}], terminationGracePeriodSeconds=0)
    yield _spec(resources={"limits": {"cpu": "2"}})
    yield _spec(unknownField={"nvidia.com/gpu": 1}, hostNetwork=True)


def _ephemeral_volume() -> Raw:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}


def named(pod: Raw, number: int) -> Raw:
    """The shape under a name of its own; every fifth gets one from the API server."""
    name = {"generateName": "plain-"} if number % 5 == 4 else {"name": f"plain-{number}"}
    return {**pod, "metadata": {**pod["metadata"], **name}}


def _pod(**container: Any) -> Raw:
    return _whole({}, {"containers": [{"name": "c", "image": "i:1", **container}]})


def _many(number: int, resources: Mapping[str, Any] | None) -> Raw:
    return _whole({}, {"containers": [{"name": f"c{i}", "image": "i:1", "resources": resources} for i in range(number)]})


def _spec(**fields: Any) -> Raw:
    return _whole({}, {"containers": [{"name": "c", "image": "i:1"}], **fields})


def _of(**metadata: Any) -> Raw:
    return _whole(metadata, {"containers": [{"name": "c", "image": "i:1"}]})


def _whole(metadata: Raw, spec: Raw) -> Raw:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"schedulerName": NOBODY, **spec}}
