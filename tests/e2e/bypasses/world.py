"""Where the ways are tried: the nodes, classes and policies of a cluster that Berth follows, and a tenant for each guardrail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from tests.e2e.bypasses.attempts.names import EXCLUDED, EXTENDED, RENAMED
from tests.e2e.bypasses.guardrails import (
    AMD_NODE,
    CPU,
    FORBIDDEN,
    FORBIDDEN_NODE,
    GKE_NODE,
    GUARDRAILS,
    H100_NODE,
    LABEL,
    P5_NODE,
    SPOT_NODE,
    T4_NODE,
    Guardrail,
)
from tests.e2e.bypasses.way import Attempt, Outcome, Tenant, Way
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons import nodes
from tests.testcluster.addons.berth import SCOPE, Berth, create_namespace, registered
from tests.testcluster.addons.installed import install
from tests.testcluster.addons.nodes import FakeNode
from tests.testcluster.controlplane.api import ApiError, Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import ClusterFailed

OPTIONS = ("--platforms", "gfd,karpenter-aws", "--queues", "kueue,slurm-bridge", "--mig-strategy", "mixed")
TENANT = "tenant"
DRA = "resource.k8s.io/v1"
_MANY = "5000"
AT_ONCE = 8
"""ways that are tried side by side: more wait for two cores only"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a way and of its twin."""

    way: Way
    attack: Outcome
    twin: Outcome


@contextmanager
def world(cluster: Cluster) -> Iterator[tuple[Mapping[str, Tenant], Berth]]:
    """Guardrail -> who edits in its namespace."""
    kubeconfig = install(cluster)
    with ExitStack() as stack:
        stack.enter_context(_there(cluster, [*_classes(), *(guardrail.policy() for guardrail in GUARDRAILS)]))
        stack.enter_context(_nodes(cluster))
        berth = stack.enter_context(registered(cluster, "ways", kubeconfig, *OPTIONS, by=("--queues",)))
        tenants = {guardrail.name: stack.enter_context(_tenant(cluster, guardrail)) for guardrail in GUARDRAILS}
        for guardrail in GUARDRAILS:
            _in_force(cluster, guardrail, tenants[guardrail.name])
        yield tenants, berth
        for name in EXCLUDED:
            cluster.api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def run(tenants: Mapping[str, Tenant], ways: Sequence[Way]) -> list[Result]:
    """Side by side; in the order given."""

    def result(way: Way) -> Result:
        tenant = tenants[way.guard]
        return Result(way=way, attack=_tried(way.attack, tenant), twin=_tried(way.twin, tenant))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(result, ways))


def _tried(attempt: Attempt, tenant: Tenant) -> Outcome:
    """What nobody decided, in time or at all, is no pass of the one and no denial of the other."""
    try:
        return attempt(tenant.on_its_own())
    except (ApiError, ClusterFailed, OSError) as error:
        return Outcome(passed=False, message=str(error))


@contextmanager
def _there(cluster: Cluster, values: Sequence[Raw]) -> Iterator[None]:
    for value in values:
        cluster.api.create(value)
    try:
        yield
    finally:
        for value in values:
            cluster.api.delete(value)


@contextmanager
def _nodes(cluster: Cluster) -> Iterator[None]:
    made = list(_fleet())
    try:
        nodes.add(cluster, *made)
        yield
    finally:
        for node in made:
            cluster.api.delete({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name}})


