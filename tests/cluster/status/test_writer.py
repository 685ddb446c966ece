"""Statuses in a real API server: written once, put right, never in vain."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from cluster.client.api_client import Access, Client
from cluster.reconciler import FOUGHT
from cluster.status.leader_election import Lease
from policies.policy import API_VERSION, REGISTRATION
from policies.state.updater import Options, Updater
from tests.support.cases import golden
from tests.support.cluster.collecting_store import until
from tests.support.cluster.lease_history import LEASES, closed
from tests.support.cluster.status_replica import Holding, Replica, beside, policy, replica
from tests.support.counts import count
from tests.testcluster.controlplane.api import Api
from tests.testcluster.controlplane.cluster import Cluster

Raw = dict[str, Any]
KIND = "ClusterGPUPolicy"


@pytest.fixture(autouse=True)
def nothing_is_there(plane: Cluster) -> Iterator[None]:
    """Each test begins without objects of ours."""
    yield
    for kind in (KIND, "GPUNodeTemplate"):
        plane.api.delete_all(API_VERSION, kind)
    plane.api.delete_all(API_VERSION, "GPUPolicy", "default")


def status(api: Api, name: str, kind: str = KIND) -> Raw:
    found = api.get(API_VERSION, kind, name)
    assert found is not None
    stored: Raw = found.get("status", {})
    return stored


def condition(api: Api, name: str, kind: str = "Accepted") -> Raw:
    found: list[Raw] = status(api, name).get("conditions", [])
    return next((one for one in found if one["type"] == kind), {})


async def has(api: Api, name: str, wanted: str, kind: str = "Accepted") -> None:
    """Returns once a condition has this status."""
    await until(lambda: condition(api, name, kind).get("status") == wanted, f"{name} to be {kind} {wanted}")


def on_plane(plane: Cluster, test: Callable[[Replica, Api], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        async with replica(plane, **options) as one:
            await test(one, plane.api)

    asyncio.run(run())


def test_a_status_is_written_once_and_then_left(plane: Cluster) -> None:
    """What comes back by the watch is what was written: nothing is searched or written again."""

    async def test(one: Replica, api: Api) -> None:
        await until(lambda: one.statuses.searched == 1, "the search without any object")
        await beside(api.create, policy("p", require={"families": {"in": ["hopper"]}}))
        await has(api, "p", "True")
        found = status(api, "p")
        assert found["observedGeneration"] == 1
        assert (found["what"], found["where"]) == ("require families in [hopper]", "all namespaces")
        assert condition(api, "p", "Conflicted")["reason"] == "NoConflict"
        await until(lambda: one.statuses.counts.written == 1, "the answer to the write")
        assert await one.quiet() == 0
        assert (one.statuses.counts.written, one.statuses.counts.failed, one.statuses.searched) == (1, 0, 2)

    on_plane(plane, test, idle=0.05)


def test_the_mode_that_acts_is_shown_and_left_out_namespaces_are_not_counted(plane: Cluster) -> None:
    """Under --max-mode Audit ``kubectl get gpu`` says Audit, and Ready why; namespaces are those of the registration's selector."""
    selector = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["left-out"]}]}
    rule = {"apiGroups": ["berth.dev"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["nothing"]}
    webhook: Raw = {
        "name": "mutate.pods.berth.dev", "clientConfig": {"url": "https://127.0.0.1:1/mutate"}, "rules": [rule], "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore", "namespaceSelector": selector,
    }  # fmt: skip
    version, kind = "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"
    registration: Raw = {"apiVersion": version, "kind": kind, "metadata": {"name": REGISTRATION}, "webhooks": [webhook]}
    namespaces: list[Raw] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": "x"}}} for name in ("left-out", "sent")
    ]
    for one in (*namespaces, registration):
        plane.api.create(one)

    async def test(one: Replica, api: Api) -> None:
        one.updater = Updater(golden.catalog_with(), Options(platforms=("karpenter-aws",), max_mode="Audit"))
        spec = {"match": {"namespaceSelector": {"matchLabels": {"team": "x"}}}, "require": {"families": {"in": ["hopper"]}}}
        await beside(api.create, policy("braked", **spec))
        await has(api, "braked", "True")
        found = status(api, "braked")
        assert (found["mode"], found["where"]) == ("Audit", "1 namespace with team=x")
        ready = condition(api, "braked", "Ready")
        assert (ready["status"], ready["reason"]) == ("True", "ModeCapped")
        assert ready["message"].startswith("Audit: the server's --max-mode")
        command = [*plane.kubectl("get", "gpu")]
        shown = (await beside(lambda: subprocess.run(command, capture_output=True, text=True, check=True))).stdout.splitlines()
        assert [line.split()[1] for line in shown] == ["MODE", "Audit"]
        assert max(map(len, shown)) < 120

    try:
        on_plane(plane, test, idle=0.05)
    finally:
        for one in (registration, *namespaces):
            plane.api.delete(one)


