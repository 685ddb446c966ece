"""Policies by which every GPU pod shows whose it is, and by which version of it: each gives its pods a grace period of its own.

Two namespaces are marked, by a policy of the cluster and by one of their own; a third by none, and must never be. Whatever becomes of the
cluster, a pod may only carry what acts, or what acted when the last fault came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from policies.policy import API_VERSION
from tests.testcluster.controlplane.api import Raw

LABEL = "tests.berth.dev/ruled"
RULED, OWN, FREE = "faults-ruled", "faults-own", "faults-free"
PLAIN = 30
"""seconds that Kubernetes gives a pod: the mark of nobody"""
MOST_GPUS = 4
"""of a pod, by the guardrail of all namespaces"""
RISING, FALLING = 1000, 50_000
"""Seconds. In one scope the longest wins: a policy that should be gone, and is not, shows only where those after it are shorter"""


@dataclass(slots=True)
class Marks:
    """For each namespace what was ever right there, oldest first. Appended to before it is written."""

    history: dict[str, list[int]] = field(default_factory=lambda: {RULED: [RISING], OWN: [FALLING], FREE: [PLAIN]})
    settled: dict[str, int] = field(default_factory=lambda: {RULED: 0, OWN: 0, FREE: 0})
    """where in it that stands which acted when all was quiet last: nothing before it may act any more"""

    def newest(self) -> Mapping[str, int]:
        """What must act in the end."""
        return {namespace: marks[-1] for namespace, marks in self.history.items()}

    def since(self) -> Mapping[str, int]:
        """To be given to ``right``."""
        return dict(self.settled)

    def right(self, namespace: str, mark: int, since: Mapping[str, int]) -> bool:
        """Whether it has acted since then."""
        return mark in self.history[namespace][since[namespace] :]

    def settle(self) -> None:
        """Only the newest is right from now on."""
        self.settled = {namespace: len(marks) - 1 for namespace, marks in self.history.items()}

    def change(self) -> Iterator[tuple[str, Raw]]:
        """("apply" or "delete", object) in this order: that of the cluster is changed, that of the namespace replaced by another."""
        ruled, own = self.history[RULED], self.history[OWN]
        ruled.append(ruled[-1] + 1)
        yield "apply", of_cluster(ruled[-1])
        before = own[-1]
        own.append(before - 1)
        yield "apply", of_namespace(own[-1])
        yield "delete", of_namespace(before)

    def set_back(self, to: Mapping[str, int]) -> None:
        """A store that is restored: what was right then is right again."""
        for namespace, mark in to.items():
            if self.history[namespace][-1] != mark:
                self.history[namespace].append(mark)

    def objects(self) -> Iterator[Raw]:
        """All policies as they are to be."""
        yield guardrail()
        yield of_cluster(self.newest()[RULED])
        yield of_namespace(self.newest()[OWN])


def guardrail() -> Raw:
    """For all namespaces."""
    return _policy("ClusterGPUPolicy", {"name": "guardrail"}, require={"gpusPerPod": {"max": MOST_GPUS}})


def of_cluster(mark: int) -> Raw:
    """For the namespaces with the label."""
    match = {"namespaceSelector": {"matchLabels": {LABEL: "yes"}}}
    return _policy("ClusterGPUPolicy", {"name": "mark"}, match=match, default={"gracePeriod": f"{mark}s"})


def of_namespace(mark: int) -> Raw:
    """The namespace's own; each has a name of its own."""
    return _policy("GPUPolicy", {"name": f"mark-{mark}", "namespace": OWN}, default={"gracePeriod": f"{mark}s"})


def _policy(kind: str, metadata: Raw, **spec: Raw) -> Raw:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": {"mode": "Enforce", **spec}}


def gpu_pod(gpus: int) -> Raw:
    """That no scheduler looks at: there are thousands of them."""
    container = {"name": "c", "image": "train:1", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    spec = {"schedulerName": "nobody", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}, "spec": spec}
