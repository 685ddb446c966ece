"""Flavors of Kueue's real queues: what waits there for ever is told at `kubectl apply`, and really waits; what fits is told nothing,
and runs. Berth is there before Kueue is, and follows the cluster."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count as numbers
from random import Random
from typing import Any

import pytest

from policies.facts.admission_queues import KINDS
from tests.e2e.workloads import NVIDIA
from tests.support.counts import count, only_in_prove
from tests.support.generators.random_worlds import catalog
from tests.testcluster import thirdparty
from tests.testcluster.addons import berth, installed, kueue, nodes
from tests.testcluster.addons.berth import COMMAND, ROOT, SCOPE, Berth
from tests.testcluster.controlplane.api import Raw, Reply
from tests.testcluster.controlplane.cluster import RUNS_FOR, Cluster
from tests.testcluster.fixtures import control_plane, needs_sources

FAMILY, NAMESPACE, FREE, SCOPED = "nvidia.com/gpu.family", "flavors", "flavors-free", "flavors"
CODE = "BERTH-244"
POLICY: Raw = {
    "apiVersion": "berth.dev/v1alpha1",
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "hopper-only"},
    "spec": {
        "mode": "Enforce",
        "match": {"namespaceSelector": {"matchLabels": {"policy": "hopper-only"}}},
        "require": {"families": {"in": ["hopper"]}},
        "default": {"acceleratorTaints": "Tolerate"},
    },
}
TOLERATED: Raw = {"key": NVIDIA, "operator": "Exists", "effect": "NoSchedule"}
QUEUES: dict[str, Raw] = {
    "hopper": {"nodeLabels": {FAMILY: "hopper"}},
    "ampere": {"nodeLabels": {FAMILY: "ampere"}},
    "tainted": {"nodeLabels": {FAMILY: "hopper"}, "nodeTaints": [{"key": NVIDIA, "value": "present", "effect": "NoSchedule"}]},
}
"""The flavor of each queue."""
_number = numbers()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    cluster: Cluster
    berth: Berth

    def created(self, made: Raw) -> Reply:
        """The reply, with the warnings of its review."""
        reply = self.cluster.api.try_create(made, NAMESPACE)
        assert reply.ok, reply.message
        return reply

    def workload(self, name: str, namespace: str = NAMESPACE) -> Raw | None:
        """Kueue's Workload of a Job."""
        found = kueue.workloads(self.cluster.api, namespace)
        return next((one for one in found for owner in one["metadata"].get("ownerReferences", ()) if owner["name"] == name), None)

    def condition(self, name: str, type_: str, namespace: str = NAMESPACE) -> tuple[str, str]:
        """(status, reason) of a condition of a Job's Workload; ("", "") if it has none."""
        conditions = ((self.workload(name, namespace) or {}).get("status") or {}).get("conditions") or ()
        return next(((one["status"], one["reason"]) for one in conditions if one["type"] == type_), ("", ""))

    def why(self, target: str) -> Raw:
        """What `berth why` says of it, as JSON."""
        command = [*COMMAND, "why", target, "-n", NAMESPACE, "-o", "json", "--kubeconfig", str(self.cluster.kubeconfig)]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stderr
        found: Raw = json.loads(done.stdout)
        return found


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Berth follows the cluster and serves before Kueue's kinds are there; three queues of one flavor each."""
    needs_sources(request.config, thirdparty.KUEUE)
    with control_plane(request.session) as cluster:
        nodes.add(cluster, *nodes.bare_metal(catalog()))
        account = installed.install(cluster)
        cluster.api.create(POLICY)
        with berth.registered(cluster, SCOPED, account, "--platforms", "gfd", by=["--queues"]) as serving:
            berth.create_namespace(cluster, NAMESPACE, {SCOPE: SCOPED, "policy": "hopper-only"})
            berth.create_namespace(cluster, FREE, {SCOPE: SCOPED})
            assert all(serving.metric("berth_watch_healthy", kind=kind) == 1 for kind in KINDS)
            kueue.start(cluster)
            cluster.wait_for(lambda: _queues(cluster), "Kueue's webhooks to take queues")
            found = World(cluster=cluster, berth=serving)
            cluster.wait_for(lambda: _known(found), "Berth to know of the queues")
            yield found


def _queues(cluster: Cluster) -> bool:
    for name, spec in QUEUES.items():
        kueue.queues(cluster.api, name, [NAMESPACE, FREE], 500)
        flavor = {"apiVersion": kueue.VERSION, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}
        assert cluster.api.apply(flavor).ok
    return True


