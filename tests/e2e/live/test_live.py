"""What is written to the cluster is decided by a moment later, on every replica; and a review writes nothing to it.

In ``make prove`` the figures go into bench/RESULTS.md.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import yaml

from policies.pods.actors import QUEUE_NAME
from tests.e2e.live.results import record
from tests.e2e.workloads import NVIDIA
from tests.support import results_page
from tests.support.cluster.policy_writes import LABEL, Followed, cluster_policy, follow, quantile, writes
from tests.support.cluster.replicas import asking
from tests.support.counts import count
from tests.support.generators.written_claims import claim, exactly
from tests.testcluster.addons import installed
from tests.testcluster.addons.berth import PROBE, SCOPE, Berth, create_namespace, manifests, register, serve
from tests.testcluster.addons.installed import install
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.fixtures import control_plane

REPLICAS = 3
WRITES, CREATIONS = count(10, 200), count(6, 60)
BAR = 0.25
"""seconds: the issue's, of p99"""
BERTH = f"system:serviceaccount:{installed.NAMESPACE}:{installed.ACCOUNT}"
AUDIT: Raw = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata", "users": [BERTH]}, {"level": "None"}]}
OF_ITS_OWN = {("leases", ""), ("events", ""), *((kind, "status") for kind in ("clustergpupolicies", "gpupolicies", "gpunodetemplates"))}
"""(resource, subresource) that Berth writes at its own pace, whatever is reviewed"""
REVIEWED: Raw = {"require": {"gpusPerPod": {"max": 8}}, "default": {"queue": {"kueue": "gpu"}}}


@pytest.fixture(scope="module")
def followed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with Berth's kinds, in which nothing but the tests acts on pods, and whose audit log has all that Berth asks for."""
    policy = tmp_path_factory.mktemp("audit") / "policy.yaml"
    policy.write_text(yaml.safe_dump(AUDIT))
    options = Options(kubelets=False, controllers="namespace-controller", apiserver=(f"--audit-policy-file={policy}",))
    with control_plane(request.session, options) as started:
        yield started


@pytest.fixture(scope="module")
def replicas(followed: Cluster) -> list[Berth]:
    """Three that follow it."""
    kubeconfig = install(followed)
    return [serve(followed, f"live-{number}", kubeconfig) for number in range(REPLICAS)]


def test_every_replica_follows_every_write(followed: Cluster, replicas: list[Berth]) -> None:
    """Whatever is created, changed, deleted or labelled, all three decide by it, none goes back, and none meets halves."""
    namespace = create_namespace(followed, "written", {LABEL: "written"})
    seen: list[Followed] = []
    before = None
    with asking(replicas, namespace) as threads:
        for write in itertools.islice(writes(namespace), WRITES):
            seen.append(follow(followed.api, write, threads, before))
            before = write.grace
    record("propagation", _propagation(seen))


def test_a_pod_created_at_once_is_decided_by_the_new_policy(followed: Cluster, replicas: list[Berth]) -> None:
    """Through the API server, with each replica registered for a namespace: a policy is applied, and the stored pods show it soon."""
    namespaces = [_registered(followed, replica) for replica in replicas]
    seen: list[tuple[float, int]] = []
    with ThreadPoolExecutor(REPLICAS) as pool:
        for grace in range(100, 100 + CREATIONS):
            reply = followed.api.apply(cluster_policy("stored", grace))
            shown = partial(_until_stored, followed, grace=grace, applied=time.perf_counter())
            assert reply.ok, reply.message
            seen += pool.map(shown, namespaces)
    record("creation after a write", _creations(seen))


