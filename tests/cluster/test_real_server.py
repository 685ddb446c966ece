"""Following a real API server that is killed, cut off, takes rights away, and loses our definitions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import count as numbers
from pathlib import Path
from typing import Any, TypeVar

from cluster.client.access import Access
from cluster.client.api_client import Client
from cluster.watch.connectivity import Connectivity
from cluster.watch.discovery import ACCEPT, Discovery
from cluster.watch.kinds import KINDS
from cluster.watch.reflector import Reflector
from tests.cluster.conftest import CRDS
from tests.support.cluster import service_account_files
from tests.support.cluster.collecting_store import CollectingStore, following, run, until
from tests.support.cluster.fake_api import kubeconfig
from tests.support.cluster.faulty_proxy import Proxy
from tests.support.counts import count, only_in_prove
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.starting import apply_crds, http_ok

T = TypeVar("T")
SECONDS = 3.0
"""of a watch"""
OURS = tuple(one for one in KINDS if one.required)
_number = numbers(1)


def policy(name: str, cpu: int = 1) -> Raw:
    spec = {"require": {"gpusPerPod": {"max": cpu}}}
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": spec}


async def beside(work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work)


async def change(plane: Cluster) -> None:
    """Of a policy, made or changed."""
    number = next(_number)
    reply = await beside(partial(plane.api.apply, policy(f"p{number % 5}", number)))
    assert reply.ok, reply.message


def stored(plane: Cluster, *, kind: str = "ClusterGPUPolicy") -> dict[str, Any]:
    return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in plane.api.list("berth.dev/v1alpha1", kind)}


async def equal(kept: CollectingStore, plane: Cluster, what: str) -> None:
    wanted = await beside(partial(stored, plane))
    await until(lambda: {n: o["metadata"]["resourceVersion"] for n, o in kept.named("ClusterGPUPolicy").items()} == wanted, what)


@asynccontextmanager
async def through(
    plane: Cluster, folder: Path, access: Callable[[int], Access] | None = None
) -> AsyncIterator[tuple[Proxy, CollectingStore, list[Reflector], Connectivity, Client]]:
    """All kinds followed through a proxy, and synced."""
    kept = CollectingStore()
    with Proxy("127.0.0.1", plane.api.port) as proxy:
        url = f"https://127.0.0.1:{proxy.port}"
        chosen = access(proxy.port) if access else Access(str(kubeconfig(folder, url, plane.api.token, plane.api.ca)))
        client = await Client.connect(chosen)
        try:
            kinds = OURS if access else KINDS
            async with following(client, kinds, kept, watch_seconds=SECONDS) as (reflectors, gate):
                await until(lambda: all(one.synced and one.healthy for one in reflectors), "sync")
                yield proxy, kept, reflectors, gate, client
        finally:
            await client.close()


def kill(plane: Cluster) -> Callable[[], None]:
    """The API server, at once. What starts it again, until it is ready."""
    process = plane.named["kube-apiserver"]
    plane.processes.running.remove(process)
    process.popen.kill()
    process.popen.wait()

    def start() -> None:
        plane.named["kube-apiserver"] = plane.processes.start("kube-apiserver", [str(word) for word in process.popen.args])  # type: ignore[union-attr]
        plane.processes.wait_for(lambda: http_ok(f"https://127.0.0.1:{plane.api.port}/readyz"), "the API server to be back")
        plane.api.close()  # its connections of before

    return start


def test_kinds_are_asked_for_in_a_few_bytes(plane: Cluster) -> None:
    """While the server has the same ones, by the ETag of its last answer; Berth's own are among them."""

    async def work() -> None:
        client = await Client.connect(Access(str(plane.kubeconfig)))
        try:
            discovery = Discovery(client)
            found = await discovery.served()
            assert found["berth.dev", "gpupolicies"] == ("v1alpha1",)
            assert ("", "pods") not in found  # of /api
            first = await client.call("GET", "/apis", accept=ACCEPT)
            again = await client.call("GET", "/apis", accept=ACCEPT, etag=first.etag)
            assert (bool(first.etag), first.status, again.status, again.body) == (True, 200, 304, None)
            assert await discovery.served() is found
        finally:
            await client.close()

    run(work())