def test_a_replica_that_starts_writes_nothing_that_is_there(plane: Cluster) -> None:
    """Statuses last longer than who wrote them, and are no events again."""

    async def first(one: Replica, api: Api) -> None:
        for i in range(5):
            await beside(api.create, policy(f"p{i}", default={"capacity": ["spot" if i else "on-demand"]}))
        await has(api, "p0", "True", "Conflicted")
        await until(lambda: one.statuses.counts.written >= 5, "all")
        await one.quiet()

    async def second(one: Replica, api: Api) -> None:
        await until(lambda: one.statuses.searched > 0, "a search")
        assert await one.quiet() == 0
        assert (one.events.sent, one.events.dropped) == (0, 0)

    on_plane(plane, first, rate=1000.0)
    on_plane(plane, second)


def test_a_mistake_is_told_and_the_last_good_form_kept_until_it_is_mended(plane: Cluster) -> None:
    """A model that nobody knows passes the schema."""

    async def test(one: Replica, api: Api) -> None:
        await beside(api.create, policy("p", require={"gracePeriod": {"max": "1h"}}))
        await has(api, "p", "True")
        since = condition(api, "p", "Conflicted")["lastTransitionTime"]
        await asyncio.sleep(1.1)  # times have whole seconds
        await beside(api.patch, policy("p"), {"spec": {"require": {"models": {"in": ["H1000"]}}}})
        await has(api, "p", "False")
        found = status(api, "p")
        assert "generation 1 stays in effect" in condition(api, "p")["message"]
        assert found["lastGood"] == {"generation": 1, "spec": {"mode": "Enforce", "require": {"gracePeriod": {"max": "1h"}}}}
        assert condition(api, "p", "Conflicted")["lastTransitionTime"] == since
        assert condition(api, "p")["lastTransitionTime"] > since
        await beside(api.patch, policy("p"), {"spec": {"require": {"models": None}}})
        await has(api, "p", "True")
        assert "lastGood" not in status(api, "p")
        assert status(api, "p")["observedGeneration"] == 3

    on_plane(plane, test)


def test_the_last_good_form_outlives_every_replica(plane: Cluster) -> None:
    """A cold start reads it from the status, and what it says stays."""

    async def first(one: Replica, api: Api) -> None:
        await beside(api.create, policy("p", require={"capacity": ["spot"]}))
        await has(api, "p", "True")
        await beside(api.patch, policy("p"), {"spec": {"require": {"models": {"in": ["H1000"]}}}})
        await has(api, "p", "False")

    async def second(one: Replica, api: Api) -> None:
        await until(lambda: one.statuses.searched > 0, "a search")
        assert await one.quiet() == 0
        assert status(api, "p")["what"] == "require capacity [spot]"

    on_plane(plane, first)
    on_plane(plane, second)


def test_what_another_writes_is_put_right_once_a_minute(plane: Cluster) -> None:
    """A status that is fought over is written once in that time, however often the other writes."""
    now = 1000.0

    async def test(one: Replica, api: Api) -> None:
        await beside(api.create, policy("p", require={"capacity": ["spot"]}))
        await has(api, "p", "True")
        await until(lambda: one.statuses.counts.written == 1, "the answer to the write")
        for i in range(20):
            await beside(api.patch, policy("p"), {"status": {"what": f"nonsense {i}", "conditions": []}}, subresource="status")
            await asyncio.sleep(0.02)
        assert await one.quiet() == 0
        assert one.statuses.counts.written == 1
        nonlocal now
        now += FOUGHT
        await until(lambda: status(api, "p")["what"] == "require capacity [spot]", "it to be put right")
        assert condition(api, "p")["status"] == "True"
        await one.settled()
        assert one.statuses.counts.written == 2

    on_plane(plane, test, idle=0.1, clock=lambda: now)


