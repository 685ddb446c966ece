"""A replica that has not heard of all policies yet decides nothing, whatever the load; and says what it waits for, and what to type."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from policies.policy import GROUP
from tests.e2e.live.held_lists import held_lists
from tests.e2e.live.load import Load, under_load
from tests.e2e.live.results import record
from tests.support.cluster.policy_writes import LABEL, cluster_policy
from tests.support.cluster.replicas import Caller
from tests.support.counts import count
from tests.testcluster.addons import installed
from tests.testcluster.addons.berth import PROBE, SCOPE, Berth, create_namespace, listening, manifests, start
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.fixtures import control_plane

HELD = count(3, 30)
"""seconds for which the API server doesn't tell which policies there are"""
AFTER = 2.0
"""seconds of load once they are told"""
GRACE = 4242
POLICIES = (f"/apis/{GROUP}/v1alpha1/clustergpupolicies?", f"/apis/{GROUP}/v1alpha1/gpupolicies?")
RIGHTS = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


@pytest.fixture(scope="module")
def bare(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster of its own, without Berth's kinds at first."""
    with control_plane(
        request.session, Options(kubelets=False, controllers="namespace-controller,clusterrole-aggregation-controller")
    ) as it:
        yield it


def test_what_is_missing_is_named_until_it_comes(bare: Cluster) -> None:
    """Without rights, then without the kinds, it is alive and not ready, and each time says what to type; then it is ready by itself."""
    values = list(yaml.safe_load_all((installed.DEPLOY / "rbac.yaml").read_text()))
    _apply(bare, *(value for value in values if value["kind"] not in RIGHTS))
    process = start(bare, "missing", _kubeconfig(bare, "missing"), "--watch", "5")
    replica = listening(bare, "missing", process)
    _until_says(bare, replica, "clustergpupolicies.berth.dev", "type: kubectl apply -f deploy/rbac.yaml")
    _apply(bare, *(value for value in values if value["kind"] in RIGHTS))
    _until_says(bare, replica, "the API server has no gpupolicies.berth.dev; type: berth crds | kubectl apply -f -")
    _is_away(replica)
    installed.install(bare)
    bare.wait_for(lambda: replica.page("/readyz").status == 200, "the replica to be ready")
    assert [event["policies"] for event in replica.events("serving")] == [0]
    bare.processes.end(process)


def test_a_cold_start_admits_nothing_before_it_knows_the_policies(bare: Cluster, tmp_path: Path) -> None:
    """While the list of the policies is held back, every review is turned away and no pod is stored; afterwards every pod is policed."""
    kubeconfig = installed.install(bare)
    assert bare.api.apply(cluster_policy("cold", GRACE)).ok
    namespace = create_namespace(bare, "cold", {LABEL: "cold", SCOPE: "cold"})
    with held_lists(bare.api, POLICIES, tmp_path / "tls") as (proxy, ca):
        process = start(bare, "cold", _through(kubeconfig, proxy.port, ca, tmp_path))
        replica = listening(bare, "cold", process)
        _apply(bare, *manifests(replica, scope="cold"))
        bare.wait_for(lambda: _called(bare, replica, namespace), "the API server to call it")
        with under_load(bare.api, replica, namespace) as load:
            time.sleep(HELD)
            assert len(proxy.held) >= 2, proxy.held
            _is_not_ready(replica)
            started = time.perf_counter()
            proxy.let_go()
            bare.wait_for(lambda: replica.page("/readyz").status == 200, "the replica to be ready")
            time.sleep(AFTER)
        _judge(load, started)
        _all_policed(bare, namespace)
        record("cold start", _results(load, started))
        bare.processes.end(process)


def _is_not_ready(replica: Berth) -> None:
    """The kinds that are held back are named, and no other."""
    answer = replica.page("/readyz")
    line = next(line for line in answer.body.decode().splitlines() if "cluster:" in line)
    assert answer.status == 503
    assert line == "[-] cluster: ClusterGPUPolicy, GPUPolicy: not listed yet", line
    assert replica.page("/livez").status == 200


def _judge(load: Load, started: float) -> None:
    """No answer but 503 before the policies could be known, and afterwards none that isn't theirs."""
    assert [one for one in load.stored() if one.answered < started] == []
    answers = [answer for asked in load.asked for answer in asked.answers]
    early, late = ([one for one in answers if (one.received < started) is early] for early in (True, False))
    assert {one.status for one in early} == {503}
    denials = [one for one in answers if one.status == 503]
    assert {(one.headers.get("retry-after"), one.headers.get("connection")) for one in denials} == {("1", "close")}
    assert {(one.status, one.grace) for one in late} <= {(503, None), (200, GRACE)}
    assert (200, GRACE) in {(one.status, one.grace) for one in late}
    graces = {one.reply.body["spec"]["terminationGracePeriodSeconds"] for one in load.stored()}
    assert graces == {GRACE}


def _all_policed(cluster: Cluster, namespace: str) -> None:
    """Also those whose creation got no answer in time."""
    pods = cluster.api.list("v1", "Pod", namespace)
    assert pods
    assert {pod["spec"]["terminationGracePeriodSeconds"] for pod in pods} == {GRACE}


def _results(load: Load, started: float) -> Iterator[str]:
    asked = [answer for one in load.asked for answer in one.answers]
    early = [one for one in load.creations if one.answered < started]
    judged = sorted(one.received for one in asked if one.status == 200)
    yield "## A cold start under load"
    yield ""
    denied, first = sum(one.received < started for one in asked), (judged[0] - started) * 1000
    yield f"The list of the policies is held back for {HELD} s. Until then {len(early)} creations of GPU pods were answered, all denied,"
    yield f"and {denied:,} reviews, all with 503. The first review was judged {first:.0f} ms after the list was let go; then"
    yield f"{len(load.stored())} pods were stored and {len(judged):,} reviews judged, all by the policies. Admitted before: 0."


def _is_away(replica: Berth) -> None:
    """A review is turned away as one that may come again."""
    caller = Caller(replica, "default")
    answer = caller.ask()
    caller.close()
    assert (answer.status, answer.headers.get("retry-after"), answer.headers.get("connection")) == (503, "1", "close")


def _until_says(cluster: Cluster, replica: Berth, *parts: str) -> None:
    def says() -> bool:
        answer = replica.page("/readyz")
        assert answer.status == 503, answer.body
        return all(part in answer.body.decode() for part in parts)

    cluster.wait_for(says, f"/readyz to say {parts}")


def _called(cluster: Cluster, replica: Berth, namespace: str) -> bool:
    before = replica.metric("berth_requests_total", phase="mutate")
    cluster.api.try_create(PROBE, namespace, dry_run=True)
    return replica.metric("berth_requests_total", phase="mutate") > before


def _apply(cluster: Cluster, *values: Raw) -> None:
    for value in values:
        reply = cluster.api.apply(value)
        assert reply.ok, reply.message


def _kubeconfig(cluster: Cluster, name: str) -> Path:
    """Of Berth's account, whatever it may do."""
    file = cluster.folder / f"{name}.kubeconfig"
    installed.write_kubeconfig(file, cluster, installed.token(cluster))
    return file


def _through(kubeconfig: Path, port: int, ca: Path, folder: Path) -> Path:
    """The same account by way of a proxy."""
    value = yaml.safe_load(kubeconfig.read_text())
    value["clusters"][0]["cluster"] = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(ca)}
    file = folder / "through.kubeconfig"
    file.write_text(yaml.safe_dump(value))
    return file
