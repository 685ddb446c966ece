"""What a generated pod says, read from what the API server made of it: raw keys and amounts, none of Berth's own code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Raw = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
CAPACITY_KEYS = {
    "karpenter.sh/capacity-type",
    "eks.amazonaws.com/capacityType",
    "cloud.google.com/gke-spot",
    "cloud.google.com/gke-provisioning",
    "kubernetes.azure.com/scalesetpriority",
}
SHARING_KEYS = {
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/gpu.slices.gi",
    "cloud.google.com/gke-gpu-sharing-strategy",
    "cloud.google.com/gke-gpu-partition-size",
}
TEMPLATE_KEYS = {"karpenter.sh/nodepool", "pool", "tier"}
MACHINE_KEYS = {
    *(f"karpenter.k8s.aws/instance-{what}" for what in ("category", "family", "generation", "size")),
    *(f"karpenter.k8s.aws/instance-gpu-{what}" for what in ("name", "manufacturer", "count", "memory")),
    "node.kubernetes.io/instance-type",
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.family",
    "amd.com/gpu.product-name",
}
SILENT_KEYS = {"topology.kubernetes.io/zone", "kubernetes.io/arch", "kubernetes.io/hostname", "kubernetes.io/os"}
"""Labels that speak of no axis. Of those in none of these sets it is not written down whether a default still acts"""
UNREAD_KEYS = {
    *TEMPLATE_KEYS,
    *(key for key in CAPACITY_KEYS | SHARING_KEYS if not key.startswith(("karpenter.sh/", "nvidia.com/"))),
    "disk",
}
"""Labels of pools, of the cluster's own, and of clouds that are not in force: beside them no default chooses a node"""
NEW_VALUES = {"x999", "unknown", "NVIDIA-Z1"}
"""generated values that nobody knows"""
DEVICES = ("nvidia.com/", "amd.com/", "gpu.intel.com/")
_AMOUNT = re.compile(r"(\d+)(k|000m|e0)?")
LISTED = re.compile(
    r"nvidia\.com/(gpus?|gpu\.shared|mig-.+)|nvdia\.com/gpu|alpha\.kubernetes\.io/nvidia-gpu|amd\.com/(gpu|.+_nps\d)"
    r"|gpu\.intel\.com/(i915|xe)|habana\.ai/gaudi|aws\.amazon\.com/neuron.*|google\.com/tpu|deviceclass\.resource\.kubernetes\.io/.+"
)
"""Names that the conditions of a registration may name: pods that ask for others alone never reach Berth, whatever they look like"""
SHARES = (
    "gpu-fraction", "gpu-memory", "gpu-sm-", "kai.scheduler/container.", "nvidia.com/container.", "hami.io/", "nvidia.com/use-gpu",
    "nvidia.com/nouse-gpu", "nvidia.com/vgpu-", "volcano.sh/vgpu-",
)  # fmt: skip
"""How annotations for KAI, Run:ai, HAMi and Volcano begin"""
PART = re.compile(r"nvidia\.com/(gpumem|gpumem-percentage|gpucores)|volcano\.sh/vgpu-(memory|memory-percentage|cores)")
DURATIONS = {"30m": 1800, "6h": 21600}
"""of the generated annotations, those that can be read"""


def amount(value: object) -> int:
    """A whole number of devices in one of the forms that are generated. What is none counts as none."""
    found = _AMOUNT.fullmatch(str(value))
    return 0 if found is None else int(found.group(1)) * (1000 if found.group(2) == "k" else 1)


def containers(pod: Raw) -> list[Raw]:
    """All, init containers first."""
    return [*(pod["spec"].get("initContainers") or ()), *(pod["spec"].get("containers") or ())]


def _of_container(container: Raw) -> dict[str, int]:
    resources = container.get("resources") or {}
    amounts = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    return {name: count for name, value in amounts.items() if name.startswith((*DEVICES, "aws.amazon.com/")) and (count := amount(value))}


