"""Kueue beside Berth: GPU workloads of a namespace with a default queue are queued, no others, and all that Kueue admits runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count as numbers
from typing import Any

import pytest
import yaml

from registration.configurations import FIRST_NAME
from tests.e2e import one_policy
from tests.e2e.judged import Judged, judged
from tests.e2e.workloads import APPLIED, NVIDIA
from tests.support.counts import PROVE, count
from tests.support.generators.random_worlds import catalog
from tests.testcluster import thirdparty
from tests.testcluster.addons import kueue, nodes, operators
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import RUNS_FOR, Cluster
from tests.testcluster.fixtures import control_plane, needs_sources

GPUS = 8
OF_EACH = count(2, 25)
"""Workloads of each kind, with GPUs and without, in each namespace."""
GROUPS = ("jobset.x-k8s.io", "leaderworkerset.x-k8s.io", "ray.io")
PREEMPTION = {"preemption": {"withinClusterQueue": "LowerPriority"}}
POLICIES: dict[str, Raw] = {
    "queued": {"default": {"queue": {"kueue": "gpu"}}},
    "free": {},
    "required": {"require": {"queue": {"kueue": ["gpu"]}}},
}
_number = numbers()


def job(template: Raw) -> Raw:
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}}


def job_set(template: Raw) -> Raw:
    replicated = [{"name": "workers", "replicas": 1, "template": {"spec": {"template": template}}}]
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": {"replicatedJobs": replicated}}


def leader_worker_set(template: Raw) -> Raw:
    group = {"size": 2, "workerTemplate": {**template, "spec": {**template["spec"], "restartPolicy": "Always"}}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "spec": {"replicas": 1, "leaderWorkerTemplate": group, "rolloutStrategy": {"type": "RollingUpdate"}},
    }


def ray_job(template: Raw) -> Raw:
    head = {"rayStartParams": {}, "template": _of({})}
    workers = [{"groupName": "w", "replicas": 1, "minReplicas": 1, "maxReplicas": 1, "rayStartParams": {}, "template": template}]
    cluster = {"headGroupSpec": head, "workerGroupSpecs": workers}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "spec": {"entrypoint": "true", "shutdownAfterJobFinishes": True, "rayClusterSpec": cluster},
    }


KINDS: dict[str, Callable[[Raw], Raw]] = {"Job": job, "JobSet": job_set, "LeaderWorkerSet": leader_worker_set, "RayJob": ray_job}


def _of(limits: Raw, seconds: int = 1, **spec: Any) -> Raw:
    """A pod template of one container, which kwok ends after some seconds."""
    requests = {"cpu": "1", "memory": "1Gi"}
    container = {"name": "main", "image": "main:1", "resources": {"requests": requests, "limits": limits}}
    return {
        "metadata": {"annotations": {RUNS_FOR: f"{seconds}s"}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


def named(made: Raw, name: str = "", **labels: str) -> Raw:
    return {**made, "metadata": {"name": name or f"{made['kind'].lower()}-{next(_number)}", "labels": labels}}


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One of this module's own, with Kueue and the kinds of three operators, none of which runs."""
    needs_sources(request.config, thirdparty.KUEUE)
    with control_plane(request.session) as started:
        nodes.add(started, *nodes.bare_metal(catalog()))
        operators.define(started, [one for one in operators.definitions(catalog(), 2**21) if one.group in GROUPS], schemas=PROVE)
        for name, value in (("low", 1), ("high", 1000)):
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
            started.api.create({**kind, "metadata": {"name": name}, "value": value})
        kueue.start(started)
        yield started


