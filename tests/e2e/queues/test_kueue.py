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
from tests.e2e.workloads import APP, APPLIED, NVIDIA, workload
from tests.support.counts import PROVE, count
from tests.support.generators.random_worlds import catalog
from tests.testcluster import thirdparty
from tests.testcluster.addons import kueue, nodes, operators
from tests.testcluster.controlplane.api import JSON_PATCH, MERGE, Raw
from tests.testcluster.controlplane.cluster import RUNS_FOR, Cluster
from tests.testcluster.fixtures import control_plane, needs_sources

GPUS = 8
OF_EACH = count(1, 25)
"""Workloads of each kind, with GPUs and without, in each namespace."""
GROUPS = ("jobset.x-k8s.io", "leaderworkerset.x-k8s.io", "ray.io")
PREEMPTION = {"preemption": {"withinClusterQueue": "LowerPriority"}}
POLICIES: dict[str, Raw] = {
    "queued": {"default": {"queue": {"kueue": "gpu"}}},
    "free": {},
    "required": {"require": {"queue": {"kueue": ["gpu"]}}},
    "placed": {"require": {"families": {"in": ["hopper"]}}},
}
GATE, MANAGED, GROUP = "kueue.x-k8s.io/admission", "kueue.x-k8s.io/managed", "kueue.x-k8s.io/pod-group-name"
ON_H100: Raw = {"nodeSelector": {"kubernetes.io/hostname": "h100"}, "tolerations": [{"key": NVIDIA, "operator": "Exists"}]}
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


MAKERS = ("ReplicaSet", "ReplicationController", "DaemonSet")
"""Kinds of Kubernetes' own that Kueue does not hold back: it holds back their pods."""
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
    world.clear(*MAKERS, "Pod")
    for kind, made in KINDS.items():
        for namespace in world.names.values():
            for one in world.cluster.api.list(made(_of({}))["apiVersion"], kind, namespace):
                world.cluster.api.delete({**one, "apiVersion": made(_of({}))["apiVersion"], "kind": kind}, grace=0)
    world.cluster.wait_for(
        lambda: not any(_held(world, key) for key in POLICIES if key != "placed"), "Kueue to let all go"
    )  # but for a group of pods, which it keeps until it is done


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


def test_a_workload_past_the_queue_is_denied(world: Judged) -> None:
    """It is told which label to write, and is queued with it; taking the label away later is denied too."""
    assert kueue.QUEUE in world.denied("required", named(job(_of({NVIDIA: "1"})), "past"), "BERTH-144")
    stored = world.cluster.api.create(named(job(_of({NVIDIA: "1"}, 600)), "inside", **{kueue.QUEUE: "gpu"}), world["required"])
    world.cluster.wait_for(lambda: ("Job", "inside") in _held(world, "required"), "Kueue to hold it")
    assert stored["spec"]["suspend"] is True
    removed = {"metadata": {"labels": {kueue.QUEUE: None}}}
    path = f"/apis/batch/v1/namespaces/{world['required']}/jobs/inside"
    reply = world.cluster.api.call("PATCH", path, removed, content="application/merge-patch+json")
    assert reply.status in (403, 422), reply.message


@pytest.mark.parametrize("kind", MAKERS)
def test_pods_that_only_say_that_kueue_holds_them_are_denied(world: Judged, kind: str) -> None:
    """A template with Kueue's gate, and the annotation by which Kueue leaves pods to their workload, has no pods; one with the label of the
    queue has a pod, which is admitted and runs."""
    limits, more = {NVIDIA: "1"}, {} if kind == "DaemonSet" else {"replicas": 1}
    dressed = _of(limits, 600, schedulingGates=[{"name": GATE}], **ON_H100)
    dressed["metadata"]["annotations"]["kueue.x-k8s.io/pod-suspending-parent"] = "statefulset"
    world.cluster.api.create(workload(kind, dressed, "dressed", **more), world["required"])
    honest = _of(limits, 600, **ON_H100)
    honest["metadata"]["labels"] = {kueue.QUEUE: "gpu"}
    world.cluster.api.create(workload(kind, honest, "honest", **more), world["required"])
    world.cluster.wait_for(lambda: _bound(world, "required", "honest"), "Kueue to admit the pod in its queue")
    denied = world.cluster.wait_for(lambda: _failed(world, "required", "dressed"), "the controller to make a pod")
    assert "BERTH-144: neither the pod nor its workload is in a Kueue queue" in denied
    assert world.cluster.api.list("v1", "Pod", world["required"], labelSelector=f"{APP}=dressed") == []


