"""Pods for Karpenter, each with a NodePool of its own, and the policies that judge them.

All are created at once (``scenario.py``). Pods that no Berth judges are in the namespace ``WITHOUT``. Each NodePool has a taint of its
own, which the pods of its case alone tolerate; so no two cases share a machine, and no pod names a NodePool, beside which no default would
choose a machine. Those do of which Karpenter is to say why nothing is bought, or whose NodePool cuts their grace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from catalog import MachineType
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons import karpenter
from tests.testcluster.addons.karpenter import CAPACITY, FAMILY, POOL, Bought
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import ENDS_AFTER, RUNS_FOR

WITHOUT = "without-berth"
CASE = "tests.berth.dev/case"
"""key of the taint"""
PRODUCT = "nvidia.com/gpu.product"
TOLERATION: Raw = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
RUNS: Raw = {"capacity": ["spot"], "longRuns": {"over": "2h", "capacity": ["on-demand"], "unknownIsLong": True}}
POLICIES: Mapping[str, Raw] = {
    "ampere": {"require": {"families": {"in": ["ampere"]}, "capacity": ["spot"]}},
    "either": {"default": {"families": {"in": ["ampere"]}}},
    "runs": {"default": RUNS},
    "excluding": {"require": {"instanceFamilies": {"notIn": ["g4dn", "g6"]}}},
    "graceful": {"default": {"gracePeriod": "30m"}},
    "protected": {"default": {"protectFor": "Always"}},
    "networked": {"require": {"instanceFamilies": {"in": ["p4d"]}}, "default": {"networkDevices": "All"}},
}
"""Namespace -> the spec of its policy, beside the shipped berth-default"""
BERTHS = {"karpenter": "karpenter-aws", "both": "karpenter-aws,gfd", "library": "karpenter-aws"}
"""Name -> its --platforms"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One pod, bare or of a Job, and the NodePool that it names."""

    name: str
    namespace: str = WITHOUT
    berth: str = "karpenter"
    gpus: int = 1
    resource: str = "nvidia.com/gpu"
    expects: str | None = None
    """berth.dev/expected-duration"""
    spec: Raw = field(default_factory=dict)
    """what else the author wrote"""
    job: bool = False
    pool: str = ""
    """another case's, where not its own"""
    capacity: Sequence[str] = ("spot", "on-demand")
    grace: str | None = None
    """the NodePool's terminationGracePeriod, and how long the pod takes to end: what it is granted is seen in the pod"""
    consolidate_after: str = "Never"
    waits: bool = False
    """nothing is bought for it"""

    def manifest(self) -> Raw:
        """Of the pod, or of the Job."""
        annotations = {
            RUNS_FOR: "2h",
            **({} if self.grace is None else {ENDS_AFTER: self.grace}),
            **({} if self.expects is None else {"berth.dev/expected-duration": self.expects}),
        }
        container = {"name": "c", "image": "train:1", "resources": {"limits": {self.resource: str(self.gpus)}}}
        pool = self.pool or self.name
        spec = {
            "containers": [container],
            **self.spec,
            "tolerations": [*self.spec.get("tolerations", ()), {**_taint(pool), "operator": "Equal"}],
        }
        if self.waits or self.grace is not None:
            spec["nodeSelector"] = {POOL: pool, **self.spec.get("nodeSelector", {})}
        metadata = {"name": self.name, "namespace": self.namespace}
        if not self.job:
            return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata | {"annotations": annotations}, "spec": spec}
        template = {"metadata": {"annotations": annotations}, "spec": {**spec, "restartPolicy": "Never"}}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}

    def owns(self, pod: str) -> bool:
        """Whether a pod of that name, in its namespace, is its."""
        return pod.startswith(f"{self.name}-") if self.job else pod == self.name

    def node_pool(self) -> Raw:
        """Of the case's name."""
        vendor = self.resource.partition(".")[0]
        return karpenter.node_pool(
            self.name,
            capacity=self.capacity,
            taints=(karpenter.TAINTS[vendor], _taint(self.name)),
            termination_grace=self.grace,
            consolidate_after=self.consolidate_after,
        )


def _taint(pool: str) -> Raw:
    return {"key": CASE, "value": pool, "effect": "NoSchedule"}