def _known(world: World) -> bool:
    """Berth warns of a queue that is not there, of both flavors that are no place, and not of the one that is: it lists each of
    Kueue's kinds by itself, at most half a minute after it is there."""
    told = {queue: world.cluster.api.try_create(job(queue), NAMESPACE, dry_run=True).warnings for queue in ("hoper", *QUEUES)}
    return {queue for queue, warnings in told.items() if any(CODE in one for one in warnings)} == {"hoper", "ampere", "tainted"}


def job(queue: str, name: str = "", **spec: Any) -> Raw:
    """One GPU, for ten minutes. No two are alike: of workloads like one that has no place Kueue says nothing
    (SchedulingEquivalenceHashing, pkg/cache/queue/cluster_queue.go)."""
    number = next(_number)
    requests = {"cpu": "1", "memory": f"{1024 + number}Mi"}
    container = {"name": "main", "image": "main:1", "resources": {"requests": requests, "limits": {NVIDIA: "1"}}}
    template = {
        "metadata": {"annotations": {RUNS_FOR: "600s"}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }
    metadata = {"name": name or f"job-{number}", "labels": {kueue.QUEUE: queue}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def test_a_job_that_fits_is_told_nothing_and_runs(world: World) -> None:
    """Its pod is on a node of the flavor, and `why` says that Kueue has admitted it."""
    assert world.created(job("hopper", "fits")).warnings == ()
    world.cluster.wait_for(lambda: world.condition("fits", "Admitted")[0] == "True", "Kueue to admit the Job")
    world.cluster.wait_for(lambda: _running(world, "fits"), "its pod to run")
    assert world.why("job/fits")["queue"]["state"] == "admitted"


def _pods(world: World, name: str) -> list[Raw]:
    return world.cluster.api.list("v1", "Pod", NAMESPACE, labelSelector=f"batch.kubernetes.io/job-name={name}")


def _running(world: World, name: str) -> bool:
    return any(pod.get("status", {}).get("phase") == "Running" for pod in _pods(world, name))


def test_a_job_that_policy_keeps_out_of_the_only_flavor(world: World) -> None:
    """It is told. Kueue admits it, for the template says nothing of families, and its pods are denied for ever."""
    (told,) = world.created(job("ampere", "kept-out")).warnings
    assert told.startswith(
        f"{CODE}: queue ampere (ampere) admits spec.template, but its pods never run: ClusterGPUPolicy/hopper-only denies them "
    )
    world.cluster.wait_for(lambda: world.condition("kept-out", "Admitted")[0] == "True", "Kueue to admit the Job")
    world.cluster.wait_for(lambda: world.why("job/kept-out")["state"] == "denied", "its pods to be denied")
    assert _pods(world, "kept-out") == []


@pytest.mark.parametrize(
    ("queue", "spec", "words"),
    [
        pytest.param("ampere", {"nodeSelector": {FAMILY: "hopper"}}, f"ampere has {FAMILY}=ampere", marks=only_in_prove),
        ("tainted", {}, f"tainted has taint {NVIDIA}=present:NoSchedule"),
    ],
    ids=["selector", "taint"],
)
def test_a_job_that_matches_no_flavor_waits_in_kueue(world: World, queue: str, spec: Raw, words: str) -> None:
    """It is told, and Kueue says the same in a condition; `why` says what it waits for and what to type. `make test` has selectors among
    the random Jobs below."""
    made = job(queue, **spec)
    name = made["metadata"]["name"]
    (told,) = world.created(made).warnings
    assert f"fits spec.template, so it never runs: {words}" in told
    world.cluster.wait_for(lambda: world.condition(name, "QuotaReserved")[0] == "False", "Kueue to look at the Job")
    world.cluster.wait_for(lambda: world.condition(name, "QuotaReserved")[1] != "PendingEvaluation", "Kueue to have a reason")
    assert _pods(world, name) == []
    found = world.why(f"job/{name}")["queue"]
    assert (found["state"], found["queue"]) == ("pending", queue)
    assert CODE in found["next"]


@only_in_prove
def test_a_tolerated_taint_is_none(world: World) -> None:
    """The toleration stands in the template, where Kueue reads it. `make test` has tolerations among the random Jobs below."""
    assert world.created(job("tainted", "tolerates", tolerations=[TOLERATED])).warnings == ()
    world.cluster.wait_for(lambda: world.condition("tolerates", "Admitted")[0] == "True", "Kueue to admit the Job")


def test_a_queue_that_is_not_there(world: World) -> None:
    """The nearest is named; Kueue waits for it in silence, and `why` tells."""
    (told,) = world.created(job("hoper", "lost")).warnings
    assert 'is "hoper", not a known LocalQueue' in told
    assert 'write "hopper"' in told
    assert CODE in world.why("job/lost")["queue"]["next"]
    assert world.condition("lost", "Admitted")[0] != "True"


def test_a_queue_that_is_stopped(world: World) -> None:
    """As it is stopped and opened again, a Job is told of it and is not."""
    api = world.cluster.api
    kueue.queues(api, "stopped", [NAMESPACE], 8)
    path = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/stopped"
    for policy, told in (("Hold", True), ("None", False)):
        assert api.call("PATCH", path, {"spec": {"stopPolicy": policy}}, content="application/merge-patch+json").ok

        def warned() -> bool:
            return any("is stopped" in one for one in api.try_create(job("stopped"), NAMESPACE, dry_run=True).warnings)

        world.cluster.wait_for(lambda told=told: warned() is told, f"Berth to know that spec.stopPolicy is {policy}")  # type: ignore[misc]


def test_a_queue_that_takes_nothing_of_the_namespace(world: World) -> None:
    """By the labels of the namespace; Kueue says so in a condition."""
    kueue.queues(world.cluster.api, "closed", [NAMESPACE], 8, namespaceSelector={"matchLabels": {"team": "other"}})

    def warned() -> bool:
        dry = world.cluster.api.try_create(job("closed"), NAMESPACE, dry_run=True)
        return any("excludes namespace" in one for one in dry.warnings)

    world.cluster.wait_for(warned, "Berth to know of the queue")
    made = job("closed", "closed-out")
    world.created(made)
    world.cluster.wait_for(lambda: world.condition("closed-out", "QuotaReserved")[0] == "False", "Kueue to look at the Job")
    assert _pods(world, "closed-out") == []


def _random_spec(random: Random) -> Raw:
    """Selectors and tolerations that an API server takes."""
    keys, values = (FAMILY, "pool", "zone"), ("hopper", "ampere", "a", "b")
    terms = []
    for _ in range(random.randint(0, 2)):
        expressions: list[Raw] = []
        for _ in range(random.randint(1, 2)):
            operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
            some = {"values": random.sample(values, random.randint(1, 2))} if operator.endswith("In") else {}
            expressions.append({"key": random.choice(keys), "operator": operator, **some})
        terms.append({"matchExpressions": expressions})
    nodes = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    tolerations: tuple[list[Raw], ...] = ([], [TOLERATED], [{"operator": "Exists"}], [{**TOLERATED, "effect": "NoExecute"}])
    return {
        "nodeSelector": {key: random.choice(values) for key in random.sample(keys, random.choice((0, 0, 1)))},
        "tolerations": random.choice(tolerations),
        **({"affinity": nodes} if terms else {}),
    }


def test_what_is_told_is_what_kueue_does(world: World) -> None:
    """Of random Jobs in a namespace without policies: Kueue gives quota to those, and only to those, that are not warned of."""
    random, told, names = Random(244), {}, []
    for _ in range(count(12, 240)):
        queue = random.choice(list(QUEUES))
        made = job(queue, **_random_spec(random))
        reply = world.cluster.api.try_create(made, FREE)
        assert reply.ok, reply.message
        names.append(made["metadata"]["name"])
        told[names[-1]] = any(CODE in one for one in reply.warnings)
    world.cluster.wait_for(lambda: all(_decided(world, name) for name in names), "Kueue to look at every Job")
    quota = {name: world.condition(name, "QuotaReserved", FREE)[0] == "True" for name in names}
    assert {name for name in names if quota[name] == told[name]} == set()
    assert set(told.values()) == {True, False}


def _decided(world: World, name: str) -> bool:
    status, reason = world.condition(name, "QuotaReserved", FREE)
    return bool(status) and reason != "PendingEvaluation"


def test_kueue_goes(world: World) -> None:
    """As its definition of LocalQueues is removed nothing is said of queues any more, and Berth goes on deciding."""
    definitions = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    world.cluster.api.delete({**definitions, "metadata": {"name": "localqueues.kueue.x-k8s.io"}})

    def silent() -> bool:
        replies = [world.cluster.api.try_create(job(queue), NAMESPACE, dry_run=True) for queue in ("hoper", "ampere")]
        return all(reply.ok and not reply.warnings for reply in replies)

    world.cluster.wait_for(silent, "Berth to know that LocalQueues are gone")
    world.cluster.wait_for(lambda: world.berth.metric("berth_watch_healthy", kind="LocalQueue") == 1, "Berth to want none of them")
    assert silent()
