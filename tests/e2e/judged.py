"""A Berth of a test module's own, with the namespaces that it judges, and nodes of a test's own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from tests.e2e import workloads
from tests.testcluster.addons import nodes
from tests.testcluster.addons.berth import SCOPE, Berth, create_namespace, registered
from tests.testcluster.addons.nodes import FakeNode
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

POLICIES = Path(__file__).parent / "policies"
POOL = "tests.berth.dev/pool"
"""Label of a test's own nodes. No platform knows it, so policies leave a selector on it alone."""
KNOWN = "namespaces,nodes"
"""What a dump of facts holds, as kubectl names it."""
_number = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A Berth and its namespaces."""

    cluster: Cluster
    berth: Berth
    facts: Path
    """what it knows of the cluster; it follows the file"""
    names: Mapping[str, str]
    """of the namespaces, by what a test calls them; ``plain`` is judged by no Berth"""

    def __getitem__(self, key: str) -> str:
        return self.names[key]

    def calls(self) -> float:
        """How often the API server has called Berth, on any path."""
        return self.berth.metric("berth_requests_total")

    def denied(self, key: str, made: Raw, code: str) -> str:
        """The sentence, after this code, with which Berth denies the pod in the namespace that is called ``key``."""
        reply = self.cluster.api.try_create(made, self[key])
        assert (reply.status, reply.body.get("reason")) == (403, "Forbidden"), reply.message or "it was stored"
        before, _, message = reply.message.partition(" denied the request: ")
        assert before.endswith('.berth.dev"'), reply.message
        assert message.startswith(f"{code}: "), message
        return message.removeprefix(f"{code}: ")

    def clear(self, *kinds: str) -> None:
        """No pod is left in its namespaces, and no workload of these kinds: of every kind, unless some are named."""
        workloads.clear(self.cluster, self.names.values(), kinds or tuple(workloads.KINDS))


@contextmanager
def judged(
    cluster: Cluster,
    name: str,
    *options: str,
    namespaces: Mapping[str, Mapping[str, str]],
    known: str = KNOWN,
    objects: Sequence[Raw] = (),
    policies: Path | None = None,
    excluded: Sequence[str] = (),
    by: Sequence[str] = (),
) -> Iterator[Judged]:
    """Berth ``name`` on bare metal, for new namespaces with these labels; and one called ``plain`` that it does not judge.

    ``known``: what kubectl dumps as its facts. ``objects``: what is in each of the namespaces before that. ``policies``: the file;
    without it the one of that name. ``excluded``: namespaces that the registration leaves out by name. ``by``: options of `berth webhooks`.
    Another Berth each time.
    """
    scope = f"{name}-{next(_number)}"
    names = {key: _namespace(cluster, f"{name}-{key}", {SCOPE: scope, **labels}, objects) for key, labels in namespaces.items()}
    names["plain"] = _namespace(cluster, f"{name}-plain", {}, objects)
    facts = cluster.folder / f"facts-{scope}.yaml"
    dump(cluster, known, facts)
    where = ("--platforms", "gfd", "--from", str(facts), "--lame-duck", "0", *options)  # its registration is gone before it is
    try:
        with registered(cluster, scope, [policies or POLICIES / f"{name}.yaml"], *where, excluded=excluded, by=by) as berth:
            yield Judged(cluster=cluster, berth=berth, facts=facts, names=names)
    finally:
        for namespace in (*names.values(), f"probe-{scope}"):
            cluster.api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})


def _namespace(cluster: Cluster, name: str, labels: Mapping[str, str], objects: Sequence[Raw]) -> str:
    """Its name. Where tests run in another order, the one that was there before goes first."""
    cluster.wait_for(lambda: cluster.api.get("v1", "Namespace", name) is None, f"namespace {name} to be gone")
    create_namespace(cluster, name, dict(labels))
    for value in objects:
        cluster.api.create(value, name)
    return name


def dump(cluster: Cluster, known: str, file: Path) -> None:
    """As the documentation says: kubectl get ... -o yaml > FILE. At once, so that Berth never reads half of it."""
    done = subprocess.run(cluster.kubectl("get", known, "--all-namespaces", "-o", "yaml"), capture_output=True, check=True)
    whole = file.with_suffix(".new")
    whole.write_bytes(done.stdout)
    whole.replace(file)


@contextmanager
def pool(cluster: Cluster, name: str, *members: FakeNode) -> Iterator[dict[str, str]]:
    """Nodes that are there for one test; yields the nodeSelector of a pod that may run on them alone. Pods on them go first."""
    selector = {POOL: name}
    try:
        nodes.add(cluster, *(replace(node, labels={**node.labels, **selector}) for node in members))
        yield selector
    finally:
        for node in members:
            for one in cluster.api.list("v1", "Pod", fieldSelector=f"spec.nodeName={node.name}"):
                cluster.api.delete({"apiVersion": "v1", "kind": "Pod", **one}, grace=0)
            cluster.api.delete({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name}})
