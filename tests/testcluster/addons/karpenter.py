"""Karpenter beside a cluster: the real provisioner with its own kwok cloud provider, buying simulated machines of AWS from the catalog.

    types = instance_types(catalog)
    start(cluster, types)
    cluster.api.create(node_pool("gpu", capacity=("spot", "on-demand")))

A pod that fits nowhere then gets a NodeClaim, kwok plays the Node, kube-scheduler binds. The Node's labels say what was bought
(``bought``). It buys the cheapest offering that pod, NodePool and machine agree on.

Facts, all of sigs.k8s.io/karpenter v1.14.0:

- kwok/cloudprovider/helpers.go: every key in an offering's ``Requirements`` becomes a well-known label, which pods and NodePools may then
  require, and a label of the Node. So the ``karpenter.k8s.aws`` labels work, although this provider knows nothing of AWS. (Restricted,
  pkg/apis/v1/labels.go, are only karpenter.sh, karpenter.kwok.sh and kubernetes.io/hostname; a key of karpenter.k8s.aws that no offering
  has is an ordinary unknown one.)
- A resource that is no ``resources`` of any machine (a MIG slice) is never provisioned.
- The feature ReservedCapacity is off: this provider names no label for reservation ids, and with the feature on Karpenter ends in a panic
  at the first pod that a reserved offering fits (scheduling/reservationmanager.go). What the feature does is to try reserved offerings
  first and to count how many are left; here the first follows from their price, and there is no end of them.
- Consolidation cannot be hurried below about 30 s: 10 s between two looks (disruption/controller.go pollingPeriod), 15 s between a decision
  and its validation (disruption/consolidation.go commandValidationDelay), and at least 10 s in which a node that a pod was nominated to is
  left alone (state/statenode.go nominationWindow).

Where a provisioning's time goes, measured on two cores with Karpenter's own settings, 2.1 s from the pod to Running: 0.1 s until
kube-scheduler has said Unschedulable; 1 s BATCH_IDLE_DURATION, here IDLE, so that 1.4 s are left; 0.05 s until NodeClaim and Node are
there; 0.1 s until kwok has made the Node ready; 0.9 s because Karpenter sleeps for one after it has written that a NodeClaim is launched,
before it registers the Node (nodeclaim/lifecycle/controller.go, no setting); 0.1 s to bind and run. Neither QPS nor kube-scheduler's
backoff shows. What could cost tens of seconds is a pod that is there before Karpenter, a NodePool or a machine for it is: it is looked at
every 10 s (provisioning/controller.go).
"""

from __future__ import annotations

import http.client
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from catalog import Catalog, MachineType
from tests.testcluster import programs
from tests.testcluster.addons import metrics
from tests.testcluster.calls import PATIENCE, request_once
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import Process, free_port
from tests.testcluster.controlplane.starting import HOST, apply_crds, http_ok

