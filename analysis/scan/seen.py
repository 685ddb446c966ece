"""What was seen of a cluster, in the terms of the findings: nodes with their devices, pods that hold some, and how
many other pods run where."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Literal, NamedTuple

from analysis.audit.assessment import workload_of
from analysis.audit.stored_pod import StoredPod
from analysis.audit.workload_report import ReportedWorkload
from analysis.scan.machines import Machines, split_product
from analysis.scan.objects_read import Cluster
from catalog import Catalog, Gpu, Resource
from catalog.prices import Prices
from kube.labels import (
    AKS_GROUP,
    AMD_PARTITION,
    AMD_PREFIX,
    EKS_GROUP,
    GKE_GROUP,
    GPU_COUNT,
    GPU_PRODUCT,
    GPU_REPLICAS,
    INSTANCE_TYPE,
    MIG_PREFIX,
    NODE_POOL,
)
from kube.node import Node, label_number
from kube.pod import Pod, PodError
from kube.requests import Amounts, requests
from kube.taints import Taint
from kube.templates import group_of
from kube.tree import LARGEST, Raw, map_at
from policies.facts.platform_detection import home, newer
from policies.placement.expected_devices import SLICES, MissingDevices, expected_devices, missing_devices
from policies.placement.fleet import Fleet, fleet_of
from policies.planning import devices
from policies.pods.fractions import FRACTIONS
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
    gpus: int | None
    """The physical GPUs that it has, whether or not pods may hold them; None if only that it has some is known."""
    missing: tuple[MissingDevices, ...] = ()
    """What it should offer and does not."""
    usd: float | None
    """What one GPU of it costs an hour."""
    slices: Mapping[str, int] = field(default_factory=dict)
    """DRA driver of accelerators -> the devices that it publishes for this node."""

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.place.taints

    @property
    def devices(self) -> int:
        """The devices that pods may hold, slices and replicas counted as one; those of DRA drivers where no device plugin offers any."""
        return sum(self.allocatable.values()) or sum(self.slices.values())

    @property
    def has_gpus(self) -> bool:
        """True if it has GPUs, whether or not pods may hold them."""
        return self.gpus != 0 or self.devices > 0

    def usd_of(self, name: str) -> float | None:
        """Return what one device of this resource costs an hour; None if that is not known."""
        return None if self.usd is None else self.usd * float(self.parts[name])

    @property
    def usd_whole(self) -> float | None:
        """What all its GPUs cost an hour, whether or not pods may hold them; None if that is not known."""
        return None if self.usd is None or self.gpus is None else self.usd * self.gpus


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
    held: Fraction
    """The physical GPUs of its node that it holds; a slice or a replica is its part."""
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
    fleet = fleet_of(
        places,
        catalog=catalog,
        tables=snapshot.tables,
        occupants=cluster.occupants,
        published=cluster.slices,
        open_ended=unknown,
    )
    by_name = {node.name: node for node in fleet.nodes}
    names = dict.fromkeys(name for value in cluster.nodes if (name := value["metadata"]["name"]) in by_name)
    nodes = {name: _node(by_name[name], catalog, machines, prices, cluster.slices.get(name, {})) for name in names}
    return ScannedCluster(cluster=cluster, catalog=catalog, nodes=nodes, pods=tuple(_pods(cluster, snapshot, nodes)), fleet=fleet)


def _node(node: Node, catalog: Catalog, machines: Machines, prices: Prices, slices: Mapping[str, int]) -> GpuNode:
    labels = {**_registered_product(node), **newer(catalog, node.labels)}
    platform, gpu = home(catalog, labels), machines.gpu(labels)
    group = next(((what, labels[key]) for what, key in GROUP_KEYS if labels.get(key)), None)
    allocatable, capacity = _devices(node.allocatable, catalog), _devices(node.capacity, catalog)
    names = [name for name in node.extended if catalog.resource(name) is not None or catalog.measure(name) is not None]
    parts = {name: _part(name, node, labels, gpu, catalog) for name in names}
    published = {driver: count for driver, count in slices.items() if count and driver in catalog.dra_drivers}
    gpus = _gpus(node, labels, parts, sum(published.values()), catalog)
    parts |= {name: Fraction(gpus or 0, node.offered(name)) for name, part in parts.items() if not part and node.offered(name)}
    return GpuNode(
        place=node,
        labels=labels,
        allocatable=allocatable,
        capacity=capacity,
        platform=platform,
        group=group or ("nodes with", gpu.model if gpu is not None else "devices"),
        spot=bool(platform) and catalog.platforms[platform].is_spot(labels),
        gpu=gpu,
        parts=parts,
        gpus=gpus,
        missing=tuple(missing_devices(node, labels, published, catalog)),
        usd=prices.of_device({**labels, GPU_PRODUCT: split_product(labels.get(GPU_PRODUCT, ""))[0]}),
        slices=published,
    )


def _registered_product(node: Node) -> Mapping[str, str]:
    """Return the label of the product that a vGPU maker registers, as GPU Feature Discovery would write it."""
    models = {device.model.replace("NVIDIA-NVIDIA", "NVIDIA").replace(" ", "-") for device in node.registered} - {""}
    return {GPU_PRODUCT: models.pop()} if len(models) == 1 else {}


def _gpus(node: Node, labels: Mapping[str, str], parts: Mapping[str, Fraction], published: int, catalog: Catalog) -> int | None:
    """Return the physical GPUs of a node: those that a vGPU maker registers, else those of its machine, else what its labels count, what
    it offers, or what drivers publish, whichever is most."""
    if node.registered:
        return len(node.registered)
    expected = expected_devices(labels, catalog)
    if expected is not None and expected.key == INSTANCE_TYPE and expected.number:
        return expected.number
    whole, others = Fraction(0), dict[str, int]()
    for name, part in parts.items():
        resource = catalog.resource(name)
        if resource is not None and resource.kind == "other":  # cores and devices of one vendor are the same ones
            others[resource.vendor] = min(node.offered(name) or LARGEST, others.get(resource.vendor, LARGEST))
        else:
            whole += part * node.offered(name)
    if expected is not None and expected.key == GPU_COUNT and expected.number and any(_is_cut(name, catalog) for name in parts):
        # the label counts GPUs that are cut too; sizes of slices are rounded up
        return max(expected.number, ceil(whole - _cut(node, parts, catalog)))
    counted = ceil(whole) + sum(count for count in others.values() if count < LARGEST)
    most = max(counted or published, (expected.number or 0) if expected is not None else 0)
    return most or (None if expected is not None else 0)


def _is_cut(name: str, catalog: Catalog) -> bool:
    resource = catalog.resource(name)
    return resource is not None and resource.kind in SLICES


def _cut(node: Node, parts: Mapping[str, Fraction], catalog: Catalog) -> Fraction:
    """Return the part of GPUs that a node's slices are together."""
    return sum((part * node.offered(name) for name, part in parts.items() if _is_cut(name, catalog)), Fraction(0))