def _bound(world: Judged, key: str, name: str) -> bool:
    pods = world.cluster.api.list("v1", "Pod", world[key], labelSelector=f"{APP}={name}")
    return any(pod["spec"].get("nodeName") == "h100" for pod in pods)


def _failed(world: Judged, key: str, name: str) -> str:
    """Why its controller could not make a pod of the workload; "" if it could, or has not tried."""
    events = world.cluster.api.list("v1", "Event", world[key], fieldSelector=f"reason=FailedCreate,involvedObject.name={name}")
    return next((str(event["message"]) for event in events), "")


def test_a_pod_does_not_leave_kueue_once_its_place_is_left_to_it(world: Judged) -> None:
    """Policies write no affinity on a pod of a group, whose flavor places it. A patch that takes Kueue's mark and its gates is denied, and
    the pod is still held; one that Kueue admits runs."""
    for name, queue in (("leaves", "nobody"), ("stays", "gpu")):
        made = {"apiVersion": "v1", "kind": "Pod", **_of({NVIDIA: "1"}, **(ON_H100 if name == "stays" else {}))}
        made["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] = "1"
        labels = {APP: name, kueue.QUEUE: queue, GROUP: name, MANAGED: "true"}
        made["metadata"] |= {"name": name, "labels": labels}
        world.cluster.api.create(made, world["placed"])
    patch = [{"op": "remove", "path": path} for path in ("/spec/schedulingGates", f"/metadata/labels/{MANAGED.replace('/', '~1')}")]
    path = f"/api/v1/namespaces/{world['placed']}/pods/leaves"
    reply = world.cluster.api.call("PATCH", path, patch, content=JSON_PATCH)
    assert (reply.status, "BERTH-123: " in reply.message) == (403, True), reply.message
    world.cluster.wait_for(lambda: _bound(world, "placed", "stays"), "Kueue to admit the pod in its queue")
    stored = world.cluster.api.get("v1", "Pod", "leaves", world["placed"])
    assert stored is not None
    assert GATE in {gate["name"] for gate in stored["spec"]["schedulingGates"]}


def test_a_pod_whose_gate_its_author_lifts_is_ended_by_kueue(world: Judged) -> None:
    """Kueue ends a pod of its own that runs without being admitted, whatever workload is said to suspend it."""
    made = {"apiVersion": "v1", "kind": "Pod", **_of({NVIDIA: "1"}, 600, schedulingGates=[{"name": GATE}])}
    kueue.queues(world.cluster.api, "empty", [world["free"]], 0)
    for name, parent in (("lifted", {}), ("parented", {"kueue.x-k8s.io/pod-suspending-parent": "statefulset"})):
        metadata = {"name": name, "labels": {kueue.QUEUE: "empty", MANAGED: "true"}, "annotations": parent}
        world.cluster.api.create({**made, "metadata": metadata}, world["free"])
        path = f"/api/v1/namespaces/{world['free']}/pods/{name}"
        assert world.cluster.api.call("PATCH", path, {"spec": {"schedulingGates": None}}, content=MERGE).ok

        def gone(name: str = name) -> bool:
            found = world.cluster.api.get("v1", "Pod", name, world["free"])
            return found is None or "deletionTimestamp" in found["metadata"]

        world.cluster.wait_for(gone, f"Kueue to end the pod {name}")


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