def _fleet() -> Iterator[FakeNode]:
    """Each with room for every pod that might come: what a guardrail does not keep off a node runs there."""
    t4, h100, amd = (catalog().models(name)[0] for name in ("T4", "H100-80GB", "MI300X"))
    yield _roomy(nodes.whole(T4_NODE, t4, 8))
    yield _roomy(nodes.whole(H100_NODE, h100, 8))
    yield _roomy(nodes.whole(AMD_NODE, amd, 8))
    yield FakeNode(name=CPU)
    forbidden = _roomy(nodes.whole(FORBIDDEN_NODE, h100, 8))
    yield replace(forbidden, taints=(*forbidden.taints, {key: FORBIDDEN[key] for key in ("key", "value", "effect")}))
    spot = _roomy(nodes.whole(SPOT_NODE, t4, 8))
    aws = {
        "karpenter.sh/capacity-type": "spot",
        "karpenter.sh/nodepool": "gpu",
        "karpenter.k8s.aws/instance-family": "g4dn",
        "karpenter.k8s.aws/instance-gpu-name": "t4",
        "karpenter.k8s.aws/instance-gpu-memory": "16384",
        "karpenter.k8s.aws/instance-gpu-count": "1",
        "node.kubernetes.io/instance-type": "g4dn.xlarge",
    }
    p5 = _roomy(nodes.whole(P5_NODE, h100, 8))
    on_demand = {
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.k8s.aws/instance-family": "p5",
        "karpenter.k8s.aws/instance-gpu-name": "h100",
        "karpenter.k8s.aws/instance-gpu-memory": "81920",
        "karpenter.k8s.aws/instance-gpu-count": "8",
        "node.kubernetes.io/instance-type": "p5.48xlarge",
    }
    yield replace(p5, labels={**p5.labels, **aws, **on_demand})
    more = {f"nvidia.com/{name}": _MANY for name in ("mig-1g.10gb", "mig-7g.80gb", "gpu.shared")}
    more["acme.example/gpu"] = _MANY
    yield replace(spot, labels={**spot.labels, **aws}, resources={**spot.resources, **more})
    gke = {"cloud.google.com/gke-nodepool": "a", "cloud.google.com/gke-accelerator": "nvidia-tesla-t4", "cloud.google.com/gke-spot": "true"}
    on_gke = _roomy(nodes.whole(GKE_NODE, t4, 8))
    yield replace(on_gke, labels={**on_gke.labels, **gke})
    yield FakeNode(name="ways-renamed", taints=(nodes.TAINTS["nvidia"],), resources=dict.fromkeys(RENAMED, _MANY))


def _roomy(node: FakeNode) -> FakeNode:
    return replace(node, resources=dict.fromkeys([*node.resources, "pods", "cpu"], _MANY))


def _classes() -> Iterator[Raw]:
    """As administrators and drivers write them: one whose driver can be read, one whose can't, one by an extended resource's name; with
    names that say nothing, and that look like a GPU's; of whole GPUs alone, and of slices alone."""
    nvidia, type_ = "device.driver == 'gpu.nvidia.com'", "device.attributes['gpu.nvidia.com'].type"
    yield _class("ways-gpu", nvidia)
    yield _class("ways-odd", f"{type_} == 'gpu'")
    yield _class("ways-named", nvidia, extendedResourceName=EXTENDED)
    yield _class("ways-plain", nvidia)
    yield _class("h100", nvidia)
    yield from (_class(f"ways-{name}", f"{nvidia} && {type_} == '{value}'") for name, value in (("whole", "gpu"), ("mig", "mig")))


def _class(name: str, expression: str, **spec: str) -> Raw:
    selectors = [{"cel": {"expression": expression}}]
    return {"apiVersion": DRA, "kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}


@contextmanager
def _tenant(cluster: Cluster, guardrail: Guardrail) -> Iterator[Tenant]:
    """A namespace that Berth judges by this guardrail alone, and the service account that edits it."""
    labels = {SCOPE: "ways", LABEL: guardrail.name, "resource.kubernetes.io/admin-access": "true"}
    namespace = create_namespace(cluster, f"ways-{guardrail.name}", labels)
    where = {"name": TENANT, "namespace": namespace}
    cluster.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": where})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    subject = {"kind": "ServiceAccount", **where}
    rbac = "rbac.authorization.k8s.io/v1"
    cluster.api.create({"apiVersion": rbac, "kind": "RoleBinding", "metadata": where, "roleRef": role, "subjects": [subject]})
    resize = {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]}  # no part of edit; a cluster that lets its teams has it
    cluster.api.create({"apiVersion": rbac, "kind": "Role", "metadata": where, "rules": [resize]})
    own = {**role, "kind": "Role", "name": TENANT}
    named = {**where, "name": "resize"}
    cluster.api.create({"apiVersion": rbac, "kind": "RoleBinding", "metadata": named, "roleRef": own, "subjects": [subject]})
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    reply = cluster.api.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{TENANT}/token", asked)
    assert reply.ok, reply.message
    try:
        yield Tenant(api=replace(cluster.api, token=reply.body["status"]["token"]), cluster=cluster, namespace=namespace)
    finally:
        cluster.api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})


def _in_force(cluster: Cluster, guardrail: Guardrail, tenant: Tenant) -> None:
    """The binding acts, and Berth has the namespace and the policy: what is plainly wrong is denied, and its right twin is not."""

    def held() -> bool:
        wrong = tenant.api.try_create(guardrail.wrong, tenant.namespace, dry_run=True)
        return Outcome(passed=wrong.ok, message=wrong.message).held_by(guardrail.codes)

    cluster.wait_for(held, f"the guardrail {guardrail.name} to be in force")