def requiring(*terms: Sequence[tuple[str, str]]) -> Raw:
    """Required node affinity: each term a list of (label, value)."""
    written = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]} for key, value in term]} for term in terms]
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": written}}}}


BY_HAND: Raw = {"tolerations": [TOLERATION]}
EVERY = ("spot", "on-demand", "reserved")
A10G, G5 = (PRODUCT, "NVIDIA-A10G"), (FAMILY, "g5")
SIZES = (1, 2, 4, 8)
CASES = (
    Case(name="untouched", pool="tolerated", waits=True),
    Case(name="tolerated", namespace="ampere"),
    Case(name="by-hand", spec=BY_HAND, expects="6h"),
    Case(name="amd", namespace="runs", resource="amd.com/gpu", expects="30m"),
    Case(name="short", namespace="runs", expects="45m"),
    Case(name="long", namespace="runs", expects="6h"),
    Case(name="unknown", namespace="runs"),
    Case(name="reserved", namespace="runs", gpus=8, expects="6h", capacity=EVERY),
    Case(name="none-reserved", namespace="runs", gpus=8, expects="6h"),
    Case(name="reserved-missed", gpus=8, capacity=EVERY, spec=BY_HAND | {"nodeSelector": {CAPACITY: "on-demand"}}),
    *(Case(name=f"excluding-{gpus}", namespace="excluding", gpus=gpus) for gpus in SIZES),
    Case(name="whole-machine", namespace="networked", gpus=8),
    Case(name="gfd-alone", spec=BY_HAND | requiring([A10G]), waits=True),
    Case(name="gfd-alone-judged", namespace="ampere", spec=requiring([A10G]), waits=True),
    Case(name="gfd-or-family", namespace="ampere", spec=requiring([A10G], [G5])),
    Case(name="family-or-gfd", namespace="ampere", spec=requiring([G5], [A10G])),
    Case(name="both-platforms", namespace="either", berth="both"),
    Case(name="train-unknown", namespace="library", berth="library", gpus=8, job=True),
    Case(name="train-reserved", namespace="library", berth="library", gpus=8, job=True, capacity=EVERY),
    Case(name="train-short", namespace="library", berth="library", gpus=8, job=True, expects="90m"),
    Case(name="train-4", namespace="library", berth="library", gpus=4, job=True, expects="30m"),
    Case(name="batch-unknown", namespace="library", berth="library", job=True),
    Case(name="batch-short", namespace="library", berth="library", job=True, expects="45m"),
    Case(name="batch-2", namespace="library", berth="library", gpus=2, job=True, expects="45m"),
    Case(name="grace-cut", namespace="graceful", grace="10m"),
    Case(name="grace-by-hand", grace="10m", spec=BY_HAND | {"terminationGracePeriodSeconds": 1800}),
    Case(name="filler-of-protected", spec=BY_HAND, gpus=3, capacity=["on-demand"], consolidate_after="0s"),
    Case(name="filler-of-twin", spec=BY_HAND, gpus=3, capacity=["on-demand"], consolidate_after="0s"),
)
TWINS = (
    Case(name="protected", namespace="protected", pool="filler-of-protected", job=True),
    Case(name="twin", namespace="runs", pool="filler-of-twin", job=True, expects="6h"),
)
"""Created once the fillers run, and put beside them: when those are gone, three of four GPUs are idle."""


def cheapest(
    gpus: int, capacity: str, allowed: Callable[[MachineType], bool] = lambda machine: True, resource: str = "nvidia.com/gpu"
) -> Bought:
    """What the catalog says that Karpenter must buy: the cheapest amd64 machine with so many devices in that capacity."""
    machines = [
        m for m in catalog().machines if m.cloud == "aws" and m.resource == resource and m.family not in karpenter.ARM and allowed(m)
    ]
    fit = [m for m in machines if (m.count or 0) >= gpus and capacity in karpenter.prices(m)]
    machine = min(fit, key=lambda m: karpenter.prices(m)[capacity])
    assert machine.type is not None
    return Bought(type=machine.type, capacity=capacity, usd_per_hour=round(karpenter.prices(machine)[capacity], 6))
