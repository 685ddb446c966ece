"""The topology of a queue: what Berth writes of it is taken by Kueue, and only where the queue's flavors have one.

``make test`` has what is written in tests/policies/workloads/queues/test_queue_laws.py, and queues of a real Kueue in test_kueue.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import yaml

from tests.e2e import one_policy
from tests.e2e.judged import Judged, judged
from tests.e2e.workloads import APPLIED, NVIDIA
from tests.support.counts import only_in_prove
from tests.support.generators.random_worlds import catalog
from tests.testcluster import thirdparty
from tests.testcluster.addons import kueue, nodes
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import RUNS_FOR, Cluster
from tests.testcluster.fixtures import control_plane, needs_sources

pytestmark = only_in_prove

BLOCK, POOL = "cloud.provider.com/topology-block", "tests.berth.dev/fast"
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
GPUS = 16
SPEC: Raw = {"default": {"queue": {"kueue": "near", "topology": BLOCK}}}


def job(name: str, queue: str = "", gpus: int = 4, words: Raw | None = None) -> Raw:
    requests = {"cpu": "1", "memory": "1Gi"}
    limits = {NVIDIA: str(gpus)} if gpus else {}
    container = {"name": "main", "image": "main:1", "resources": {"requests": requests, "limits": limits}}
    template = {
        "metadata": {"annotations": {RUNS_FOR: "1s", **(words or {})}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    labels = {kueue.QUEUE: queue} if queue else {}
    spec = {"parallelism": 2, "completions": 2, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    """Two blocks of two machines, a queue whose flavor has their topology, and one whose flavor has none."""
    needs_sources(request.config, thirdparty.KUEUE)
    file = tmp_path_factory.mktemp("topology") / "policies.yaml"
    file.write_text(yaml.safe_dump_all([one_policy.in_namespaces("near", SPEC)]))
    (h100,) = catalog().models("H100-80GB")
    with control_plane(request.session) as cluster:
        for number in range(4):
            node = nodes.whole(f"fast-{number}", h100, 8)
            nodes.add(cluster, replace(node, labels={**node.labels, POOL: "yes", BLOCK: f"block-{number // 2}"}))
        kueue.start(cluster)
        with judged(cluster, "topology", namespaces={"near": {"policy": "near"}}, policies=file, by=["--queues"]) as found:
            cluster.wait_for(lambda: _queues(found), "Kueue's webhooks to take queues")
            yield found


def _queues(world: Judged) -> bool:
    levels = [{"nodeLabel": BLOCK}, {"nodeLabel": "kubernetes.io/hostname"}]
    topology = {"apiVersion": kueue.VERSION, "kind": "Topology", "metadata": {"name": "blocks"}, "spec": {"levels": levels}}
    reply = world.cluster.api.apply(topology)
    assert reply.ok, reply.message
    tolerations = [{"key": NVIDIA, "operator": "Exists"}]  # Kueue looks at templates: Berth's are on pods
    flavor = {"nodeLabels": {POOL: "yes"}, "topologyName": "blocks", "tolerations": tolerations}
    kueue.queues(world.cluster.api, "near", [world["near"]], GPUS, flavor)
    kueue.queues(world.cluster.api, "flat", [world["near"]], GPUS)
    return True


def _workload(world: Judged, name: str) -> Raw:
    found = kueue.workloads(world.cluster.api, world["near"])
    return next((one for one in found for owner in one["metadata"].get("ownerReferences", ()) if owner["name"] == name), {})


def _annotation(stored: Raw) -> str | None:
    found: str | None = (stored["spec"]["template"]["metadata"].get("annotations") or {}).get(PREFERRED)
    return found


def _finished(cluster: Cluster, namespace: str, name: str) -> bool:
    found = cluster.api.get("batch/v1", "Job", name, namespace) or {}
    return bool(found.get("status", {}).get("succeeded") == 2)


@pytest.mark.parametrize("queue", ["", "near"], ids=["the default queue", "the same queue by its author"])
def test_a_job_is_placed_by_the_topology_of_its_queue(world: Judged, queue: str) -> None:
    """Kueue admits it with a topology assignment, in one block, and it runs to its end."""
    name = f"placed-{queue or 'default'}"
    stored = world.cluster.api.create(job(name, queue), world["near"])
    assert _annotation(stored) == BLOCK
    assert stored["metadata"]["labels"][kueue.QUEUE] == "near"
    assert "podset-preferred-topology" in stored["metadata"]["annotations"][APPLIED]
    world.cluster.wait_for(lambda: _finished(world.cluster, world["near"], name), "the Job to finish")
    workload = _workload(world, name)
    assert workload["spec"]["podSets"][0]["topologyRequest"]["preferred"] == BLOCK
    (assigned,) = workload["status"]["admission"]["podSetAssignments"]
    assert assigned["topologyAssignment"]["levels"]
    placed = [
        one["spec"]["nodeName"] for one in world.cluster.api.list("v1", "Pod", world["near"]) if one["metadata"]["name"].startswith(name)
    ]
    assert len({int(node.removeprefix("fast-")) // 2 for node in placed}) == 1


def test_a_job_of_another_queue_gets_none_and_runs(world: Judged) -> None:
    """The policy says of one queue alone that it has a topology."""
    stored = world.cluster.api.create(job("flat", "flat"), world["near"])
    assert _annotation(stored) is None
    world.cluster.wait_for(lambda: _finished(world.cluster, world["near"], "flat"), "the Job to finish")


def test_a_queue_without_topology_never_admits_one_that_asks_for_it(world: Judged) -> None:
    """Which is why nothing is written that the policy does not say: Kueue names the flavor that has no topology."""
    world.cluster.api.create(job("trapped", "flat", words={PREFERRED: BLOCK}), world["near"])

    def told() -> bool:
        conditions = (_workload(world, "trapped").get("status") or {}).get("conditions") or ()
        return any(one["status"] == "False" and "does not support TopologyAwareScheduling" in one["message"] for one in conditions)

    world.cluster.wait_for(told, "Kueue to say why it does not admit the Job")
    world.cluster.api.delete({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "trapped", "namespace": world["near"]}})


def test_plain_jobs_and_authors_own_words_stay(world: Judged) -> None:
    """A Job without GPUs is in no queue; another level, or none, is the author's choice."""
    plain = world.cluster.api.create(job("plain", gpus=0), world["near"])
    assert (_annotation(plain), kueue.QUEUE in (plain["metadata"].get("labels") or {})) == (None, False)
    own = {"kueue.x-k8s.io/podset-unconstrained-topology": "true"}
    stored = world.cluster.api.create(job("own", words=own), world["near"])
    assert _annotation(stored) is None
    world.cluster.wait_for(lambda: _finished(world.cluster, world["near"], "own"), "the Job to finish")