@dataclass(frozen=True, slots=True)
class RequestedPod:
    """One pod."""

    pod: Raw

    @property
    def metadata(self) -> Raw:
        found: Raw = self.pod["metadata"]
        return found

    @property
    def spec(self) -> Raw:
        found: Raw = self.pod["spec"]
        return found

    @property
    def devices(self) -> Mapping[str, int]:
        """Accelerators at once, by resource name: an init container beside the sidecars before it, or all others and all sidecars."""
        peak: dict[str, int] = {}
        before: dict[str, int] = {}
        for container in self.spec.get("initContainers") or ():
            for name, count in _of_container(container).items():
                peak[name] = max(peak.get(name, 0), before.get(name, 0) + count)
                if container.get("restartPolicy") == "Always":
                    before[name] = before.get(name, 0) + count
        for container in self.spec.get("containers") or ():
            for name, count in _of_container(container).items():
                before[name] = before.get(name, 0) + count
        return {name: max(peak.get(name, 0), before.get(name, 0)) for name in {**peak, **before}}

    @property
    def names_devices(self) -> bool:
        """Whether any container names what an accelerator may be called, of whatever amount."""
        sides = [(c.get("resources") or {}).get(side) or {} for c in containers(self.pod) for side in ("limits", "requests")]
        return any("/" in name for side in sides for name in side)

    @property
    def reaches(self) -> bool:
        """Whether it may reach Berth."""
        sides = [(c.get("resources") or {}).get(side) or {} for c in containers(self.pod) for side in ("limits", "requests")]
        listed = any(LISTED.fullmatch(name) and str(value) != "0" for side in sides for name, value in side.items())
        return listed or self.is_fraction or bool(self.spec.get("resourceClaims"))

    @property
    def is_fraction(self) -> bool:
        """Whether an annotation of KAI or Run:ai asks for a part of a GPU."""
        return not {"gpu-fraction", "gpu-memory"}.isdisjoint(self.annotations)

    @property
    def is_shared(self) -> bool:
        """Whether it tells a scheduler that shares GPUs which part it gets, or of which GPU: then no default chooses its nodes."""
        sides = [(c.get("resources") or {}).get(side) or {} for c in containers(self.pod) for side in ("limits", "requests")]
        return any(key.startswith(SHARES) for key in self.annotations) or any(PART.fullmatch(name) for side in sides for name in side)

    @property
    def gpus(self) -> int:
        """Whole ones, slices and replicas together."""
        return sum(count for name, count in self.devices.items() if name.startswith(DEVICES))

    @property
    def one_whole_each(self) -> bool:
        """Whether it asks for NVIDIA's whole GPUs alone, each container for one at most."""
        return set(self.devices) == {"nvidia.com/gpu"} and all(_of_container(c).get("nvidia.com/gpu", 1) == 1 for c in containers(self.pod))

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.get("annotations") or {}

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def owner(self) -> tuple[str, str]:
        """(group, kind) of its controller; empty where it has none."""
        found: Raw = next((one for one in self.metadata.get("ownerReferences") or () if one.get("controller")), {})
        return str(found.get("apiVersion", "")).rpartition("/")[0], str(found.get("kind", ""))

    @property
    def seconds(self) -> int | None:
        """How long it says that it runs."""
        expected = DURATIONS.get(self.annotations.get("berth.dev/expected-duration", ""))
        found: int | None = self.spec.get("activeDeadlineSeconds") if expected is None else expected
        return found

    @property
    def node(self) -> str:
        """That it names, by which it passes kube-scheduler."""
        return str(self.spec.get("nodeName") or "")

    @property
    def terms(self) -> list[Raw]:
        """Required ones that select something."""
        affinity = (self.spec.get("affinity") or {}).get("nodeAffinity") or {}
        terms = (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()
        return [term for term in terms if term.get("matchExpressions") or term.get("matchFields")]

    @property
    def pinned(self) -> bool:
        """Whether every term names one and the same node."""
        named = [[tuple(f["values"]) for f in term.get("matchFields") or () if f["operator"] == "In"] for term in self.terms]
        return bool(named) and all(len(names) == 1 for names in named) and len({names[0] for names in named}) == 1

    def keys(self) -> Iterator[str]:
        """Every label key that it selects nodes by."""
        yield from self.spec.get("nodeSelector") or ()
        for term in self.terms:
            yield from (one["key"] for one in term.get("matchExpressions") or ())

    def values(self) -> Iterator[str]:
        """Every label value that it selects nodes by."""
        yield from (self.spec.get("nodeSelector") or {}).values()
        for term in self.terms:
            yield from (value for one in term.get("matchExpressions") or () for value in one.get("values") or ())

    def speaks(self, keys: set[str]) -> bool:
        """Whether it selects nodes by one of these."""
        return not keys.isdisjoint(self.keys())

    @property
    def speaks_plainly(self) -> bool:
        """Whether each key that it selects nodes by is known to speak of an axis, or of none, and no value is new."""
        known = CAPACITY_KEYS | SHARING_KEYS | MACHINE_KEYS | SILENT_KEYS | UNREAD_KEYS
        return known.issuperset(self.keys()) and NEW_VALUES.isdisjoint(self.values())

    @property
    def speaks_unread(self) -> bool:
        """Whether it selects nodes by a key that no platform in force has."""
        return self.speaks(UNREAD_KEYS)

    @property
    def is_queued(self) -> bool:
        """Whether a queue system may hold it, which counts devices by their names: none is renamed."""
        queued = {"kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/podset"}.isdisjoint(self.labels)
        return not queued or self.spec["schedulerName"] != "default-scheduler"

    @property
    def can_be_sliced(self) -> bool:
        """Whether a slice may stand for its whole GPU."""
        return self.written and self.one_whole_each and not self.is_queued and not self.speaks(SHARING_KEYS)

    @property
    def placed_elsewhere(self) -> bool:
        """Whether kube-scheduler leaves it alone: another scheduler's, gated, or naming its node."""
        return self.spec.get("schedulerName") != "default-scheduler" or bool(self.spec.get("schedulingGates")) or bool(self.node)

    @property
    def left_alone(self) -> bool:
        """Whether the API server only mirrors what a kubelet runs already: of such a pod nothing is edited or denied."""
        return "kubernetes.io/config.mirror" in self.annotations

    @property
    def written(self) -> bool:
        """Whether node affinity is written into it: not where it would stay Pending for ever, or be of no use."""
        return not (self.left_alone or self.pinned or self.node)
