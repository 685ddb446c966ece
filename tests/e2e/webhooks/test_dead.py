"""Every replica of Berth dead, or deaf: other pods never notice, GPU pods wait, and all goes on by itself when Berth is back.

One replica is all there are, since the API server calls it by URL. It is killed (SIGKILL: its port denies connections) or stopped
(SIGSTOP: its port takes connections and nobody answers). What the API server did, it tells by its own metrics.
"""

from __future__ import annotations

import re
import signal
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

import pytest

from tests.e2e.plain_pods import named, plain_pods
from tests.e2e.webhook_metrics import DENIED, EXCLUDED, FAIL_OPEN, counted, since
from tests.support.counts import count
from tests.testcluster.addons.berth import LIBRARY, PROBE, ROOT, SCOPE, Berth, manifests, registered, serve
from tests.testcluster.controlplane.api import Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import free_port
from tests.testcluster.fixtures import NewNamespace

POLICIES, PLATFORM = (LIBRARY / "berth-default.yaml",), ("--platforms", "gfd")
PODS, CLAIMS = ("mutate.pods.berth.dev", "validate.pods.berth.dev"), ("mutate.claims.berth.dev", "validate.claims.berth.dev")
LATER = 10.0
"""Times as long as in a namespace that Berth does not judge, in the median of creations by turns here and there. Conditions alone took 1.2
times; a call to a server that does not answer takes two thousand times as long, however fast the machine is."""
_number = iter(range(1000))


@pytest.fixture
def berth(cluster: Cluster) -> Iterator[Berth]:
    """On a port below those of outgoing connections, which nobody takes while Berth is dead."""
    where = ("--listen", f"127.0.0.1:{free_port()}")
    with registered(cluster, f"dead-{next(_number)}", POLICIES, *PLATFORM, *where) as started:
        yield started


@pytest.fixture(scope="module")
def dead(cluster: Cluster) -> Iterator[Berth]:
    """One that was killed and is still registered."""
    where = ("--listen", f"127.0.0.1:{free_port()}")
    with registered(cluster, f"dead-{next(_number)}", POLICIES, *PLATFORM, *where) as started:
        kill(cluster, started)
        yield started


@pytest.fixture
def denied(dead: Berth, new_namespace: NewNamespace) -> str:
    """A namespace whose GPU pods wait for the one that was killed."""
    return new_namespace({SCOPE: dead.name})


@pytest.fixture
def lenient(cluster: Cluster) -> Iterator[Berth]:
    """The same with claims at Ignore."""
    where = ("--listen", f"127.0.0.1:{free_port()}")
    with registered(cluster, f"dead-{next(_number)}", POLICIES, *PLATFORM, *where, by=("--claims", "Ignore")) as started:
        yield started


@pytest.fixture
def judged(berth: Berth, new_namespace: NewNamespace) -> str:
    """A namespace whose GPU pods wait for Berth."""
    return new_namespace({SCOPE: berth.name})


def kill(cluster: Cluster, berth: Berth) -> None:
    """And no longer expected to run."""
    berth.kill()
    cluster.processes.end(berth.process)