def test_a_review_writes_nothing_to_the_cluster(followed: Cluster, replicas: list[Berth]) -> None:
    """Pods, claims, their templates and workloads are admitted, changed and denied, and the API server's audit log has no write of
    Berth's but its Lease, its events and statuses of policies."""
    scope, policy = "reviewed", cluster_policy("reviewed", 120)
    reply = followed.api.apply({**policy, "spec": {**policy["spec"], **REVIEWED}})
    assert reply.ok, reply.message
    namespace = create_namespace(followed, scope, {SCOPE: scope, LABEL: "reviewed"})
    register(followed, manifests(replicas[0], scope=scope, options=["--queues"]), replicas[0], namespace)
    followed.wait_for(lambda: not followed.api.try_create(_claim(9), namespace, dry_run=True).ok, "the policy to be decided by")
    before = replicas[0].metric("berth_requests_total")
    for gpus in (1, 2, 9):
        for template in (False, True):
            assert followed.api.try_create(_claim(gpus, template=template), namespace).ok is (gpus < 9)
        pod = {**PROBE, "metadata": {"generateName": "p-"}, "spec": _spec(gpus)}
        assert followed.api.try_create(pod, namespace).ok is (gpus < 9)
        spec = {"template": {"spec": {**_spec(gpus), "restartPolicy": "Never"}}}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "j-"}, "spec": spec}
        assert followed.api.create(job, namespace)["metadata"]["labels"][QUEUE_NAME] == "gpu"
    assert replicas[0].metric("berth_requests_total") - before >= 20
    asked = Counter((one["verb"], one["objectRef"]["resource"], one["objectRef"].get("subresource", "")) for one in followed.audited())
    assert asked["watch", "pods", ""] + asked["watch", "resourceclaims", ""] > 0
    written = {(resource, sub) for verb, resource, sub in asked if verb not in ("get", "list", "watch")}
    assert written <= OF_ITS_OWN


def _claim(gpus: int, *, template: bool = False) -> Raw:
    return {**claim(exactly(count=gpus), template=template), "metadata": {"generateName": "gpus-"}}


def _spec(gpus: int) -> Raw:
    return {"containers": [{"name": "c", "image": "c:1", "resources": {"limits": {NVIDIA: f"{gpus}"}}}]}


def _registered(cluster: Cluster, replica: Berth) -> str:
    """Its namespace, in which a pod of the shipped form is already called for."""
    namespace = create_namespace(cluster, replica.name, {SCOPE: replica.name, LABEL: "stored"})
    register(cluster, manifests(replica, scope=replica.name), replica, namespace)
    return namespace


def _until_stored(cluster: Cluster, namespace: str, grace: int, applied: float) -> tuple[float, int]:
    """Seconds from the answer to the write to that to the first pod that shows it, and how many pods there were until then."""
    for number in itertools.count(1):
        pod: Raw = {**PROBE, "metadata": {"generateName": "p-"}}
        stored = cluster.api.create(pod, namespace)
        seconds = time.perf_counter() - applied
        cluster.api.delete(stored, grace=0)
        if stored["spec"]["terminationGracePeriodSeconds"] == grace:
            return seconds, number
        assert seconds < PATIENCE, f"{namespace}: {stored['spec']['terminationGracePeriodSeconds']} instead of {grace}"
    raise AssertionError("the loop ends by return or assert")


def _propagation(seen: Sequence[Followed]) -> Iterator[str]:
    yield "## From a write to its enforcement"
    yield ""
    yield f"{REPLICAS} replicas follow one API server, all on two cores that they share with it and with who asks. Each replica is asked"
    yield "every few ms what it decides for a pod; times are from the API server's answer to the write to a replica's first answer by it."
    yield ""
    kinds: dict[str, list[Followed]] = defaultdict(list)
    for one in seen:
        kinds[one.what].append(one)
    rows = [_row(what, its) for what, its in kinds.items()]
    yield from results_page.table(_HEADER, [*rows, _row("all", seen)])
    p99 = quantile([max(one.by_replica) for one in seen], 0.99)
    yield from ("", results_page.shown(f"p99 at most {BAR * 1000:.0f} ms on all {REPLICAS}", f"{p99 * 1000:.0f} ms", held=p99 <= BAR))


_HEADER = ("write", "times", "p50 ms on one", "p50 ms on all", "p99 ms on all", "longest ms", "longest disagreement ms")


def _row(what: str, its: Sequence[Followed]) -> tuple[str, ...]:
    each, all_of_them = [one for it in its for one in it.by_replica], [max(it.by_replica) for it in its]
    figures = (quantile(each, 0.5), quantile(all_of_them, 0.5), quantile(all_of_them, 0.99), max(each), max(it.disagreed for it in its))
    return what, f"{len(its)}", *(f"{figure * 1000:.0f}" for figure in figures)


def _creations(seen: Sequence[tuple[float, int]]) -> Iterator[str]:
    times, first = [seconds for seconds, _ in seen], sum(number == 1 for _, number in seen)
    p50, p99 = (quantile(times, share) * 1000 for share in (0.5, 0.99))
    yield "## A policy applied, a pod created at once"
    yield ""
    yield f"{len(seen)} times, {REPLICAS} at once by a replica each, through the API server: from its answer to the policy to its answer"
    yield f"with the first pod that shows it p50 {p50:.0f} ms, p99 {p99:.0f} ms, longest {max(times) * 1000:.0f} ms; {first} times it was"
    yield "the very first pod."