def test_a_status_that_the_server_makes_something_else_of_is_not_written_again(plane: Cluster) -> None:
    """Of a definition without some of its fields, as an older release has it: nothing is gained by writing on."""
    definition = plane.api.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "clustergpupolicies.berth.dev")
    assert definition is not None
    at = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/where"
    old = plane.api.call("GET", plane.api.path_of(definition)).body
    where = old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["where"]
    plane.api.patch(definition, [{"op": "remove", "path": at}], content="application/json-patch+json")
    plane.api.create(policy("older", require={"capacity": ["spot"]}))
    plane.wait_for(lambda: not keeps_where(plane.api, "older"), "the API server to take the definition")
    plane.api.delete(policy("older"))

    async def test(one: Replica, api: Api) -> None:
        await beside(api.create, policy("p", require={"capacity": ["spot"]}))
        await has(api, "p", "True")
        await until(lambda: any(event == "status_failed" for event, _ in one.logged), "it to be told")
        await one.settled()
        assert one.statuses.counts.written <= 3
        assert await one.quiet() == 0
        assert [fields["error"] for event, fields in one.logged if event == "status_failed"] == [
            "ClusterGPUPolicy/p: the API server stored another status than the one written"
        ]

    try:
        on_plane(plane, test, fought=0.2, idle=0.1)
    finally:
        plane.api.patch(definition, [{"op": "add", "path": at, "value": where}], content="application/json-patch+json")


def keeps_where(api: Api, name: str) -> bool:
    """Whether that field of a status is stored."""
    api.patch(policy(name), {"status": {"where": "anywhere"}}, subresource="status")
    return "where" in status(api, name)


def test_only_who_holds_writes_and_whoever_follows_finds_nothing_to_do(plane: Cluster) -> None:
    """Two replicas with a real Lease: one write an object, whoever it was."""

    async def run() -> None:
        client = await Client.connect(Access(str(plane.kubeconfig)))
        await client.call("DELETE", f"{LEASES}/statuses")
        leases = [
            Lease(client, name="statuses", namespace="default", holder=f"h{i}", tell=lambda event, /, **f: None, pace=0.2) for i in (0, 1)
        ]
        tasks = [asyncio.create_task(lease.run()) for lease in leases]
        async with replica(plane, leases[0], rate=1000.0) as one, replica(plane, leases[1], rate=1000.0) as other:
            await until(lambda: any(lease.held for lease in leases), "a holder")
            number = count(12, 200)
            for i in range(number):
                await beside(plane.api.create, policy(f"p{i}", require={"capacity": ["spot"]}))
            await until(lambda: one.statuses.counts.written + other.statuses.counts.written >= number, "all to be written")
            writer, holder, idle = (one, 0, other) if leases[0].held else (other, 1, one)
            assert (writer.statuses.counts.written, idle.statuses.counts.written) == (number, 0)
            tasks[holder].cancel()
            await until(lambda: leases[1 - holder].held, "the other to hold")
            await until(lambda: idle.statuses.searched > 0, "a search")
            assert await idle.quiet() == 0
            assert writer.statuses.counts.written == number
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await closed(client)

    asyncio.run(run())


def test_writes_are_paced(plane: Cluster) -> None:
    """At most so many a second, and who was first is written first."""

    async def test(one: Replica, api: Api) -> None:
        lease = one.lease
        lease.left = 0.0
        number = 30
        for i in range(number):
            await beside(api.create, policy(f"p{i:02}", require={"capacity": ["spot"]}))
        loop = asyncio.get_running_loop()
        begun = loop.time()
        lease.left = 10.0
        await until(lambda: one.statuses.counts.written >= number, "all")
        assert loop.time() - begun >= (number - 1) / 20.0

    on_plane(plane, test, rate=20.0)


def test_a_lease_that_ends_stops_the_writing_at_once(plane: Cluster) -> None:
    """It is asked before each write, not once for all of them."""
    lease = Holding()

    async def test(one: Replica, api: Api) -> None:
        lease.left = 0.0
        for i in range(40):
            await beside(api.create, policy(f"p{i}", require={"capacity": ["spot"]}))
        lease.left = 10.0
        await until(lambda: one.statuses.counts.written >= 5, "some")
        lease.left = 0.0
        written = one.statuses.counts.written
        await one.settled()
        assert one.statuses.counts.written <= written + 1
        assert one.statuses.counts.written < 40

    on_plane(plane, test, lease=lease, rate=20.0)