def _devices(amounts: Amounts, catalog: Catalog) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if catalog.resource(name) is not None and catalog.measure(name) is None}


def _part(name: str, node: Node, labels: Mapping[str, str], gpu: Gpu | None, catalog: Catalog) -> Fraction:
    """Return the part of a GPU that one device of this name is, however many of them the node offers. Of an amount of memory, of which
    nobody says how much a GPU has, it is nothing."""
    resource, measure, offered = catalog.resource(name), catalog.measure(name), node.offered(name)
    if measure is not None or resource is None:
        return Fraction(1, measure.unit) if measure is not None and measure.unit else Fraction(0)
    profile = None if gpu is None else gpu.slices.get(resource.profile or split_product(labels.get(GPU_PRODUCT, ""))[1])
    if gpu is not None and profile is not None and resource.kind in ("mig", "gpu"):
        return gpu.share(profile) / _replicas(labels, resource)
    if resource.kind not in ("gpu", "shared"):
        return devices.share(resource, catalog)[0]
    partition = catalog.resource(f"{AMD_PREFIX}{labels.get(AMD_PARTITION, '')}")
    if partition is not None and partition.vendor == resource.vendor:
        return devices.share(partition, catalog)[0]
    if node.registered and offered > len(node.registered):
        return Fraction(len(node.registered), offered)
    expected = expected_devices(labels, catalog)
    if expected is not None and expected.key != GPU_COUNT and expected.number and offered > expected.number:
        return Fraction(expected.number, offered)
    return Fraction(1, _replicas(labels, resource))


