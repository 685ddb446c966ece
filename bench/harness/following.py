"""Run a replica that follows a real API server with many policies, namespaces, nodes and GPU pods, and see what disturbs its answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import yaml

from bench.harness.generators import LoadRun, on_core
from bench.harness.intervals import in_turn, median, ratio
from bench.harness.setting import BenchSetting, Candidate, milliseconds
from bench.inputs import many_policies
from documents.files import read_catalog
from policies.policy import API_VERSION
from tests.support import results_page
from tests.support.machine import BenchError
from tests.testcluster.addons import berth, installed, nodes
from tests.testcluster.addons.berth import SCOPE, Berth, create_namespace
from tests.testcluster.controlplane.api import Api, Raw
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.processes import ClusterFailed
from tests.testcluster.controlplane.starting import running
from tests.testcluster.go_build import BuildFailed
from tests.testcluster.programs import NoProgram

CONNECTIONS = 8
"""An API server on two cores takes some 500 creations a second however many there are."""
PODS_OF_A_JOB = 4
SECONDS, CALLS = 20.0, 300
"""Of one round of calls at fixed times; calls a second"""
MOST_SLOWER = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowingReplica:
    """A ready replica, and what it follows."""

    cluster: Cluster
    replica: Berth
    ready: float
    """seconds from its start until it was"""

    @property
    def pid(self) -> int:
        return self.replica.process.popen.pid


@dataclass(frozen=True, slots=True, kw_only=True)
class FullCluster:
    """A control plane that is full of GPU pods, and the replica that admitted them."""

    setting: BenchSetting
    cluster: Cluster
    candidate: Candidate
    kubeconfig: Path
    """of the audit's account"""

    def disturbed(self, name: str, disturbance: Callable[[], AbstractContextManager[object]]) -> Iterator[str]:
        """Yield a table and verdicts on calls at fixed times: alone, beside an unrelated program, beside ``disturbance``.

        The caller is urgent: it shares its core with the control plane and what else is at work, and must not be late itself.
        """

        def run(context: Callable[[], AbstractContextManager[object]]) -> LoadRun:
            with context():
                load = self.setting.start(self.candidate, "mixed", self.setting.pick(SECONDS, 1.5), {"rate": CALLS})
                os.setpriority(os.PRIO_PROCESS, load.process.pid, -15)
                return load.result()

        busy = partial(_busy, self.setting.cores.load)
        contexts = {"without": partial(run, nullcontext), "another program": partial(run, busy), name: partial(run, disturbance)}
        runs = in_turn(contexts, min(5, self.setting.rounds), warm_up=0)
        yield f"A replica's answers to {CALLS} calls a second at fixed times, medians of rounds in turn. The replica has one core; the"
        yield "caller, the control plane and what else is at work share the other."
        rows = ((s, f"{sum(r.failed for r in its)}", *(milliseconds(median(its, p)) for p in ("p50", "p99"))) for s, its in runs.items())
        yield from ("", *results_page.table(("beside it", "shed", "p50 ms", "p99 ms"), rows), "")
        for state in [*contexts][:2]:
            slower = ratio(runs[name], runs[state], "p99")
            claim = f'p99 beside "{name}" at most {MOST_SLOWER} of that beside "{state}"'
            yield results_page.shown(claim, str(slower), held=slower.middle <= MOST_SLOWER)


@contextmanager
def control_plane(setting: BenchSetting) -> Iterator[Cluster]:
    """Run etcd and kube-apiserver alone: no scheduler, controller or kubelet touches the pods. Raises BenchError if it cannot be had.

    Every process may use every core, this one included, until the end of the block.
    """
    os.sched_setaffinity(0, {setting.cores.server, setting.cores.load})
    try:
        with running(Options(kubelets=False, apiserver=("--delete-collection-workers=8",))) as cluster:
            create_namespace(cluster, "none")
            for name in ("kube-controller-manager", "kube-scheduler"):
                cluster.processes.end(cluster.named[name])
            yield cluster
    except (BuildFailed, ClusterFailed, NoProgram) as error:
        raise BenchError(str(error)) from None
    finally:
        os.sched_setaffinity(0, {setting.cores.load})


def started(cluster: Cluster, kubeconfig: Path, name: str = "live") -> FollowingReplica:
    """Start a replica and wait until it is ready."""
    begun = time.time()
    replica = berth.serve(cluster, name, kubeconfig)
    (serving,) = replica.events("serving")
    ready = datetime.fromisoformat(serving["time"]).timestamp() - begun
    return FollowingReplica(cluster=cluster, replica=replica, ready=ready)


