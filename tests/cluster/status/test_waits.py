"""Who waits for an object to be in force, by Helm's and Flux's own rules and with kubectl, is told rightly at every moment."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from policies.policy import API_VERSION
from tests.support.cluster.collecting_store import until
from tests.support.cluster.kstatus_verdict import verdict
from tests.support.cluster.status_replica import Replica, beside, policy, replica
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.api import Api
from tests.testcluster.controlplane.cluster import Cluster

Raw = dict[str, Any]
KIND = "ClusterGPUPolicy"
TEMPLATE: Raw = {
    "apiVersion": API_VERSION,
    "kind": "GPUNodeTemplate",
    "metadata": {"name": "pool-a"},
    "spec": {"labels": {"pool": "a"}},
}


@pytest.fixture(autouse=True)
def nothing_is_there(plane: Cluster) -> Iterator[None]:
    """Each test begins without objects of ours."""
    yield
    for kind in (KIND, "GPUNodeTemplate"):
        plane.api.delete_all(API_VERSION, kind)


def taken_for(api: Api, name: str = "p", kind: str = KIND) -> tuple[str, str]:
    found = api.get(API_VERSION, kind, name)
    assert found is not None
    return verdict(found)


async def becomes(api: Api, status: str, name: str = "p", kind: str = KIND) -> str:
    """The message, once it is taken for this."""
    await until(lambda: taken_for(api, name, kind)[0] == status, f"{name} to be {status}")
    return taken_for(api, name, kind)[1]


def on_plane(plane: Cluster, test: Callable[[Replica, Api], Awaitable[None]]) -> None:
    async def run() -> None:
        async with replica(plane) as one:
            await test(one, plane.api)

    asyncio.run(run())


def test_what_no_replica_has_seen_is_waited_for(plane: Cluster) -> None:
    """Without any status kstatus would take it for done; a change of what was in force is waited for too."""
    for value in (policy("p", require={"capacity": ["spot"]}), TEMPLATE):
        stored = plane.api.create(value)
        assert stored["status"] == {"observedGeneration": -1}
        assert verdict(stored) == ("InProgress", f"{value['kind']} generation is 1, but latest observed generation is -1")

    async def seen(one: Replica, api: Api) -> None:
        await becomes(api, "Current")
        await becomes(api, "Current", "pool-a", "GPUNodeTemplate")

    on_plane(plane, seen)
    plane.api.patch(policy("p"), {"spec": {"require": {"capacity": ["on-demand"]}}})
    assert taken_for(plane.api) == ("InProgress", f"{KIND} generation is 2, but latest observed generation is 1")


def test_a_denied_object_ends_the_wait_with_its_errors(plane: Cluster) -> None:
    """Only a change of the object itself helps: who waits is told at once, also while the last good form acts, and until it is mended."""

    async def test(one: Replica, api: Api) -> None:
        await beside(api.create, policy("p", require={"models": {"in": ["H1000"]}}))
        assert "H1000" in await becomes(api, "Failed")
        await beside(api.patch, policy("p"), {"spec": {"require": {"models": {"in": ["H100"]}}}})
        await becomes(api, "Current")
        await beside(api.patch, policy("p"), {"spec": {"require": {"models": {"in": ["H1000"]}}}})
        assert "generation 2 stays in effect" in await becomes(api, "Failed")

    on_plane(plane, test)


def test_a_template_that_comes_later_is_waited_for(plane: Cluster) -> None:
    """A release brings both, in any order."""

    async def test(one: Replica, api: Api) -> None:
        await beside(api.create, policy("p", default={"nodeTemplate": "pool-a"}))
        await until(lambda: "GPUNodeTemplate" in taken_for(api)[1], "what is lacking to be told")
        assert taken_for(api)[0] == "InProgress"
        await beside(api.create, TEMPLATE)
        await becomes(api, "Current")

    on_plane(plane, test)


def test_a_conflict_is_no_reason_to_wait(plane: Cluster) -> None:
    """Both policies act."""

    async def test(one: Replica, api: Api) -> None:
        for name, capacity in (("p", "spot"), ("q", "on-demand")):
            await beside(api.create, policy(name, default={"capacity": [capacity]}))
        for name in ("p", "q"):
            await until(lambda name=name: conflicted(api, name) == "True", f"{name} to be Conflicted")  # type: ignore[misc]
            assert taken_for(api, name)[0] == "Current"

    on_plane(plane, test)


def conflicted(api: Api, name: str) -> str | None:
    found = api.get(API_VERSION, KIND, name) or {}
    return next((one["status"] for one in found["status"].get("conditions", ()) if one["type"] == "Conflicted"), None)


def test_kubectl_waits_for_ready(plane: Cluster) -> None:
    """As the documents say it."""

    def waited(wanted: str) -> int:
        command = plane.kubectl("wait", f"--for=condition={wanted}", "cgpup/p", f"--timeout={PATIENCE:.0f}s")
        return subprocess.run(command, capture_output=True, check=False).returncode

    async def test(one: Replica, api: Api) -> None:
        await beside(api.create, policy("p", require={"capacity": ["spot"]}))
        assert await beside(waited, "Ready") == 0
        await beside(api.patch, policy("p"), {"spec": {"require": {"models": {"in": ["H1000"]}}}})
        assert await beside(waited, "Ready=false") == 0

    on_plane(plane, test)
