"""Whether a stored pod is inside what policies require, judged without Berth: by its spec, and by asking kube-scheduler of each node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tests.testcluster.addons import nodes
from tests.testcluster.addons.nodes import FakeNode
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

HOSTNAME = "kubernetes.io/hostname"


@contextmanager
def open_nodes(cluster: Cluster, *made: FakeNode) -> Iterator[tuple[FakeNode, ...]]:
    """Nodes without taints, with GPUs for all that a test makes: only what a pod selects keeps it off them. Gone on leaving."""
    untainted = tuple(replace(node, taints=()) for node in made)
    try:
        nodes.add(cluster, *untainted)
        yield untainted
    finally:
        for node in untainted:
            cluster.api.delete({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Copies of stored pods, in a namespace without Berth, held to one node each by a nodeSelector beside all that they say themselves."""

    cluster: Cluster
    namespace: str
    nodes: Sequence[FakeNode]

    def takers(self, pods: Iterable[Raw]) -> dict[str, list[str]]:
        """The pod's name -> those of the nodes on which kube-scheduler would place it."""
        copies = {f"{node.name}.{pod['metadata']['name']}": self._held(pod, node) for pod in pods for node in self.nodes}
        for name, spec in copies.items():
            metadata = {"name": name, "annotations": {"tests.berth.dev/why": "asks kube-scheduler"}}
            self.cluster.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, self.namespace)
        found = self.cluster.wait_for(lambda: self._decided(len(copies)), "kube-scheduler to decide about each copy")
        out: dict[str, list[str]] = {}
        for name, bound in sorted(found.items()):
            node, _, pod = name.partition(".")
            out.setdefault(pod, []).extend([node] if bound else [])
        self.cluster.api.delete_all("v1", "Pod", self.namespace)
        return out

    @staticmethod
    def _held(pod: Raw, node: FakeNode) -> Raw:
        spec = {key: value for key, value in pod["spec"].items() if key not in ("nodeName", "schedulingGates")}
        return {**spec, "nodeSelector": {**spec.get("nodeSelector", {}), HOSTNAME: node.name}}

    def _decided(self, number: int) -> Mapping[str, bool] | None:
        pods = self.cluster.api.list("v1", "Pod", self.namespace)
        found = {pod["metadata"]["name"]: placed for pod in pods if (placed := scheduled(pod)) is not None}
        return found if len(found) == number else None


def scheduled(pod: Raw) -> bool | None:
    """True where it is bound, False where kube-scheduler has found no node, None before."""
    if pod["spec"].get("nodeName"):
        return True
    return False if any(one.get("reason") == "Unschedulable" for one in pod["status"].get("conditions", ())) else None


def asks(pod: Raw) -> bool:
    """Whether any container asks for a device."""
    return any(_asked(one)["limits"] for one in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())))


def forbids(pod: Raw, *, gpus: int, grace: int, taint: tuple[str, str]) -> list[str]:
    """What a spec holds against these bounds: whole GPUs of all containers, seconds of grace, a taint (key, value) not to be tolerated."""
    spec = pod["spec"]
    asked = [_asked(container) for container in (*spec["containers"], *spec.get("initContainers", ()))]
    found = [f"limit and request differ: {one}" for one in asked if one["limits"] != one["requests"]]
    found += [f"not whole: {name}" for one in asked for name in one["limits"] if name != "nvidia.com/gpu"]
    running, first = asked[: len(spec["containers"])], asked[len(spec["containers"]) :]
    amount = max([sum(_whole(one) for one in running), *(_whole(one) for one in first)])
    found += [f"{amount} GPUs"] if amount > gpus else []
    found += [f"{spec['terminationGracePeriodSeconds']} s of grace"] if spec["terminationGracePeriodSeconds"] > grace else []
    return found + [f"tolerates {one}" for one in spec.get("tolerations", ()) if _tolerates(one, *taint)]


def _asked(container: Raw) -> dict[str, dict[str, str]]:
    """Devices only."""
    resources = container.get("resources", {})
    return {side: {name: amount for name, amount in resources.get(side, {}).items() if "/" in name} for side in ("limits", "requests")}


def _whole(asked: dict[str, dict[str, str]]) -> int:
    return int(asked["limits"].get("nvidia.com/gpu", "0"))


def _tolerates(toleration: Raw, key: str, value: str) -> bool:
    """As kube-scheduler reads it, of any effect."""
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (key, None, "")
    return (toleration.get("key"), toleration.get("value", "")) == (key, value)
