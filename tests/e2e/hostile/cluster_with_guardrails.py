"""A cluster with guardrails, in whose namespaces others write policies; and what becomes of pods there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from random import Random

import pytest

from policies.policy import API_VERSION, GROUP
from tests.e2e.differential.pods import generated
from tests.e2e.hostile.laws import beyond
from tests.e2e.hostile.policies_of_owners import GUARDS, LABEL
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons import nodes
from tests.testcluster.addons.berth import PROBE, Berth, create_namespace, manifests, register, serve
from tests.testcluster.addons.installed import install
from tests.testcluster.controlplane.api import Api, Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.etcd import store
from tests.testcluster.fixtures import control_plane

NAMESPACES = {"closed": "closed", "open": "open", "bystander": "closed", "free": ""}
"""and the guard of each"""
PODS = count(10, 200)


@dataclass(kw_only=True)
class Hostile:
    """A cluster with guardrails, in whose namespaces others write policies."""

    cluster: Cluster
    replica: Berth
    editor: Api
    """may edit in the namespaces closed and open"""

    @cached_property
    def pods(self) -> list[Raw]:
        return [PROBE, *({"apiVersion": "v1", "kind": "Pod", **generated(Random(seed), f"p{seed}")} for seed in range(PODS))]

    @cached_property
    def before(self) -> dict[str, list[Reply]]:
        """What becomes of each pod while no namespace has a policy of its own."""
        return {namespace: self.created(namespace) for namespace in NAMESPACES}

    def created(self, namespace: str) -> list[Reply]:
        """Every pod, on dry run."""
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda pod: self.cluster.api.try_create(pod, namespace, dry_run=True), self.pods))

    def until(self, *there: str, gone: Sequence[str] = ()) -> None:
        """The replica knows these policies, or that it does not understand them, and no longer those."""

        def so() -> bool:
            page = json.loads(self.replica.page("/policies").body)
            known = page["policies"].keys() | page["rejected"].keys()
            return all(one in known for one in there) and not any(one in known for one in gone)

        self.cluster.wait_for(so, f"the replica to know {str(there)[:200]} and not {str(gone)[:200]}")

    def others_are_as_before(self, *changed: str) -> None:
        """In every namespace but those."""
        for namespace in NAMESPACES.keys() - set(changed):
            for now, before in zip(self.created(namespace), self.before[namespace], strict=True):
                assert outcome(now) == outcome(before), f"{namespace}: {outcome(now)} was {outcome(before)}"

    def granted_beyond(self, namespace: str) -> list[str]:
        """What pods there get that they must not."""
        pairs = zip(self.before[namespace], self.created(namespace), strict=True)
        return [found for before, now in pairs for found in beyond(before, now, NAMESPACES[namespace])]


def outcome(reply: Reply) -> tuple[int, str, Raw, tuple[str, ...]]:
    """Everything of an answer that is not of its moment."""
    return reply.status, reply.message, {**reply.body.get("spec", {}), **_marks(reply.body)}, reply.warnings


def _marks(pod: Raw) -> Raw:
    return {name: pod["metadata"].get(name) for name in ("labels", "annotations")} if pod.get("kind") == "Pod" else {}


@pytest.fixture(scope="module")
def hostile(request: pytest.FixtureRequest) -> Iterator[Hostile]:
    """With GPU nodes to be seen by, and an editor of two namespaces."""
    controllers = "namespace-controller,clusterrole-aggregation-controller"
    with control_plane(request.session, Options(kubelets=False, controllers=controllers)) as cluster:
        for node in nodes.bare_metal(catalog()):
            cluster.api.create(node.manifest())
        kubeconfig = install(cluster)
        for value in GUARDS:
            cluster.api.create(value)
        for name, guard in NAMESPACES.items():
            create_namespace(cluster, name, {LABEL: guard} if guard else {})
        replica = serve(cluster, "hostile", kubeconfig, "--platforms", "gfd,karpenter-aws")
        register(cluster, manifests(replica), replica, "free")
        editor = cluster.api.acting_as("editor", "system:authenticated")
        _let_edit(cluster, editor, "closed", "open")
        found = Hostile(cluster=cluster, replica=replica, editor=editor)
        assert found.before
        yield found


def _let_edit(cluster: Cluster, editor: Api, *namespaces: str) -> None:
    for namespace in namespaces:
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "editor", "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "editor"}],
        }
        cluster.api.create(binding)
        path = f"/apis/{API_VERSION}/namespaces/{namespace}/gpupolicies"
        cluster.wait_for(lambda path=path: editor.call("GET", path).ok, "the editor's rights")  # type: ignore[misc]


@pytest.fixture
def written(hostile: Hostile) -> Iterator[list[Raw]]:
    """Policies that are deleted afterwards."""
    values: list[Raw] = []
    yield values
    for value in values:
        hostile.cluster.api.delete(value)
    hostile.until(gone=[id_of(value) for value in values])


def id_of(value: Raw) -> str:
    """As Berth's log and pages name it."""
    return f"GPUPolicy/{value['metadata']['namespace']}/{value['metadata']['name']}"


@contextmanager
def put(hostile: Hostile, values: Mapping[str, Raw]) -> Iterator[None]:
    """Into etcd, under these keys, and known to the replica; gone on leaving."""
    ids = [id_of(value) for value in values.values()]
    with store(hostile.cluster) as etcd:
        for key, value in values.items():
            etcd.put(key, _stored(value))
        try:
            hostile.until(*ids)
            yield
        finally:
            for key in values:
                etcd.delete(key)
    hostile.until(gone=ids)


def key_of(value: Raw) -> str:
    """In etcd."""
    return f"/registry/{GROUP}/gpupolicies/{value['metadata']['namespace']}/{value['metadata']['name']}"


def _stored(value: Raw) -> bytes:
    metadata = {"uid": f"uid-{value['metadata']['name']}", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return json.dumps({**value, "metadata": {**value["metadata"], **metadata}}).encode()