@only_in_prove
def test_a_killed_server_costs_nothing_but_time(plane: Cluster, tmp_path: Path) -> None:
    """While it is down what was known stays, and all kinds together try less than once a second; afterwards nothing is missing.
    ``make test`` kills the API server of whole replicas (tests/e2e/faults/test_faults.py)."""

    async def work() -> None:
        async with through(plane, tmp_path) as (proxy, kept, reflectors, gate, _):
            for _round in range(count(1, 20)):
                await change(plane)
                await equal(kept, plane, "the change")
                before = dict(kept.objects)
                start = await beside(partial(kill, plane))
                down = time.monotonic()
                await asyncio.sleep(count(8, 30))
                await until(lambda: proxy.connections[-1] > down, "an attempt")  # noqa: B023
                tried, lasted = len([one for one in proxy.connections if one > down]), time.monotonic() - down
                assert tried < lasted, f"{tried} connections in {lasted:.1f} s"
                print(f"{tried} connections while it was down")
                assert not any(one.healthy for one in reflectors if not one.absent)
                assert (kept.objects, gate.open) == (before, False)
                await beside(start)
                await change(plane)
                await equal(kept, plane, "what was changed since")
                await until(lambda: all(one.healthy for one in reflectors), "health")

    run(work())


def test_a_connection_that_carries_nothing_is_noticed(plane: Cluster, tmp_path: Path) -> None:
    """Blackholed both ways: every kind says so by itself, and all is well again soon after."""

    async def work() -> None:
        async with through(plane, tmp_path) as (proxy, kept, reflectors, _, _client):
            for _round in range(count(1, 20)):
                proxy.blackhole()
                await change(plane)
                followed = [one for one in reflectors if not one.absent]
                await until(lambda: not any(one.healthy for one in followed), "silence to be noticed")  # noqa: B023
                proxy.blackhole(on=False)
                await equal(kept, plane, "the change")
                await until(lambda: all(one.healthy for one in reflectors), "health")

    run(work())


def test_connections_that_are_cut_lose_nothing(plane: Cluster, tmp_path: Path) -> None:
    """Cut again and again while policies change."""

    async def work() -> None:
        async with through(plane, tmp_path) as (proxy, kept, *_):
            for round_ in range(count(4, 20)):
                await change(plane)
                proxy.cut()
                await change(plane)
                if round_ % 2:
                    await equal(kept, plane, "both changes")
            await equal(kept, plane, "all changes")

    run(work())


def test_a_token_that_is_replaced_in_time_is_never_missed(plane: Cluster, tmp_path: Path) -> None:
    """The old one is denied (401): the file is read again and the call repeated, and nobody sees an error."""

    async def work() -> None:
        await beside(partial(service_account_files.account, plane.api))
        first = await beside(partial(service_account_files.token, plane.api, "first"))
        second = await beside(partial(service_account_files.token, plane.api, "second"))
        async with through(plane, tmp_path, lambda port: service_account_files.mount(tmp_path, plane, port, first)) as (
            _,
            kept,
            reflectors,
            gate,
            client,
        ):
            assert client.namespace == "berth-system"
            (tmp_path / "token").write_text(second)
            await beside(
                partial(plane.api.delete, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "first", "namespace": "kube-system"}})
            )
            await until(lambda: client._authorization == f"Bearer {second}", "the new token in use")
            await change(plane)
            await equal(kept, plane, "the change")
            assert (kept.errors(), gate.open, [one.counts.lists for one in reflectors]) == ([], True, [1, 1, 1, 1])

    run(work())


def test_rights_that_are_taken_away_are_told_and_what_is_known_stays(plane: Cluster, tmp_path: Path) -> None:
    """403 after sync: the last good stays; with the rights back it follows again."""

    async def work() -> None:
        await beside(partial(service_account_files.account, plane.api))
        token = await beside(partial(service_account_files.token, plane.api, "rights"))
        async with through(plane, tmp_path, lambda port: service_account_files.mount(tmp_path, plane, port, token)) as (
            _,
            kept,
            reflectors,
            *_rest,
        ):
            await change(plane)
            await equal(kept, plane, "the change")
            before = dict(kept.objects)
            await beside(partial(plane.api.delete, service_account_files.BINDING))
            await until(lambda: all("403" in one.error for one in reflectors), "403")
            assert all(one.error.endswith("type: kubectl apply -f deploy/rbac.yaml") and one.synced for one in reflectors)
            assert kept.objects == before
            await beside(partial(service_account_files.account, plane.api))
            await change(plane)
            await equal(kept, plane, "the change after")

    run(work())


