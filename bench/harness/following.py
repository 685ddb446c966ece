"""Run a replica that follows a real API server with many policies, namespaces, nodes and GPU pods, and see what disturbs its answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from tests.support import machine, results_page
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
ALONE, BUSY = "without", "another program at work"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSize:
    """How many objects there are; of namespaces at least those of ``many_policies``."""

    policies: int
    namespaces: int
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """A ready replica, and what it follows."""

    size: ClusterSize
    cluster: Cluster
    replica: Berth
    ready: float
    """seconds from its start until it was"""
    resident: float
    """MB then"""

    @property
    def pid(self) -> int:
        """Return the process."""
        return self.replica.process.popen.pid

    def memory(self) -> float:
        """Return resident MB (10**6 bytes)."""
        return self.replica.metric("process_resident_memory_bytes") / 1e6

    def candidate(self) -> Candidate:
        """Return the replica as a server under load."""
        return Candidate(name="replica", address=self.replica.url.partition("//")[2], ca=self.replica.ca, pid=self.pid)


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


def started(cluster: Cluster, size: ClusterSize, kubeconfig: Path, core: int | None = None, name: str = "live") -> Following:
    """Start a replica and wait until it is ready; then pin it to a core, if one is given."""
    begun = time.time()
    replica = berth.serve(cluster, name, kubeconfig)
    (serving,) = replica.events("serving")
    ready = datetime.fromisoformat(serving["time"]).timestamp() - begun
    if core is not None:
        os.sched_setaffinity(replica.process.popen.pid, {core})
    return Following(size=size, cluster=cluster, replica=replica, ready=ready, resident=machine.resident(replica.process.popen.pid))


def registered(cluster: Cluster, setting: BenchSetting, name: str, specs: Mapping[str, Raw]) -> tuple[Following, Path]:
    """Return a replica with these policies, registered for namespaces with SCOPE=``name``, and a kubeconfig of the audit's account."""
    kubeconfig, auditor = installed.install(cluster), setting.folder / f"{name}.kubeconfig"
    installed.write_kubeconfig(auditor, cluster, installed.token(cluster, account=installed.AUDITOR))
    following = started(cluster, ClusterSize(policies=len(specs), namespaces=0, nodes=0), kubeconfig, setting.cores.server, name)
    for policy, spec in specs.items():
        apply_policy(cluster, policy, spec)
    values = berth.manifests(following.replica, scope=name, kubeconfig=kubeconfig)
    berth.register(cluster, values, following.replica, create_namespace(cluster, "probe", {SCOPE: name}))
    return following, auditor


def apply_policy(cluster: Cluster, name: str, spec: Raw) -> None:
    """Apply a ClusterGPUPolicy. Raises BenchError if it is denied."""
    reply = cluster.api.apply({"apiVersion": API_VERSION, "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": spec})
    if not reply.ok:
        raise BenchError(reply.message)


def fill(api: Api, size: ClusterSize, folder: Path) -> None:
    """Create the policies of ``many_policies``, its namespaces and more, and nodes of every kind that the test cluster knows."""
    folder.mkdir()
    many_policies.write(size.policies, folder)
    namespaces = list(_read(folder / "namespaces.yaml"))
    for number in range(len(namespaces), size.namespaces):
        labels = {"unit": f"plain-{number:05}", "environment": "test"}
        namespaces.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": labels["unit"], "labels": labels}})
    policies = (value for file in sorted((folder / "policies").glob("*.yaml")) for value in _read(file))
    for values in (namespaces, policies, fleet(size.nodes)):
        _for_each(api.create, values)


def fill_with_jobs(cluster: Cluster, name: str, jobs: int, namespaces: int, number_of_nodes: int) -> None:
    """Create nodes, namespaces with SCOPE=``name``, and Jobs with their pods, bound as a scheduler binds them."""
    api, names = cluster.api, [node["metadata"]["name"] for node in fleet(number_of_nodes)]
    _for_each(api.create, fleet(number_of_nodes))
    _for_each(lambda number: create_namespace(cluster, f"team-{number}", {SCOPE: name}), range(namespaces))

    def create_job(number: int) -> None:
        namespace, job = f"team-{number % namespaces}", {"apiVersion": "batch/v1", "kind": "Job"}
        limits = {"nvidia.com/gpu": str(1 + number % 8)}
        spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "train:1", "resources": {"limits": limits}}]}
        created = api.create({**job, "metadata": {"name": f"train-{number}"}, "spec": {"template": {"spec": spec}}}, namespace)
        owner = {**job, "name": f"train-{number}", "uid": created["metadata"]["uid"], "controller": True}
        for index in range(PODS_OF_A_JOB):
            pod = f"train-{number}-{index}"
            api.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "ownerReferences": [owner]}, "spec": spec}, namespace)
            node = names[(number * PODS_OF_A_JOB + index) % number_of_nodes]
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
            reply = api.call("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", binding)
            if not reply.ok:
                raise BenchError(reply.message)

    _for_each(create_job, range(jobs))


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


def disturbed(
    setting: BenchSetting, following: Following, name: str, disturbance: Callable[[], AbstractContextManager[object]]
) -> Iterator[str]:
    """Yield a table of calls at fixed times: alone, beside a program that knows nothing of the cluster, beside the disturbance; verdicts.

    The caller is urgent: it shares its core with the control plane and what else is at work, and must not be late itself.
    """

    def run(context: Callable[[], AbstractContextManager[object]]) -> LoadRun:
        with context():
            load = setting.start(following.candidate(), "mixed", setting.pick(SECONDS, 1.5), {"rate": CALLS})
            os.setpriority(os.PRIO_PROCESS, load.process.pid, -15)
            return load.result()

    contexts: dict[str, Callable[[], AbstractContextManager[object]]] = {
        ALONE: nullcontext,
        BUSY: partial(_busy, setting.cores.load),
        name: disturbance,
    }
    runs = in_turn({state: partial(run, context) for state, context in contexts.items()}, min(5, setting.rounds), warm_up=0)
    rows = [
        (state, f"{sum(r.calls for r in its):,}", f"{sum(r.failed for r in its)}", *(milliseconds(median(its, p)) for p in ("p50", "p99")))
        for state, its in runs.items()
    ]
    yield f"A replica's answers to {CALLS} calls a second at fixed times, medians of rounds in turn. The replica has one core; the"
    yield "caller, the control plane and what else is at work share the other."
    yield from ("", *results_page.table(("beside it", "calls", "shed", "p50 ms", "p99 ms"), rows), "")
    for state in (ALONE, BUSY):
        slower = ratio(runs[name], runs[state], "p99")
        claim = f'p99 beside "{name}" at most {MOST_SLOWER} of that beside "{state}"'
        yield results_page.shown(claim, str(slower), slower.middle <= MOST_SLOWER)


@contextmanager
def _busy(core: int) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=on_core(core))
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _read(file: Path) -> Iterator[Raw]:
    return (value for value in yaml.load_all(file.read_text(), yaml.CSafeLoader) if value)


def _for_each(action: Callable[..., object], values: Iterable[object]) -> None:
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for _ in pool.map(action, values):
            pass  # raises what an action has raised
