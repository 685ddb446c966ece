"""A cluster that several people share: namespaces with GPU pods and policies, nodes, and a console; every name in it is nobody else's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from console.access.rights import CLUSTER_WIDE, NAMESPACED, REPORTS
from tests.deploy.rendering import of_kind, rendered
from tests.testcluster.controlplane.api import Api, Raw
from tests.testcluster.controlplane.cluster import Cluster

SYSTEM, PEOPLE = "berth-system", "people"
RBAC = "rbac.authorization.k8s.io"
V1ALPHA1 = "berth.dev/v1alpha1"
KINDS = (*NAMESPACED.values(), *REPORTS)
POOLS: Raw = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "nodepools.karpenter.sh"},
    "spec": {
        "group": "karpenter.sh",
        "scope": "Cluster",
        "names": {"kind": "NodePool", "plural": "nodepools", "singular": "nodepool", "listKind": "NodePoolList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@dataclass(slots=True, kw_only=True)
class Names:
    """What there is, by kind; of namespaced kinds as (namespace, name)."""

    namespaces: list[str] = field(default_factory=list)
    pods: list[tuple[str, str]] = field(default_factory=list)
    workloads: list[tuple[str, str]] = field(default_factory=list)
    own_policies: list[tuple[str, str]] = field(default_factory=list)
    cluster_policies: list[str] = field(default_factory=list)
    node_templates: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    node_pools: list[str] = field(default_factory=list)
    words: list[tuple[str, str]] = field(default_factory=list)
    """(namespace, a word of an Event there)"""
    running: list[tuple[str, str]] = field(default_factory=list)
    """(namespace, node) of pods that are bound"""


def fill(cluster: Cluster, random: Random, namespaces: int) -> Names:
    """Make it."""
    names, api = Names(), cluster.api

    def new(kind: str) -> str:
        return f"{kind}-{random.getrandbits(40):010x}"

    for name in (SYSTEM, PEOPLE):
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for _ in range(3):
        names.node_pools.append(new("pool"))
        _made(api, {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": names.node_pools[-1]}, "spec": _pool()})
    for number in range(4):
        names.nodes.append(new("node"))
        _node(api, names.nodes[-1], names.node_pools[number % 3])
    for _ in range(2):
        names.node_templates.append(new("template"))
        spec = {"gpus": {"families": {"in": ["ampere"]}}, "labels": {"pool": names.node_templates[-1]}}
        _made(api, {"apiVersion": V1ALPHA1, "kind": "GPUNodeTemplate", "metadata": {"name": names.node_templates[-1]}, "spec": spec})
    for spec in _cluster_specs():
        names.cluster_policies.append(new("guard"))
        _made(api, {"apiVersion": V1ALPHA1, "kind": "ClusterGPUPolicy", "metadata": {"name": names.cluster_policies[-1]}, "spec": spec})
    for _ in range(namespaces):
        add_namespace(api, random, names, new("team"))
    return names


def add_namespace(api: Api, random: Random, names: Names, namespace: str) -> None:
    """Make a namespace with pods, and perhaps a policy."""
    names.namespaces.append(namespace)
    _made(api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for _ in range(2):
        pod, job = f"pod-{random.getrandbits(40):010x}", f"job-{random.getrandbits(40):010x}"
        names.pods.append((namespace, pod))
        names.workloads.append((namespace, job))
        made = _pod(pod, job, random.choice((1, 2, 4)))
        if random.random() < 0.5:
            made["spec"]["nodeName"] = random.choice(names.nodes)
            names.running.append((namespace, made["spec"]["nodeName"]))
        _made(api, made, namespace)
    names.words.append((namespace, f"word-{random.getrandbits(40):010x}"))
    _made(api, _event(namespace, names.workloads[-1][1], names.words[-1][1]), namespace)
    if random.random() < 0.6:
        names.own_policies.append((namespace, f"own-{random.getrandbits(40):010x}"))
        spec = {"mode": random.choice(("Audit", "Enforce")), "default": {"gracePeriod": "10m"}}
        _made(api, {"apiVersion": V1ALPHA1, "kind": "GPUPolicy", "metadata": {"name": names.own_policies[-1][1]}, "spec": spec}, namespace)


def _made(api: Api, value: Raw, namespace: str | None = None) -> None:
    api.create(value, namespace)


def _pool() -> Raw:
    requirement = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["p4d"]}
    return {"template": {"spec": {"requirements": [requirement]}}}


def _node(api: Api, name: str, pool: str) -> None:
    labels = {"karpenter.sh/nodepool": pool, "node.kubernetes.io/instance-type": "p4d.24xlarge", "karpenter.sh/capacity-type": "on-demand"}
    value: Raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
    amounts = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
    api.create(value)
    api.patch(value, {"status": {"capacity": amounts, "allocatable": amounts}}, subresource="status")


def _cluster_specs() -> list[Raw]:
    return [
        {"mode": "Enforce", "require": {"gpusPerPod": {"max": 2}}},
        {"mode": "Audit", "require": {"gpusPerPod": {"max": 1}}},
        {"mode": "Audit", "default": {"acceleratorTaints": "Tolerate"}},
        {"mode": "Enforce", "default": {"gracePeriod": "5m"}},
    ]


def _pod(name: str, job: str, gpus: int) -> Raw:
    amounts = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "c", "image": "registry.example/c:1", "resources": {"requests": amounts, "limits": amounts}}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job, "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }


def _event(namespace: str, job: str, word: str) -> Raw:
    """As the Job controller tells of a pod that was denied."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": word},
        "involvedObject": {"apiVersion": "batch/v1", "kind": "Job", "name": job, "namespace": namespace},
        "reason": "FailedCreate",
        "message": f"Error creating: admission webhook denied the request: {word}",
        "type": "Warning",
        "source": {"component": "job-controller"},
    }