PLATFORM = "karpenter-aws"
POOL, CAPACITY, TYPE, FAMILY = (
    "karpenter.sh/nodepool",
    "karpenter.sh/capacity-type",
    "node.kubernetes.io/instance-type",
    "karpenter.k8s.aws/instance-family",
)
ZONE = "us-east-1a"
"""One, in the region of the catalog's prices; reservations are zonal."""
SPOT = 0.35
"""Of the on-demand price. Our choice: spot prices move, and the catalog has none; GPU machines are mostly at 0.3 to 0.7."""
RESERVED = "p5.48xlarge"
"""The one machine with a reservation: such machines are what teams reserve (EC2 Capacity Blocks), and ten others with
eight GPUs are cheaper, so that it is bought only because it is paid for."""
PAID = 1e-7
"""Of the on-demand price: reserved offerings come before all others, and still differ (Karpenter's factor for AWS: the module's
designs/balanced-consolidation.md)."""
OLD = ("g3", "g3s", "p2")
"""Instance families that have prices, and that EC2 sells no longer"""
PLAIN = {"m6i.xlarge": 0.192, "m6i.4xlarge": 0.768}
"""Machines without a GPU -> USD per hour on demand; nothing rests on it."""
ARM = ("g5g", "p6e-gb200")
"""Instance families with Graviton or Grace processors; all others here are amd64."""
METAL = {"g4dn.metal": 96, "g5g.metal": 64}
"""vCPUs where the size does not tell"""
TAINTS = {
    "nvidia": {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"},
    "amd": {"key": "amd.com/gpu", "value": "true", "effect": "NoSchedule"},
}
"""As Karpenter's documentation taints a NodePool of GPU machines."""
NODE_CLASS: Raw = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}, "spec": {}}
IDLE = "300ms"
"""Pods that come within this are bought for together."""
ENVIRONMENT = {
    "SYSTEM_NAMESPACE": "kube-system",
    "CLUSTER_NAME": "berth",
    "DISABLE_LEADER_ELECTION": "true",
    "FEATURE_GATES": "ReservedCapacity=false",
    "BATCH_IDLE_DURATION": IDLE,
    "BATCH_MAX_DURATION": "2s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Karpenter:
    """One that runs."""

    process: Process
    port: int
    """of its /metrics"""

    def metric(self, name: str, /, **labels: str) -> float:
        """The sum of a metric's samples that have these labels; 0.0 where there is none."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=PATIENCE)
        return metrics.total(request_once(connection, "GET", "/metrics").body.decode(), name, **labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bought:
    """What Karpenter bought, as the Node's labels say it."""

    type: str
    capacity: str
    usd_per_hour: float


def bought(node: Raw) -> Bought:
    """Of a Node that Karpenter made. Raises KeyError for another one."""
    labels = node["metadata"]["labels"]
    price = float(labels["eks-node-viewer/instance-price"])
    return Bought(type=labels[TYPE], capacity=labels[CAPACITY], usd_per_hour=price)


def prices(machine: MachineType) -> dict[str, float]:
    """USD per hour of each offering, by capacity; none where the catalog knows no price (p5e.48xlarge), of OLD ones, or where
    Karpenter counts no GPU (g6f.large)."""
    if machine.usd_per_hour is None or machine.family in OLD or PLATFORM in machine.not_on or PLATFORM in machine.uncounted:
        return {}
    found = {"spot": machine.usd_per_hour * SPOT, "on-demand": machine.usd_per_hour}
    return found | ({"reserved": machine.usd_per_hour * PAID} if machine.type == RESERVED else {})


def instance_types(catalog: Catalog) -> list[Raw]:
    """Every AWS machine of the catalog that has a price, and those of PLAIN, as Karpenter's kwok provider reads them.

    Each is a map with name, architecture, operatingSystems, resources and offerings; each offering, for one capacity in ZONE, has its
    Price, and as Requirements every label of the platform karpenter-aws: In its value, or DoesNotExist where it has none.
    """
    labels = catalog.platforms[PLATFORM].labels
    gpus = [_gpu_type(machine, labels) for machine in catalog.machines if machine.cloud == "aws" and prices(machine)]
    return gpus + [_plain_type(name, price, labels) for name, price in PLAIN.items()]


def _gpu_type(machine: MachineType, labels: Mapping[str, str]) -> Raw:
    assert machine.type is not None
    assert machine.count is not None
    vendor = machine.resource.partition(".")[0]
    known = {**machine.attributes, "family": machine.family, "count": str(machine.count), "manufacturer": vendor}
    architecture = "arm64" if machine.family in ARM else "amd64"
    network = {name: str(count) for name, count in machine.network.items()}
    resources = {**_size(machine.type), **_known_size(machine), **network, machine.resource: str(machine.count)}
    return _type(machine.type, architecture, resources, prices(machine), _labelled(labels, known))


def _known_size(machine: MachineType) -> Raw:
    known = {"cpu": machine.vcpus, "memory": machine.memory_mib and f"{machine.memory_mib}Mi"}
    return {name: str(amount) for name, amount in known.items() if amount is not None}


def _plain_type(name: str, price: float, labels: Mapping[str, str]) -> Raw:
    found = re.fullmatch(r"(?P<family>(?P<category>[a-z]+)(?P<generation>\d+)[a-z]*)\.(?P<size>.+)", name)
    assert found is not None
    return _type(name, "amd64", _size(name), {"spot": price * SPOT, "on-demand": price}, _labelled(labels, found.groupdict()))


def _labelled(labels: Mapping[str, str], known: Mapping[str, str | None]) -> list[Raw]:
    """Without the instance type, which Karpenter writes itself."""
    values = {key: known.get(attribute) for key, attribute in labels.items() if attribute != "type"}
    return [_requirement(key, () if value is None else (value,)) for key, value in values.items()]


def _type(name: str, architecture: str, resources: Raw, prices: Mapping[str, float], labels: Sequence[Raw]) -> Raw:
    offerings = [
        {
            "Price": price,
            "Requirements": [_requirement(CAPACITY, (capacity,)), _requirement("topology.kubernetes.io/zone", (ZONE,)), *labels],
        }
        for capacity, price in prices.items()
    ]
    return {"name": name, "architecture": architecture, "operatingSystems": ["linux"], "resources": resources, "offerings": offerings}


def _requirement(key: str, values: Iterable[str]) -> Raw:
    """One of the values; without any, that the label is not there."""
    given = list(values)
    return {"key": key, "operator": "In", "values": given} if given else {"key": key, "operator": "DoesNotExist"}


def _size(name: str) -> Raw:
    """What the size says: four vCPUs for an xlarge. Memory is that of most families with GPUs."""
    size = name.partition(".")[2]
    cpus = METAL.get(name) or 4 * int(size.removesuffix("xlarge") or 1)
    return {"cpu": str(cpus), "memory": f"{4 * cpus}Gi", "ephemeral-storage": "200Gi", "pods": "110"}


def start(cluster: Cluster, types: Sequence[Raw], **environment: str) -> Karpenter:
    """Karpenter with these machines: its CRDs, the KWOKNodeClass default, and the process, ready. It ends with the cluster.

    ``environment``: its settings by their names, over ENVIRONMENT; LOG_LEVEL="debug" tells most. Raises NoProgram, BuildFailed,
    ClusterFailed.
    """
    program = programs.path("karpenter")
    folder = programs.manifests("karpenter", "kwok/charts/crds", "kwok/apis/crds") / "kwok"
    crds = [file for part in ("charts", "apis") for file in sorted((folder / part / "crds").glob("*.yaml"))]
    apply_crds(cluster.api, crds, cluster.processes)
    reply = cluster.api.apply(NODE_CLASS)
    assert reply.ok, reply.message
    file = cluster.folder / "instance-types.json"
    file.write_text(json.dumps(list(types)))
    files = {"KUBECONFIG": str(cluster.kubeconfig), "INSTANCE_TYPES_FILE_PATH": str(file)}
    health, port = free_port(), free_port()
    ports = {"HEALTH_PROBE_PORT": str(health), "METRICS_PORT": str(port)}
    process = cluster.processes.start("karpenter", [str(program)], {**os.environ, **ENVIRONMENT, **files, **ports, **environment})
    cluster.wait_for(lambda: http_ok(f"http://{HOST}:{health}/readyz"), f"karpenter to be ready; its log is {process.log}")
    return Karpenter(process=process, port=port)


def node_pool(
    name: str,
    *,
    capacity: Sequence[str] = ("spot", "on-demand"),
    requirements: Mapping[str, Sequence[str]] | None = None,
    taints: Sequence[Raw] = (TAINTS["nvidia"],),
    labels: Mapping[str, str] | None = None,
    termination_grace: str | None = None,
    consolidate_after: str = "Never",
) -> Raw:
    """A NodePool for amd64 machines, tainted as GPU nodes are.

    ``requirements``: label -> its allowed values, beside architecture and capacity. ``labels``: of its nodes. ``termination_grace``:
    10m, after which a node goes with whatever still runs. ``consolidate_after``: 0s moves pods to cheaper nodes as soon as Karpenter
    looks; Never leaves nodes as they are, empty ones too.
    """
    wanted = {"kubernetes.io/arch": ["amd64"], CAPACITY: capacity, **(requirements or {})}
    spec: Raw = {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": NODE_CLASS["metadata"]["name"]},
        "requirements": [_requirement(key, values) for key, values in wanted.items()],
        "expireAfter": "Never",
        "taints": [*taints],
        **({} if termination_grace is None else {"terminationGracePeriod": termination_grace}),
    }
    disruption = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": consolidate_after}
    template = {"metadata": {"labels": dict(labels or {})}, "spec": spec}
    value = {"template": template, "disruption": disruption}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": value}