@contextmanager
def full_cluster(
    setting: BenchSetting, name: str, specs: Mapping[str, Raw], jobs: int, namespaces: int, nodes: int
) -> Iterator[FullCluster]:
    """Run a replica with these policies beside a control plane that is full of GPU pods, which the replica admitted."""
    with control_plane(setting) as cluster:
        kubeconfig, auditor = installed.install(cluster), setting.folder / "auditor.kubeconfig"
        installed.write_kubeconfig(auditor, cluster, installed.token(cluster, account=installed.AUDITOR))
        following = started(cluster, kubeconfig, name)
        os.sched_setaffinity(following.pid, {setting.cores.server})
        for policy, spec in specs.items():
            apply_policy(cluster, policy, spec)
        values = berth.manifests(following.replica, scope=name, kubeconfig=kubeconfig)
        berth.register(cluster, values, following.replica, create_namespace(cluster, "probe", {SCOPE: name}))
        _for_each(cluster.api.create, fleet(nodes))
        _for_each(lambda number: create_namespace(cluster, f"team-{number}", {SCOPE: name}), range(namespaces))
        names = [node["metadata"]["name"] for node in fleet(nodes)]
        _for_each(lambda number: _create_job(cluster.api, f"team-{number % namespaces}", number, names), range(jobs))
        address = following.replica.url.partition("//")[2]
        candidate = Candidate(name=name, address=address, ca=following.replica.ca, pid=following.pid)
        yield FullCluster(setting=setting, cluster=cluster, candidate=candidate, kubeconfig=auditor)


def apply_policy(cluster: Cluster, name: str, spec: Raw) -> None:
    """Apply a ClusterGPUPolicy."""
    apply(cluster, {"apiVersion": API_VERSION, "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": spec})


def apply(cluster: Cluster, value: Raw) -> None:
    """Apply an object. Raises BenchError if it is denied."""
    reply = cluster.api.apply(value)
    if not reply.ok:
        raise BenchError(f"{value['kind']} {value['metadata']['name']} was denied: {reply.message}")


def fill(api: Api, folder: Path, *, policies: int, number_of_nodes: int) -> None:
    """Create the policies and namespaces of ``many_policies``, and nodes of every kind that the test cluster knows."""
    folder.mkdir()
    many_policies.write(policies, folder)
    for file in (folder / "namespaces.yaml", *sorted((folder / "policies").glob("*.yaml"))):
        _for_each(api.create, (value for value in yaml.load_all(file.read_text(), yaml.CSafeLoader) if value))
    _for_each(api.create, fleet(number_of_nodes))


def _create_job(api: Api, namespace: str, number: int, names: Sequence[str]) -> None:
    """Create a Job with its pods, bound as a scheduler binds them."""
    job, limits = {"apiVersion": "batch/v1", "kind": "Job"}, {"nvidia.com/gpu": str(1 + number % 8)}
    spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "train:1", "resources": {"limits": limits}}]}
    created = api.create({**job, "metadata": {"name": f"train-{number}"}, "spec": {"template": {"spec": spec}}}, namespace)
    owner = {**job, "name": f"train-{number}", "uid": created["metadata"]["uid"], "controller": True}
    for i in range(number * PODS_OF_A_JOB, (number + 1) * PODS_OF_A_JOB):
        metadata = {"name": f"train-{i}", "ownerReferences": [owner]}
        api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, namespace)
        target = {"apiVersion": "v1", "kind": "Node", "name": names[i % len(names)]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"train-{i}"}, "target": target}
        reply = api.call("POST", f"/api/v1/namespaces/{namespace}/pods/train-{i}/binding", binding)
        if not reply.ok:
            raise BenchError(reply.message)


def fleet(number: int) -> Iterator[Raw]:
    """Yield nodes of each kind in turn, with the labels that a cloud adds to what the GPU Operator writes."""
    kinds = nodes.bare_metal(read_catalog([]))
    for i in range(number):
        node: Raw = json.loads(json.dumps(kinds[i % len(kinds)].manifest()))
        name = f"ip-10-{i >> 16}-{i >> 8 & 255}-{i & 255}.ec2.internal"
        node["metadata"]["name"] = name
        node["metadata"]["labels"] |= {
            "kubernetes.io/hostname": name, "topology.kubernetes.io/region": "us-west-2",
            "topology.kubernetes.io/zone": f"us-west-2{'abcd'[i % 4]}", "topology.k8s.aws/zone-id": f"usw2-az{i % 4}",
            "example.com/rack": f"rack-{i // 16}", "example.com/serial": f"{i * 7919:012}",
        }  # fmt: skip
        yield node


@contextmanager
def _busy(core: int) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=on_core(core))
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _for_each(action: Callable[..., object], values: Iterable[object]) -> None:
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for _ in pool.map(action, values):
            pass  # raises what an action has raised