def account(api: Api) -> str:
    """The console's own, with exactly the rights of the chart. Returns a token of it."""
    for value in rendered({"console": {"enabled": True}}, "--show-only=templates/console-rights.yaml", namespace=SYSTEM):
        assert (reply := api.apply(value)).ok, reply.message
    [found] = of_kind(rendered({"console": {"enabled": True}}, "--show-only=templates/console-rights.yaml"), "ServiceAccount")
    return token_of(api, SYSTEM, found["metadata"]["name"])


def token_of(api: Api, namespace: str, name: str, *, seconds: int = 3600, bound: Raw | None = None) -> str:
    """A token of a service account. ``bound``: an object with whose end it ends too."""
    spec: Raw = {"expirationSeconds": seconds, **({"boundObjectRef": bound} if bound else {})}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    reply = api.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", body)
    assert reply.ok, reply.message
    return str(reply.body["status"]["token"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Someone:
    """A person, who is a service account."""

    name: str
    token: str
    api: Api
    """As themselves."""


def someone(api: Api, name: str, cluster_wide: Sequence[Raw] = (), by_namespace: Iterable[tuple[str, Sequence[Raw]]] = ()) -> Someone:
    """Make a person who has these rules in the cluster, and those in namespaces."""
    _made(api, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}, PEOPLE)
    if cluster_wide:
        grant(api, name, None, cluster_wide)
    for namespace, rules in by_namespace:
        grant(api, name, namespace, rules)
    token = token_of(api, PEOPLE, name)
    return Someone(name=name, token=token, api=replace(api, token=token, user=None))


def rule(group: str, plural: str, *verbs: str, names: Sequence[str] = ()) -> Raw:
    """One rule of a role: to list, where no verb is given."""
    return {
        "apiGroups": [group],
        "resources": [plural],
        "verbs": list(verbs or ("list",)),
        **({"resourceNames": list(names)} if names else {}),
    }


def grant(api: Api, name: str, namespace: str | None, rules: Sequence[Raw]) -> None:
    """Give somebody these rules, in a namespace or in the cluster."""
    kind, metadata = ("Role", {"name": name, "namespace": namespace}) if namespace else ("ClusterRole", {"name": name})
    _made(api, {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": list(rules)}, namespace)
    ref = {"apiGroup": RBAC, "kind": kind, "name": name}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": PEOPLE}]
    _made(
        api, {"apiVersion": f"{RBAC}/v1", "kind": f"{kind}Binding", "metadata": metadata, "roleRef": ref, "subjects": subjects}, namespace
    )


def may_list(who: Someone, group: str, plural: str, namespace: str = "") -> bool:
    """What `kubectl auth can-i list` prints, asked with their own token."""
    asked = {"verb": "list", "group": group, "resource": plural, "namespace": namespace}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": asked}}
    reply = who.api.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    assert reply.status == 201, reply.message
    return bool(reply.body["status"]["allowed"])


def random_rules(random: Random, names: Names, number: int) -> tuple[list[Raw], list[tuple[str, list[Raw]]]]:
    """Rules in the cluster and in namespaces, some of which look as if they let somebody list and do not."""
    everywhere = [rule(*kind) for kind in (*KINDS, *CLUSTER_WIDE.values()) if random.random() < 0.4]
    everywhere += [rule("", "pods", "get", "watch"), rule("", "nodes", names=names.nodes[:1])]
    everywhere += [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list"]}] if number % 12 == 11 else []
    some = random.sample(names.namespaces, random.randint(0, len(names.namespaces) // 2))
    return everywhere, [(one, [rule(*kind) for kind in KINDS if random.random() < 0.5] or [rule("", "configmaps")]) for one in some]