def gpu_pod(name: str, resource: str = "nvidia.com/gpu", where: str = "containers") -> Raw:
    """One device in one container, or init container."""
    asking = {"name": "asks", "image": "i:1", "resources": {"limits": {resource: "1"}}}
    spec = {"containers": [{"name": "main", "image": "i:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {**spec, where: [asking]}}


def gpu_pods() -> list[Raw]:
    """One of each way to name a device."""
    resources = ("nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "amd.com/gpu", "nvdia.com/gpu")
    named = [gpu_pod(f"gpu-{i}", name) for i, name in enumerate(resources)] + [gpu_pod("init", where="initContainers")]
    return [*named, by_claim("claim")]


def by_claim(name: str) -> Raw:
    """A pod whose only device is a claim."""
    pod = gpu_pod(name)
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    return pod


def of_template(api_version: str, kind: str, name: str) -> Raw:
    """A Job or Deployment of one GPU pod."""
    spec = {**gpu_pod("")["spec"], "restartPolicy": "Never" if kind == "Job" else "Always"}
    labels = {"app": name}
    selected = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": {**selected, "template": template}}


def in_turns(cluster: Cluster, namespaces: Sequence[str], number: int) -> dict[str, list[Reply]]:
    """The same plain pods in each namespace, one after the other, each namespace first as often as the others; all are created."""
    replies: dict[str, list[Reply]] = {namespace: [] for namespace in namespaces}
    for i, pod in enumerate(islice(cycle(list(plain_pods())), number)):
        turn = i % len(namespaces)
        for namespace in (*namespaces[turn:], *namespaces[:turn]):
            replies[namespace].append(reply := cluster.api.try_create(named(pod, i), namespace))
            assert reply.ok, reply.message
    return replies


def assert_unaffected(here: Sequence[Reply], there: Sequence[Reply]) -> None:
    """Created here no later than there."""
    at_once, usually = (statistics.median(reply.seconds for reply in replies) for replies in (here, there))
    assert at_once < LATER * usually


def failed_call(berth: Berth, why: str) -> re.Pattern[str]:
    """The API server's message when its first call for a pod fails, which the on-call table names."""
    guide = (ROOT / "docs" / "runbooks.md").read_text()
    night = guide[guide.index("## On-call table") : guide.index("## Availability")]
    assert 'failed calling webhook "mutate.pods.berth.dev"' in night
    assert why in night
    called = 'failed calling webhook "mutate.pods.berth.dev": failed to call webhook'
    url = re.escape(f"{berth.url}/mutate?timeout=5s")
    return re.compile(f'Internal error occurred: {called}: Post "{url}": (dial tcp 127.0.0.1:[0-9]+: connect: )?{why}')


def test_pods_without_accelerators_do_not_notice_that_berth_is_dead(cluster: Cluster, denied: str, new_namespace: NewNamespace) -> None:
    """Each is created, no later than its like in a namespace that Berth does not judge; Berth is called for none."""
    elsewhere, number = new_namespace(), count(60, 2000)
    before = counted(cluster)
    replies = in_turns(cluster, (denied, elsewhere), number)
    assert len(replies[denied]) == number
    assert since(before, cluster) == {(EXCLUDED, entry, "CREATE"): number for entry in PODS}
    assert_unaffected(replies[denied], replies[elsewhere])


def test_gpu_pods_are_denied_with_the_api_servers_message_while_berth_is_dead(cluster: Cluster, dead: Berth, denied: str) -> None:
    """Not stored unjudged; whose controller made them reads the same in its events, and the Job itself is stored."""
    pattern, before = failed_call(dead, "connection refused"), counted(cluster)
    replies = [cluster.api.try_create(pod, denied) for pod in gpu_pods()]
    assert {reply.status for reply in replies} == {500}
    assert [reply.message for reply in replies if not pattern.fullmatch(reply.message)] == []
    assert since(before, cluster)[DENIED, PODS[0], "CREATE"] == len(replies)
    cluster.api.create(of_template("batch/v1", "Job", "train"), denied)
    selector = {"fieldSelector": "involvedObject.name=train,reason=FailedCreate"}
    events = cluster.wait_for(lambda: cluster.api.list("v1", "Event", denied, **selector), "the Job to say why it has no pod")
    assert pattern.search(events[0]["message"])
    assert cluster.api.list("v1", "Pod", denied) == []


def test_with_claims_at_ignore_pods_with_some_are_stored_and_counted_while_berth_is_dead(
    cluster: Cluster, lenient: Berth, new_namespace: NewNamespace
) -> None:
    """Their entries fail open, and the API server says how often."""
    namespace = new_namespace({SCOPE: lenient.name})
    kill(cluster, lenient)
    before = counted(cluster)
    for i in range(3):
        cluster.api.create(by_claim(f"claims-{i}"), namespace)
    risen = since(before, cluster)
    assert {key: number for key, number in risen.items() if key[0] in (FAIL_OPEN, DENIED)} == {(FAIL_OPEN, e, ""): 3 for e in CLAIMS}


def test_switched_to_ignore_gpu_pods_are_stored_unjudged_and_counted(cluster: Cluster, berth: Berth, judged: str) -> None:
    """Who prefers that to waiting has it with one field, and sees in fail_open how many passed."""
    kill(cluster, berth)
    for value in manifests(berth, scope=berth.name):
        for webhook in value["webhooks"]:
            webhook["failurePolicy"] = "Ignore"
        assert cluster.api.apply(value).ok
    cluster.wait_for(lambda: cluster.api.try_create(PROBE, judged, dry_run=True).ok, "Ignore to be in force")
    before = counted(cluster)
    stored = [cluster.api.create(pod, judged) for pod in gpu_pods()]
    assert not any("tolerations" in pod["spec"] and any(t["key"].endswith("/gpu") for t in pod["spec"]["tolerations"]) for pod in stored)
    risen = since(before, cluster)
    assert {key: number for key, number in risen.items() if key[0] == FAIL_OPEN} == {(FAIL_OPEN, e, ""): len(stored) for e in PODS}


def test_a_berth_that_takes_calls_and_never_answers_holds_up_gpu_pods_alone(
    cluster: Cluster, berth: Berth, judged: str, new_namespace: NewNamespace
) -> None:
    """GPU pods are denied when timeoutSeconds are over, plain ones created meanwhile as ever; once it goes on, so do GPU pods."""
    elsewhere, pattern = new_namespace(), failed_call(berth, "context deadline exceeded")
    berth.process.signal(signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(len(gpu_pods())) as pool:
            waiting = [pool.submit(cluster.api.try_create, pod, judged) for pod in gpu_pods()]
            replies = in_turns(cluster, (judged, elsewhere), count(40, 1000))
            denied = [future.result() for future in waiting]
    finally:
        berth.process.signal(signal.SIGCONT)
    assert [reply.message for reply in denied if not pattern.fullmatch(reply.message)] == []
    assert all(reply.seconds >= 5 for reply in denied), "timeoutSeconds"
    assert_unaffected(replies[judged], replies[elsewhere])
    assert_edited(cluster.api.create(gpu_pod("after"), judged))


def test_started_again_berth_is_called_again_without_any_manual_step(cluster: Cluster, dead: Berth, denied: str) -> None:
    """The next GPU pod has its toleration, and a Job and a Deployment whose pods were denied meanwhile get them by themselves."""
    waiting = [cluster.api.create(of_template(*kind, "waits"), denied) for kind in (("batch/v1", "Job"), ("apps/v1", "Deployment"))]
    failed = {"fieldSelector": "reason=FailedCreate"}
    cluster.wait_for(lambda: len(cluster.api.list("v1", "Event", denied, **failed)) >= len(waiting), "both to be denied pods")
    again = serve(cluster, dead.name, POLICIES, *PLATFORM, listen=dead.url.removeprefix("https://"))
    try:
        assert_edited(cluster.api.create(gpu_pod("next"), denied))
        selector = {"labelSelector": "app=waits", "fieldSelector": "spec.nodeName!="}
        pods = cluster.wait_for(
            lambda: both(cluster.api.list("v1", "Pod", denied, **selector)), "the Job's and the Deployment's pod to be bound"
        )
        for pod in pods:
            assert_edited(pod)
    finally:
        cluster.processes.end(again.process)


def both(pods: list[Raw]) -> list[Raw] | None:
    """Once there is one of the Job and one of the Deployment's ReplicaSet."""
    owners = {pod["metadata"]["ownerReferences"][0]["kind"] for pod in pods}
    return pods if owners == {"Job", "ReplicaSet"} else None


def assert_edited(pod: Raw) -> None:
    """Berth has been there."""
    keys = [toleration["key"] for toleration in pod["spec"]["tolerations"]]
    assert "nvidia.com/gpu" in keys
    assert "berth.dev/applied" in pod["metadata"]["annotations"]