def test_a_definition_that_is_deleted_takes_no_policy_along(plane: Cluster, tmp_path: Path) -> None:
    """kubectl delete crd: what was there goes on to act, until the definition is back; then what the server has counts."""
    file = CRDS / "berth.dev_clustergpupolicies.yaml"

    async def work() -> None:
        async with through(plane, tmp_path) as (_, kept, reflectors, *_rest):
            for _round in range(5):
                await change(plane)
            await equal(kept, plane, "the changes")
            before = kept.named("ClusterGPUPolicy")
            assert len(before) >= 3
            metadata = {"name": "clustergpupolicies.berth.dev"}
            definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata}
            await beside(partial(plane.api.delete, definition))
            await until(lambda: "no longer has the CustomResourceDefinition" in reflectors[0].error, "an error")
            await until(lambda: reflectors[0].counts.errors >= 3, "more of it")
            assert kept.named("ClusterGPUPolicy") == before
            await beside(lambda: apply_crds(plane.api, [file], plane.processes))
            await change(plane)
            await equal(kept, plane, "the new one alone")
            assert len(kept.named("ClusterGPUPolicy")) == 1

    run(work())


BROKEN = (
    ("NodePool", "nodepools", "karpenter.sh", ("v1", "v1beta1"), "Cluster"),
    ("ClusterPolicy", "clusterpolicies", "nvidia.com", ("v1", "v1alpha1"), "Cluster"),
    ("LocalQueue", "localqueues", "kueue.x-k8s.io", ("v1beta2", "v1beta1"), "Namespaced"),
)
"""Kinds of others whose conversion webhook is gone: kind, plural, group, (the version that is listed, the one that is stored), scope."""


def definition(kind: str, plural: str, group: str, versions: tuple[str, str], scope: str) -> Raw:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    service = {"namespace": "default", "name": "nobody", "path": "/convert"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": name, "served": True, "storage": name == versions[1], "schema": schema} for name in versions],
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}},
        },
    }


def answers(plane: Cluster, method: str, path: str, statuses: tuple[int, ...], body: Raw | None = None) -> bool:
    """Whether the API server answers with one of these statuses."""
    return plane.api.call(method, path, body).status in statuses


def test_conversion_webhooks_that_are_gone_hold_up_no_start(plane: Cluster) -> None:
    """Their kinds are unknown, and all others are known; each is followed once its objects can be converted."""
    for kind, plural, group, versions, scope in BROKEN:
        assert plane.api.apply(definition(kind, plural, group, versions, scope)).ok
        where = f"/apis/{group}/{versions[1]}" + ("/namespaces/default" if scope == "Namespaced" else "") + f"/{plural}"
        value = {"apiVersion": f"{group}/{versions[1]}", "kind": kind, "metadata": {"name": "old"}}
        plane.wait_for(partial(answers, plane, "POST", where, (201, 409), value), f"{kind} to be created")
        plane.wait_for(partial(answers, plane, "GET", where.replace(versions[1], versions[0]), (500,)), f"{kind} to be broken")

    async def work() -> None:
        kept, client = CollectingStore(), await Client.connect(Access(str(plane.kubeconfig)))
        try:
            async with following(client, KINDS, kept) as (reflectors, _):
                await until(lambda: all(one.settled for one in reflectors), "the first decision")
                await until(lambda: all(one.error or one.counts.lists or one.absent for one in reflectors), "an answer for each kind")
                unknown = {one.kind: one.error for one in reflectors if not one.counts.lists and not one.absent}
                assert unknown.keys() == {kind for kind, *_ in BROKEN}
                assert all("conversion webhook" in error for error in unknown.values()), unknown
                for kind, plural, group, versions, scope in BROKEN:
                    fixed = definition(kind, plural, group, versions, scope)
                    fixed["spec"]["conversion"] = {"strategy": "None"}
                    assert (await beside(partial(plane.api.apply, fixed))).ok
                await until(lambda: all(kept.named(kind) for kind, *_ in BROKEN), "the kinds to be known")
        finally:
            await client.close()

    try:
        run(work())
    finally:
        for _, plural, group, *_ in BROKEN:
            plane.api.call("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}")