def _replicas(labels: Mapping[str, str], resource: Resource) -> int:
    key = f"{MIG_PREFIX}{resource.profile}.replicas" if resource.kind == "mig" else GPU_REPLICAS
    return max(label_number(labels, key) or 1, 1)


class _PodRequests(NamedTuple):
    """What pods that are alike ask for."""

    raw: Raw
    gpus: int
    amounts: Mapping[str, int]
    """Extended resource -> what it asks for, parts of devices among them."""
    whole: Fraction
    """The GPUs that it takes by claims, and parts of them by annotations."""
    devices: Mapping[str, tuple[int, Fraction]]
    """Accelerator resource -> how many it asks for at least, and the part of a GPU that each is at least."""
    measured: frozenset[str]
    """Those of these that are amounts of memory or cores."""
    names: tuple[str, ...]
    signed: tuple[str, ...]

    def held_of(self, node: GpuNode | None) -> Fraction:
        """Return the physical GPUs that such a pod holds of a node; of an unknown node at least."""
        parts: Mapping[str, Fraction] = {} if node is None else node.parts
        total, of_makers = self.whole, dict[str, Fraction]()
        for name, (count, part) in self.devices.items():
            held = count * parts.get(name, part)
            if name in self.measured:  # memory and cores of the same devices
                maker = name.partition("/")[0]
                of_makers[maker] = max(held, of_makers.get(maker, held))
            else:
                total += held
        total += sum(of_makers.values(), Fraction(0))
        registered = () if node is None else node.place.registered
        memory = registered[0].memory_mib if registered else 0
        if not memory:
            return total
        written = {name.rpartition("/")[2]: amount for name, amount in self.amounts.items()}
        percents = (Fraction(written.get(name, 0), 100) for name in ("gpumem-percentage", "gpucores"))
        return max(total, Fraction(written.get("gpumem", 0), memory), *percents)


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
        held = asked.held_of(node)
        usd = None if node is None or node.usd is None else node.usd * float(held)
        workload = workload_of(stored, cluster.owners)
        yield GpuPod(
            stored=stored,
            raw=asked.raw,
            workload=workload,
            role=_role(asked.signed, asked.raw),
            signed=asked.signed,
            gpus=asked.gpus,
            names=asked.names,
            held=held,
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
    amounts = {name: amount for name, amount in requests(map_at(raw, "spec")).amounts.items() if "/" in name}
    return _PodRequests(
        raw=raw,
        gpus=held.units.least,
        amounts=amounts,
        whole=Fraction(sum(claim.count.least for claim in held.claimed)) + _fraction(pod, held.fraction.least),
        devices={device.resource.name: _least(device, amounts, snapshot.catalog) for device in held.asked},
        measured=frozenset(device.resource.name for device in held.asked if device.resource.kind == "part"),
        names=names,
        signed=signed,
    )


def _least(requested: devices.RequestedDevice, amounts: Mapping[str, int], catalog: Catalog) -> tuple[int, Fraction]:
    """Return how many of a resource a pod asks for at least, and the part of a GPU that each is at least."""
    resource = requested.resource
    if resource.kind == "part":
        return amounts.get(resource.name, 0), Fraction(1, resource.unit) if resource.unit else Fraction(0)
    return requested.count.least, devices.share(resource, catalog)[0]


def _fraction(pod: Pod, number: int) -> Fraction:
    """Return the part of GPUs that KAI or Run:ai gives a pod by its annotation; all of them where that is not readable."""
    text = str(pod.annotations.get(FRACTIONS[0], ""))
    return number * (Fraction(text) if _DECIMAL.fullmatch(text) else Fraction(1))


_DECIMAL = re.compile(r"0?\.[0-9]{1,6}", re.ASCII)


def _role(signed: Sequence[str], raw: Raw) -> Role:
    if not NOTEBOOKS.isdisjoint(signed) or NOTEBOOK_LABEL in map_at(raw, "metadata", "labels"):
        return "notebook"
    return "run" if not RUNS.isdisjoint(signed) else ""
