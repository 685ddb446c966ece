"""Berth under load while its replicas are rolled, drained, killed, rotated and overrun: judged by the API server's answers alone.

``make test`` has a rollout and a rollback on real kubelets under load (``test_installing``); drains, kills, rotations and overruns as
processes: ``tests/server/test_drain.py``, ``tests/e2e/webhooks/test_dead.py``, ``tests/e2e/certificates``,
``tests/server/test_load_shedding.py``; and memory that stays: ``tests/fuzz/test_wire.py``.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle

import pytest

from tests.e2e.installation.arrivals import Arrivals, arriving, gpu_pod
from tests.e2e.installation.installed import RATE, REPLICAS, Installation
from tests.support.counts import only_in_prove
from tests.testcluster.addons import shared_secret
from tests.testcluster.addons.installed import NAMESPACE
from tests.testcluster.controlplane.api import Raw

pytestmark = only_in_prove
ROLLOUTS, DRAINS, KILLS, STARTS = 20, 20, 30, 50
LEAVES, CAS = 500, 20
AGAIN = 2
"""times that a container is started again; ten and twenty seconds later than at first"""
WORKERS = 10
"""pods of the Job that its controller makes while a replica is killed"""
QUIET = 10
"""Seconds without a failure: twice the time that a call may take which leads nowhere."""
CALM, OVERRUN = 5, 120
"""Seconds before and after an overrun, and of it."""
MANY = 200
"""callers of an overrun, each of whom waits for its answer"""
RECOVERED = 5
"""seconds"""
SOAK = 3600
"""seconds"""
FEWEST = 4
"""Samples of memory, however slow the machine is: a slope takes two, and the second half is looked at."""
SLOPE = 1.0
"""MiB an hour"""
OPTIONS = ("--set", "certificates.caOverlap=4s", "--set", "library.policies={berth-default},library.mode=Enforce")


@pytest.fixture(scope="module", autouse=True)
def installed(installation: Installation, team: str) -> None:
    installation.install("--wait")
    installation.upgrade(*OPTIONS, "--wait")
    installation.settle()
    installation.rig.cluster.wait_for(lambda: installation.is_judged(team), "a GPU pod to be admitted with what policies add")


@pytest.fixture
def load(installation: Installation, team: str) -> Iterator[Arrivals]:
    """Every creation of it that succeeds is judged."""
    with arriving(installation.api, team, RATE) as arrivals:
        yield arrivals
    print(arrivals)
    assert arrivals.unpoliced() == 0


def test_rolling_updates(installation: Installation, load: Arrivals) -> None:
    """Every replica is replaced by a new one."""
    for _ in range(ROLLOUTS):
        before = {pod["metadata"]["uid"] for pod in installation.replicas()}
        installation.roll()
        assert before.isdisjoint(pod["metadata"]["uid"] for pod in installation.replicas())
    assert load.failed() == []


def test_drained_nodes(installation: Installation, load: Arrivals) -> None:
    """A node is emptied as for maintenance; the disruption budget lets one replica go at a time."""
    for _ in range(DRAINS):
        name = installation.replicas()[0]["spec"]["nodeName"]
        installation.rig.drain(name)
        assert name not in {pod["spec"]["nodeName"] for pod in installation.replicas()}
        installation.rig.uncordon(name)
        installation.settle()
    assert load.failed() == []


def test_killed_replicas(installation: Installation, load: Arrivals, team: str) -> None:
    """kill -9: only what was under way may fail, and what controllers make comes all the same."""
    lost = []
    for number in range(KILLS):
        job = _job(f"during-{number}")
        installation.api.create(job, team)
        before, begun = len(load.failed()), time.monotonic()
        _kill(installation)
        _wait_for_workers(installation, job, team)
        lost.append(len(load.failed()) - before)
        print(f"killed: {lost[-1]} creations failed, all is back after {time.monotonic() - begun:.1f} s: {load.failed()[before:][:2]}")
        installation.api.delete({**job, "metadata": {**job["metadata"], "namespace": team}})
    print(f"failed creations of {KILLS} kills: median {statistics.median(lost)}, at most {max(lost)}")
    assert max(lost) <= RATE, "more than a second's"


def _kill(installation: Installation) -> None:
    """Until all is ready again. A kubelet waits longer each time, so pods that were started again some times are replaced first."""
    killed = min(installation.replicas(), key=lambda pod: _starts(installation, pod))
    starts = _starts(installation, killed)
    if starts == AGAIN:
        installation.roll()
        killed, starts = installation.replicas()[0], 0
    installation.rig.kill_container(killed["metadata"]["name"], "berth", NAMESPACE)
    installation.rig.cluster.wait_for(lambda: _starts(installation, killed) > starts, "the container to be started again")
    installation.settle()


def _starts(installation: Installation, pod: Raw) -> int:
    """How often the pod's container has been started again."""
    now = next((one for one in installation.replicas() if one["metadata"]["uid"] == pod["metadata"]["uid"]), pod)
    return sum(one["restartCount"] for one in now["status"]["containerStatuses"])


def _wait_for_workers(installation: Installation, job: Raw, team: str) -> None:
    selector = f"job-name={job['metadata']['name']}"
    installation.rig.cluster.wait_for(
        lambda: len(installation.api.list("v1", "Pod", team, labelSelector=selector)) == WORKERS, f"{WORKERS} pods of {selector}"
    )