def test_a_write_that_comes_too_late_is_dropped_and_made_anew(plane: Cluster) -> None:
    """The object has changed since it was read: 409, and the newest form is written when it has come."""

    async def test(one: Replica, api: Api) -> None:
        await beside(api.create, policy("p", require={"gpusPerPod": {"max": 1}}))
        for i in range(2, count(15, 300)):
            await beside(api.patch, policy("p"), {"spec": {"require": {"gpusPerPod": {"max": i}}}})
        await until(lambda: status(api, "p").get("what") == f"require gpusPerPod max {i}", "the newest")
        assert status(api, "p")["observedGeneration"] == i
        assert one.statuses.counts.failed == 0
        await beside(api.delete, policy("p"))
        await one.settled()
        assert await one.quiet() == 0

    on_plane(plane, test, rate=1000.0)


def test_a_writer_without_the_right_to_write_asks_once_a_minute(plane: Cluster) -> None:
    """403 is told, and is no reason to ask again and again."""

    async def test(one: Replica, api: Api) -> None:
        one.statuses.client = Forbidden(one.client)  # type: ignore[assignment]
        await beside(api.create, policy("p", require={"capacity": ["spot"]}))
        await until(lambda: one.statuses.counts.failed > 0, "a denial")
        await one.settled()
        assert one.statuses.counts.failed == 1
        (error,) = [fields["error"] for event, fields in one.logged if event == "status_failed"]
        assert error.startswith('ClusterGPUPolicy/p: 403 clustergpupolicies.berth.dev "p" is forbidden: User "nobody" cannot patch')

    on_plane(plane, test)


class Forbidden:
    """The same client as a user without any rights."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, method: str, path: str, **words: Any) -> Any:
        """Impersonated: the API server itself denies."""
        opened = self._client._opened

        async def as_nobody(method: str, path: str, query: Any, headers: Any, data: Any, seconds: float) -> Any:
            return await opened(method, path, query, {**headers, "Impersonate-User": "nobody"}, data, seconds)

        self._client._opened = as_nobody  # type: ignore[method-assign]
        try:
            return await self._client.call(method, path, **words)
        finally:
            self._client._opened = opened  # type: ignore[method-assign]


def test_quotas_are_listed_only_while_slices_are_given(plane: Cluster) -> None:
    """And what is found of them stands in the status."""
    metadata = {"name": "gpus", "namespace": "default"}
    hard = {"requests.nvidia.com/gpu": "4"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}
    plane.api.apply(quota)

    async def test(one: Replica, api: Api) -> None:
        await beside(api.create, policy("plain", require={"capacity": ["spot"]}))
        await has(api, "plain", "True")
        assert not one.statuses._computation._quotas
        await beside(api.create, policy("slices", default={"mig": {"slice": "10gb"}}))
        await has(api, "slices", "True", "QuotaNotCovered")
        assert "namespace default:" in condition(api, "slices", "QuotaNotCovered")["message"]

    try:
        on_plane(plane, test)
    finally:
        plane.api.delete(quota)


def test_events_tell_of_changes(plane: Cluster) -> None:
    """Of what is wrong, and of what is well again; not of what was well from the start."""

    async def test(one: Replica, api: Api) -> None:
        await beside(api.create, policy("seen-p", default={"capacity": ["spot"]}))
        await has(api, "seen-p", "True")
        assert one.events.sent == 0
        await beside(api.create, policy("seen-q", default={"capacity": ["on-demand"]}))
        await has(api, "seen-p", "True", "Conflicted")
        await has(api, "seen-q", "True", "Conflicted")
        await beside(api.delete, policy("seen-q"))
        await has(api, "seen-p", "False", "Conflicted")
        await until(lambda: one.events.sent == 3, "events")
        events = [
            e for e in await beside(api.list, "events.k8s.io/v1", "Event", "default") if e["regarding"]["name"] in ("seen-p", "seen-q")
        ]
        assert sorted((e["regarding"]["name"], e["type"], e["reason"]) for e in events) == [
            ("seen-p", "Normal", "NoConflict"), ("seen-p", "Warning", "DefaultsDiffer"), ("seen-q", "Warning", "DefaultsDiffer"),
        ]  # fmt: skip
        assert events[0]["reportingController"] == "berth.dev/berth"

    on_plane(plane, test, rate=1000.0)