@pytest.fixture(scope="module")
def world(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    """Berth, called for workloads too, and a queue of eight GPUs in every namespace."""
    file = tmp_path_factory.mktemp("kueue") / "policies.yaml"
    file.write_text(yaml.safe_dump_all(one_policy.in_namespaces(name, spec) for name, spec in POLICIES.items()))
    namespaces = {name: {"policy": name} for name in POLICIES}
    with judged(cluster, "kueue", "--queues", "kueue", namespaces=namespaces, policies=file, by=["--queues"]) as found:
        cluster.wait_for(lambda: _queues(found), "Kueue's webhooks to take queues")
        yield found


def _queues(world: Judged) -> bool:
    kueue.queues(world.cluster.api, "gpu", list(world.names.values()), GPUS, **PREEMPTION)
    return True


@pytest.fixture(autouse=True)
def cleared(world: Judged) -> Iterator[None]:
    yield
    for kind, made in KINDS.items():
        for namespace in world.names.values():
            for one in world.cluster.api.list(made(_of({}))["apiVersion"], kind, namespace):
                world.cluster.api.delete({**one, "apiVersion": made(_of({}))["apiVersion"], "kind": kind}, grace=0)
    world.cluster.wait_for(lambda: not any(_held(world, key) for key in POLICIES), "Kueue to let all go")


def _held(world: Judged, key: str) -> set[tuple[str, str]]:
    """(kind, name) of what Kueue has a Workload of."""
    found = kueue.workloads(world.cluster.api, world[key])
    return {(owner["kind"], owner["name"]) for one in found for owner in one["metadata"].get("ownerReferences", ())}


def test_gpu_workloads_are_queued_and_no_others(world: Judged) -> None:
    """By label, as Berth writes it before Kueue is called, and by the Workload that Kueue makes; in a namespace without a default
    nothing is queued."""
    wanted: dict[str, set[tuple[str, str]]] = {"queued": set(), "free": set()}
    for key in wanted:
        for _ in range(OF_EACH):
            for kind, made in KINDS.items():
                for limits in ({NVIDIA: "1"}, {}):
                    stored = world.cluster.api.create(named(made(_of(limits))), world[key])
                    queued = key == "queued" and bool(limits)
                    assert (stored["metadata"].get("labels") or {}).get(kueue.QUEUE) == ("gpu" if queued else None), kind
                    if queued:
                        wanted[key].add((kind, stored["metadata"]["name"]))
    jobs = {pair for pair in wanted["queued"] if pair[0] != "LeaderWorkerSet"}  # whose groups Kueue names after their index
    world.cluster.wait_for(lambda: jobs <= _held(world, "queued"), "Kueue to have a Workload of each")
    assert {pair for pair in _held(world, "queued") if pair[0] != "LeaderWorkerSet"} == jobs
    assert _held(world, "free") == set()


def test_every_job_runs_once_and_is_patched_once(world: Judged) -> None:
    """All finish, inside the quota; of no pod was anything written twice."""
    names = [world.cluster.api.create(named(job(_of({NVIDIA: "2"}))), world["queued"])["metadata"]["name"] for _ in range(3 * OF_EACH)]
    names += [world.cluster.api.create(named(job(_of({}))), world["queued"])["metadata"]["name"] for _ in range(OF_EACH)]
    world.cluster.wait_for(lambda: all(_finished(world, name) for name in names), "every Job to finish")
    pods = world.cluster.api.list("v1", "Pod", world["queued"])
    assert len(pods) == len(names)
    for pod in pods:
        tolerations = Counter(str(sorted(one.items())) for one in pod["spec"].get("tolerations", ()))
        assert set(tolerations.values()) <= {1}, pod["spec"]["tolerations"]
        paths = [entry["path"] for entry in yaml.safe_load(pod["metadata"]["annotations"].get(APPLIED, "[]"))]
        assert len(paths) == len(set(paths))


def _finished(world: Judged, name: str, key: str = "queued") -> bool:
    found = world.cluster.api.get("batch/v1", "Job", name, world[key]) or {}
    return bool(found.get("status", {}).get("succeeded") == 1)


def test_a_preemption_and_a_requeue_come_through(world: Judged) -> None:
    """The Job of low priority gives its GPUs up to one of high priority, waits, and runs once that has finished."""
    low = named(job(_of({NVIDIA: "8"}, 600, priorityClassName="low")), "low")
    world.cluster.api.create(low, world["queued"])
    world.cluster.wait_for(lambda: _admitted(world, "low"), "Kueue to admit the Job of low priority")
    world.cluster.api.create(named(job(_of({NVIDIA: "8"}, 3, priorityClassName="high")), "high"), world["queued"])
    world.cluster.wait_for(lambda: _admitted(world, "high"), "Kueue to admit the Job of high priority")
    assert not _admitted(world, "low")
    world.cluster.wait_for(lambda: _finished(world, "high"), "the Job of high priority to finish")
    world.cluster.wait_for(lambda: _admitted(world, "low"), "Kueue to admit the other once more")


def _admitted(world: Judged, name: str) -> bool:
    found = kueue.workloads(world.cluster.api, world["queued"])
    return any(kueue.admitted(one) for one in found for owner in one["metadata"].get("ownerReferences", ()) if owner["name"] == name)


def test_an_authors_own_queue_stays(world: Judged) -> None:
    """A default never moves a workload."""
    stored = world.cluster.api.create(named(job(_of({NVIDIA: "1"})), **{kueue.QUEUE: "own"}), world["queued"])
    assert stored["metadata"]["labels"][kueue.QUEUE] == "own"


def test_a_workload_past_the_queue_is_refused(world: Judged) -> None:
    """It is told which label to write, and is queued with it; taking the label away later is refused too."""
    assert kueue.QUEUE in world.refused("required", named(job(_of({NVIDIA: "1"})), "past"), "BERTH-144")
    stored = world.cluster.api.create(named(job(_of({NVIDIA: "1"}, 600)), "inside", **{kueue.QUEUE: "gpu"}), world["required"])
    world.cluster.wait_for(lambda: ("Job", "inside") in _held(world, "required"), "Kueue to hold it")
    assert stored["spec"]["suspend"] is True
    removed = {"metadata": {"labels": {kueue.QUEUE: None}}}
    path = f"/apis/batch/v1/namespaces/{world['required']}/jobs/inside"
    reply = world.cluster.api.call("PATCH", path, removed, content="application/merge-patch+json")
    assert reply.status in (403, 422), reply.message


def test_a_job_is_queued_too_where_kueue_is_called_first(world: Judged) -> None:
    """The order of the configurations' names is then the other one: Kueue has let the Job pass by the time that it gets its label, and
    holds it back when it sees that."""
    api = world.cluster.api
    kind, version = "MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1"
    name = f"{FIRST_NAME}-{world.berth.name}"
    before = api.get(version, kind, name)
    assert before is not None
    later = {"apiVersion": version, "kind": kind, "webhooks": before["webhooks"], "metadata": {"name": f"zz-{name}"}}
    assert name < kueue.NAME < f"zz-{name}"
    api.delete({"apiVersion": version, "kind": kind, "metadata": {"name": name}})
    api.create(later)
    try:

        def labelled() -> bool:
            tried = api.try_create(named(job(_of({NVIDIA: "1"}))), world["queued"], dry_run=True)
            return tried.body["metadata"].get("labels", {}).get(kueue.QUEUE) == "gpu" and not tried.body["spec"].get("suspend")

        world.cluster.wait_for(labelled, "the API server to call Berth after Kueue")
        api.create(named(job(_of({NVIDIA: "1"}, 2)), "later"), world["queued"])
        world.cluster.wait_for(lambda: _admitted(world, "later"), "Kueue to admit the Job")
        world.cluster.wait_for(lambda: _finished(world, "later"), "the Job to finish")
    finally:
        api.delete(later)
        api.create({"apiVersion": version, "kind": kind, "webhooks": before["webhooks"], "metadata": {"name": name}})


def test_plain_jobs_come_and_go_while_berth_is_dead(world: Judged) -> None:
    """They are admitted and finished as if it were not there; the API server's entry for workloads is at Ignore."""
    world.berth.kill()
    world.cluster.processes.running.remove(world.berth.process)
    world.cluster.api.create(named(job(_of({})), "plain"), world["queued"])
    world.cluster.wait_for(lambda: _finished(world, "plain"), "the plain Job to finish")
    stored = world.cluster.api.create(named(job(_of({NVIDIA: "1"})), "silent"), world["queued"])
    assert kueue.QUEUE not in (stored["metadata"].get("labels") or {})