def _job(name: str) -> Raw:
    pod = gpu_pod()
    spec = {"parallelism": WORKERS, "completions": WORKERS, "template": {"spec": pod["spec"]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def test_rotations(installation: Installation, load: Arrivals) -> None:
    """Serving certificates, then CAs with an overlap of four seconds: no API server ever distrusts a replica."""
    for number in range(LEAVES):
        _rotate(installation, "leaf", number)
    for number in range(CAS):
        _rotate(installation, "ca", number)
    assert load.failed() == []
    assert "x509" not in (installation.rig.cluster.folder / "kube-apiserver.log").read_text()


def _rotate(installation: Installation, what: str, number: int) -> None:
    """Until the new one is served, and a CA before it is not published any more."""
    before = installation.material()
    shared_secret.rotate(installation.api, what, number)

    def is_over() -> bool:
        now = installation.material()
        if what == "ca" and (now.authorities[-1] == before.authorities[-1] or len(now.authorities) > 1):
            return False
        return now.leaf is not None and before.leaf is not None and now.leaf.certificate != before.leaf.certificate

    installation.rig.cluster.wait_for(is_over, f"{what} {number} to be rotated")


def test_a_vanished_node(installation: Installation, load: Arrivals) -> None:
    """No connection to its replica is closed, so what was under way there waits in vain, until its address is none of the Service's."""
    lost = installation.replicas()[0]
    begun = time.monotonic()
    installation.rig.stop_node(lost["spec"]["nodeName"])
    installation.rig.cluster.wait_for(lambda: lost["status"]["podIP"] not in installation.endpoints(), "the address to leave the Service")
    noticed = time.monotonic()
    installation.rig.cluster.wait_for(lambda: load.quiet() > QUIET, "creations to succeed again")
    installation.rig.start_node(lost["spec"]["nodeName"])
    installation.settle()
    print(f"noticed after {noticed - begun:.1f} s; failed {len(load.failed())}: {load.failed()[:2]}")


def test_three_that_start_at_once(installation: Installation, team: str) -> None:
    """Without a Secret: one CA, and from the first ready replica on no creation fails."""
    for _ in range(STARTS):
        installation.scale(0)
        installation.rig.cluster.wait_for(lambda: installation.pods() == [], "every replica to have ended")
        installation.api.delete(shared_secret.SECRET)
        installation.scale(REPLICAS)
        installation.rig.cluster.wait_for(lambda: installation.is_judged(team), "a GPU pod to be judged")
        with arriving(installation.api, team, RATE) as arrivals:
            installation.settle()
        assert arrivals.failed() == []
        assert len(installation.material().authorities) == 1


def test_everything_is_stopped(installation: Installation, team: str) -> None:
    """Nodes and control plane at once, then started with what is in etcd: nobody has to do anything."""
    begun = time.monotonic()
    installation.rig.stop_everything()
    installation.rig.start_everything()
    installation.settle()
    installation.rig.cluster.wait_for(lambda: installation.is_judged(team), "a GPU pod to be judged")
    print(f"back after {time.monotonic() - begun:.1f} s")


def test_ten_times_the_capacity(installation: Installation, team: str) -> None:
    """One replica with a twentieth of a core: what is served is judged, the rest is told why, and afterwards all is as before."""
    installation.upgrade(*OPTIONS, "--set", "replicas=1,resources.limits.cpu=50m,resources.requests.cpu=50m", "--wait")
    installation.settle(1)
    capacity = _capacity(installation, team)
    with arriving(installation.api, team, capacity / 2) as before:
        time.sleep(CALM)
    with arriving(installation.api, team, 10 * capacity, callers=MANY) as overrun:
        time.sleep(OVERRUN)
    begun = time.monotonic()
    with arriving(installation.api, team, capacity / 2) as after:
        time.sleep(CALM)
    last = max((one.at + one.seconds for one in after.made if one.failed), default=begun)
    print(f"capacity {capacity:.0f}/s; the last failure {last - begun:.1f} s after the end")
    print(f"before: {before}\noverrun: {overrun}\nafter: {after}")
    print(f"words: {Counter(overrun.failed()).most_common(3)}")
    assert overrun.unpoliced() == before.unpoliced() == after.unpoliced() == 0
    assert before.failed() == []
    assert last - begun < RECOVERED
    installation.upgrade(*OPTIONS, "--wait")
    installation.settle()


def _capacity(installation: Installation, team: str) -> float:
    """Creations a second that a few callers get who wait for each answer."""
    with arriving(installation.api, team, rate=10_000, callers=4) as closed:
        time.sleep(CALM)
    assert closed.failed() == []
    return len(closed.made) / CALM


def test_a_soak(installation: Installation, load: Arrivals) -> None:
    """For an hour: leaves of five minutes, and policies that change; memory does not grow."""
    installation.upgrade(*OPTIONS, "--set", "certificates.leafLife=5m", "--wait")
    installation.settle()
    policy, modes = _policy(), cycle(["Audit", "Enforce"])
    ended = time.monotonic() + SOAK
    samples: list[tuple[float, dict[str, float]]] = []
    while time.monotonic() < ended or len(samples) < FEWEST:
        policy["spec"]["mode"] = next(modes)
        reply = installation.api.apply(policy)
        assert reply.ok, reply.message
        samples.append((time.monotonic(), installation.memory()))
        time.sleep(10)
    installation.api.delete(policy)
    assert load.failed() == []
    half = samples[len(samples) // 2 :]
    for name in half[0][1]:
        slope = statistics.linear_regression([at for at, _ in half], [memory[name] for _, memory in half]).slope * 3600
        print(f"{name}: {half[0][1][name]:.1f} to {half[-1][1][name]:.1f} MiB, {slope:.2f} MiB/h in the second half")
        assert slope < SLOPE


def _policy() -> Raw:
    metadata = {"name": "churn"}
    spec: Raw = {"mode": "Audit", "default": {"gracePeriod": "10m"}, "match": {"namespaceSelector": {"matchLabels": {"churn": "yes"}}}}
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": metadata, "spec": spec}
