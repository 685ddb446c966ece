"""What was seen of a cluster, in the terms of the findings: nodes with their devices, pods that hold some, and how
many other pods run where."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple

from analysis.audit.assessment import workload_of
from analysis.audit.stored_pod import StoredPod
from analysis.audit.workload_report import ReportedWorkload
from analysis.scan.machines import Machines
from analysis.scan.objects_read import Cluster
from catalog import Catalog, Gpu, Resource
from catalog.prices import Prices
from kube.labels import AKS_GROUP, EKS_GROUP, GKE_GROUP, GPU_REPLICAS, NODE_POOL
from kube.node import Node, label_number
from kube.pod import Pod, PodError
from kube.requests import Amounts
from kube.taints import Taint
from kube.templates import group_of
from kube.tree import Raw, map_at
from policies.facts.platform_detection import home, newer
from policies.placement.fleet import Fleet, fleet_of
from policies.planning import devices
from policies.pods.projection import extract
from policies.state.snapshot import Snapshot

Role = Literal["run", "notebook", ""]
RUNS = frozenset(
    {
        "Job", "JobSet", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob", "TrainJob", "MXJob",
        "AscendJob", "HyperPodPyTorchJob", "RayJob", "VolcanoJob", "Framework", "DaskJob",
    }
)  # fmt: skip
"""Workloads of the catalog that run to an end, and lose what they have done since the last checkpoint when they are cut short: those of
the shipped training policy, and the operators like them."""
NOTEBOOKS = frozenset({"Notebook"})
NOTEBOOK_LABEL = "hub.jupyter.org/username"
"""Label that KubeSpawner gives the pod of a user's notebook server (jupyterhub/kubespawner, ``common_labels``)."""
GROUP_KEYS = (
    ("NodePool", NODE_POOL),
    ("node group", EKS_GROUP),
    ("node pool", GKE_GROUP),
    ("agent pool", AKS_GROUP),
    ("node template", "scheduling.cast.ai/node-template"),
)
"""What a group of nodes is called, and the label that has its name; the first that a node carries counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNode:
    """A node, as far as it is about devices. Those without devices are among them too: labels may say that there should be some."""

    place: Node
    """The node, with what is taken of it."""
    labels: Mapping[str, str]
    """Its own, with the values of older keys under the newer ones too."""
    allocatable: Mapping[str, int]
    """Accelerator resource -> the number that pods may hold; 0 is among them."""
    capacity: Mapping[str, int]
    platform: str
    """The catalog's platform that made it; "" if its labels do not tell."""
    group: tuple[str, str]
    """What its group is called, and the group's name."""
    spot: bool
    gpu: Gpu | None
    """The model on it, as far as its labels tell."""
    parts: Mapping[str, Fraction]
    """Accelerator resource -> the part of a GPU that one device is: a slice or a replica costs its part."""
    usd: float | None
    """What one GPU of it costs an hour."""
    slices: Mapping[str, int] = field(default_factory=dict)
    """DRA driver -> the devices that it publishes for this node."""

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.place.taints

    @property
    def devices(self) -> int:
        """The devices that pods may hold, slices and replicas counted as one."""
        return sum(self.allocatable.values())

    def usd_of(self, name: str) -> float | None:
        """Return what one device of this resource costs an hour; None if that is not known."""
        return None if self.usd is None else self.usd * float(self.parts[name])

    @property
    def usd_whole(self) -> float | None:
        """What all its GPUs cost an hour, those that are not healthy too; None if that is not known."""
        parts = (part * self.place.offered(name) for name, part in self.parts.items())
        return None if self.usd is None else self.usd * float(sum(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPod:
    """A pod that asks for a device."""

    stored: StoredPod
    raw: Raw
    """What is judged of it, the labels of its own included; shared by pods that are alike."""
    workload: ReportedWorkload
    role: Role
    signed: tuple[str, ...]
    """The workloads of the catalog that it is known as: ``PyTorchJob``."""
    gpus: int
    """Devices that it asks for at least."""
    names: tuple[str, ...]
    """The resource names that it asks for and that are accelerators, or look like one, or misspell one."""
    usd: float | None
    node: GpuNode | None
    """Where it is bound; None while it is pending, or where the node may not be read."""
    age: float | None
    """Seconds since it was created, if that can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedCluster:
    """A cluster in the terms of the findings."""

    cluster: Cluster
    catalog: Catalog
    nodes: Mapping[str, GpuNode]
    pods: Sequence[GpuPod]
    """Those that ask for an accelerator, or for a name that looks like one."""
    fleet: Fleet
    """Where a pod could run."""


def see(cluster: Cluster, snapshot: Snapshot, prices: Prices) -> ScannedCluster:
    """Return the cluster in the terms of the findings. ``snapshot``: of the cluster's facts, for what pods ask for."""
    catalog, machines = snapshot.catalog, Machines(snapshot.catalog)
    places = (*cluster.nodes, *cluster.nodepools, *cluster.device_classes, *cluster.node_classes, *cluster.daemons)
    unknown = True if {"Node", "NodePool"} & set(cluster.unread) else None
    fleet = fleet_of(places, catalog=catalog, tables=snapshot.tables, occupants=cluster.occupants, open_ended=unknown)
    by_name = {node.name: node for node in fleet.nodes}
    names = dict.fromkeys(name for value in cluster.nodes if (name := value["metadata"]["name"]) in by_name)
    nodes = {name: _node(by_name[name], catalog, machines, prices, cluster.slices.get(name, {})) for name in names}
    return ScannedCluster(cluster=cluster, catalog=catalog, nodes=nodes, pods=tuple(_pods(cluster, snapshot, nodes)), fleet=fleet)


def _node(node: Node, catalog: Catalog, machines: Machines, prices: Prices, slices: Mapping[str, int]) -> GpuNode:
    labels = newer(catalog, node.labels)
    platform, gpu = home(catalog, labels), machines.gpu(labels)
    group = next(((what, labels[key]) for what, key in GROUP_KEYS if labels.get(key)), None)
    allocatable, capacity = _devices(node.allocatable, catalog), _devices(node.capacity, catalog)
    return GpuNode(
        place=node,
        labels=labels,
        allocatable=allocatable,
        capacity=capacity,
        platform=platform,
        group=group or ("nodes with", gpu.model if gpu is not None else "devices"),
        spot=bool(platform) and catalog.platforms[platform].is_spot(labels),
        gpu=gpu,
        parts={
            name: _part(catalog.resource(name), node.offered(name), labels, gpu, machines, catalog) for name in (*capacity, *allocatable)
        },
        usd=prices.of_device(labels),
        slices=slices,
    )


def _devices(amounts: Amounts, catalog: Catalog) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if catalog.resource(name) is not None and catalog.measure(name) is None}


def _part(
    resource: Resource | None, offered: int, labels: Mapping[str, str], gpu: Gpu | None, machines: Machines, catalog: Catalog
) -> Fraction:
    """Return the part of a GPU that one device of this name is, however many of them the node offers."""
    if resource is None:
        return Fraction(1)
    if resource.kind == "mig" and gpu is not None and (profile := gpu.slices.get(resource.profile or "")) is not None:
        return gpu.share(profile)
    if resource.kind not in ("gpu", "shared"):
        return devices.share(resource, catalog)[0]
    if (replicas := label_number(labels, GPU_REPLICAS) or 1) > 1:
        return Fraction(1, replicas)
    machine = machines.machine(labels)
    if resource.kind == "shared" and machine is not None and machine.count and offered > machine.count:
        return Fraction(machine.count, offered)
    return Fraction(1)


class _PodRequests(NamedTuple):
    """What pods that are alike ask for."""

    raw: Raw
    gpus: int
    devices: Fraction
    names: tuple[str, ...]
    signed: tuple[str, ...]


def _pods(cluster: Cluster, snapshot: Snapshot, nodes: Mapping[str, GpuNode]) -> Iterable[GpuPod]:
    """Yield the pods; those that are alike are read once."""
    known: dict[tuple[str, bytes, tuple[str, str] | None], _PodRequests | None] = {}
    for stored in cluster.pods:
        key = stored.namespace, stored.shared, stored.owner and stored.owner[:2]
        if key not in known:
            known[key] = _asked(stored, snapshot)
        asked = known[key]
        if asked is None:
            continue
        node = nodes.get(stored.node) if stored.node else None
        usd = None if node is None or node.usd is None else node.usd * float(asked.devices)
        workload = workload_of(stored, cluster.owners)
        yield GpuPod(
            stored=stored,
            raw=asked.raw,
            workload=workload,
            role=_role(asked.signed, asked.raw),
            signed=asked.signed,
            gpus=asked.gpus,
            names=asked.names,
            usd=usd,
            node=node,
            age=cluster.age(stored.created),
        )


def _asked(stored: StoredPod, snapshot: Snapshot) -> _PodRequests | None:
    facts = snapshot.facts_for(stored.namespace)
    raw: Raw = json.loads(stored.shared)
    try:
        pod = Pod(extract(raw, facts.reads))
        held = devices.read_devices(pod, facts, final=True)
    except PodError:
        return None
    every = dict.fromkeys(name for container in pod.containers for name in container.resource_names)
    names = tuple(name for name in every if snapshot.resource(name) is not None or name in snapshot.catalog.misspellings)
    if not held.any and not names:
        return None
    owner = (group_of(stored.owner.api_version), stored.owner.kind) if stored.owner is not None else ("", "")
    labels = tuple(sorted((key, value) for key, value in pod.labels.items() if key in snapshot.catalog.signatures))
    signed = tuple(workload.name for workload in snapshot.catalog.workloads_signed(owner, labels))
    return _PodRequests(raw, held.units.least, held.at_least(snapshot.catalog), names, signed)


def _role(signed: Sequence[str], raw: Raw) -> Role:
    if not NOTEBOOKS.isdisjoint(signed) or NOTEBOOK_LABEL in map_at(raw, "metadata", "labels"):
        return "notebook"
    return "run" if not RUNS.isdisjoint(signed) else ""
