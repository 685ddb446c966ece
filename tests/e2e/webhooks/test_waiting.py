"""Pods that wait inside Berth for what its watch has not brought yet, with several replicas behind one address: none is stored unjudged.

Claims are registered at Ignore: what is turned away with a 503 there is stored. The API server's connections are spread over the
replicas, so that the next try of a call comes to one which has not heard of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count

import pytest

from tests.e2e.one_policy import in_namespaces
from tests.e2e.workloads import gpus, pod
from tests.support.claims.published_devices import class_of
from tests.support.cluster.faulty_proxy import Proxy
from tests.support.counts import count as number_of
from tests.support.generators.written_claims import claim, exactly
from tests.testcluster.addons.berth import SCOPE, Berth, create_namespace, manifests, register, serve
from tests.testcluster.addons.installed import install
from tests.testcluster.controlplane.api import Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster

NAME, DRIVER = "waiting", "gpu.nvidia.com"
LABELS = {SCOPE: NAME, "policy": NAME}
PODS = number_of(6, 40)
REPLICAS = (1, 3, 5, 10)[: number_of(2, 4)]
_number = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """``berths``, of which the proxy leads to as many as a test wants."""

    cluster: Cluster
    berths: Sequence[Berth]
    proxy: Proxy

    def lead_to(self, number: int) -> None:
        """New connections go to so many in turn; there are no others."""
        self.proxy.lead_to(*(("127.0.0.1", _port(berth)) for berth in self.berths[:number]))
        self.proxy.cut()


def _port(berth: Berth) -> int:
    return int(berth.url.rpartition(":")[2])


@pytest.fixture(scope="module")
def replicas(cluster: Cluster) -> Iterator[Replicas]:
    """All with one certificate, under a policy by which a pod has at most two GPUs."""
    kubeconfig = install(cluster)
    there = [class_of(DRIVER), in_namespaces(NAME, {"require": {"gpusPerPod": {"max": 2}}})]
    with ExitStack() as stack:
        for value in there:
            cluster.api.create(value)
            stack.callback(cluster.api.delete, value)
        first = serve(cluster, f"{NAME}-0", kubeconfig, "--platforms", "gfd")
        same = ("--platforms", "gfd", "--self-signed", str(first.ca.parent))
        berths = [first, *(serve(cluster, f"{NAME}-{i}", kubeconfig, *same) for i in range(1, max(REPLICAS)))]
        proxy = stack.enter_context(Proxy("127.0.0.1", _port(first)))
        values = manifests(replace(first, url=f"https://127.0.0.1:{proxy.port}"), scope=NAME, options=("--claims", "Ignore"))
        for value in values:
            stack.callback(cluster.api.delete, value)
        register(cluster, values, first, create_namespace(cluster, f"probe-{NAME}", LABELS))
        yield Replicas(cluster=cluster, berths=berths, proxy=proxy)
        for berth in berths:
            cluster.processes.end(berth.process)


def naming(*claims: str) -> Raw:
    made = pod({"claims": [{"name": name} for name in claims]})
    made["spec"]["resourceClaims"] = [{"name": name, "resourceClaimName": name} for name in claims]
    return made


def made(cluster: Cluster, namespace: str, devices: int) -> str:
    """The name of a claim for so many, which was made this moment."""
    name = f"claim-{next(_number)}"
    assert cluster.api.create(claim(exactly(count=devices), name=name), namespace)
    return name


def of_nobody(cluster: Cluster, namespace: str) -> Reply:
    return cluster.api.try_create(naming(f"gone-{next(_number)}"), namespace)


def of_a_moment_ago(cluster: Cluster, namespace: str) -> Reply:
    return cluster.api.try_create(naming(made(cluster, namespace, 2), made(cluster, namespace, 2)), namespace)


def in_a_new_namespace(cluster: Cluster, namespace: str) -> Reply:
    return cluster.api.try_create(pod(gpus(4)), create_namespace(cluster, f"{namespace}-{next(_number)}", LABELS))


WAITS: dict[str, Callable[[Cluster, str], Reply]] = {
    "claims that nobody makes": of_nobody,
    "claims made a moment ago": of_a_moment_ago,
    "namespaces made a moment ago": in_a_new_namespace,
}


@pytest.mark.parametrize("at_once", [True, False], ids=["at-once", "one-after-another"])
@pytest.mark.parametrize("number", REPLICAS)
@pytest.mark.parametrize("kind", WAITS)
def test_what_waits_is_never_stored_unjudged(replicas: Replicas, kind: str, number: int, *, at_once: bool) -> None:
    """However many call at once, and whichever replica the next try comes to."""
    replicas.lead_to(number)
    namespace = create_namespace(replicas.cluster, f"waits-{next(_number)}", LABELS)
    with ThreadPoolExecutor(PODS if at_once else 1) as pool:
        replies = list(pool.map(lambda _: WAITS[kind](replicas.cluster, namespace), range(PODS)))
    assert [reply.body["metadata"]["name"] for reply in replies if reply.ok] == []
    assert all("berth" in reply.message.lower() for reply in replies), [reply.message for reply in replies]


@pytest.mark.parametrize("number", REPLICAS)
def test_an_honest_pod_right_behind_its_claim_is_stored(replicas: Replicas, number: int) -> None:
    """Each waits until the watch has brought its claim."""
    replicas.lead_to(number)
    namespace = create_namespace(replicas.cluster, f"waits-{next(_number)}", LABELS)
    replies = [replicas.cluster.api.try_create(naming(made(replicas.cluster, namespace, 2)), namespace) for _ in range(PODS)]
    assert [reply.message for reply in replies if not reply.ok] == []
