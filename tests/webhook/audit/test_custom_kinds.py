"""Which custom kinds are followed, as the server has them, and what it costs to ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from analysis.audit.stored_pod import widest
from cluster.reports.queues import WorkloadQueue
from cluster.watch import backoff, reflector
from cluster.watch.connectivity import Connectivity
from cluster.watch.reflector import FORBIDDEN, Reflector
from cluster.watch.workload_kinds import custom_workloads
from policies.workloads.pods import ALONE
from tests.support.cluster.collecting_store import run, until
from tests.support.cluster.fake_api import FakeApi, serving, status
from tests.support.generators.random_worlds import catalog
from tests.testcluster.calls import PATIENCE
from webhook.audit import custom_kinds
from webhook.audit.custom_kinds import CustomKinds

WIDE = widest(catalog())
CLONES = next(one for one in custom_workloads(catalog(), WIDE, ALONE, lambda kind, error: None) if one.kind == "CloneSet")
SPEC = {"template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}}


class Discovered(FakeApi):
    """It has the kind in ``versions``, and counts what it is asked."""

    def __init__(self) -> None:
        super().__init__(CLONES, "v1alpha1")
        self.versions: tuple[str, ...] = ()
        self.calls: list[str] = []
        self.code = 200

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.calls.append(request.path)
        if request.path != "/apis":
            return await super().answer(request) if self.versions else status(404, "the server could not find the requested resource")
        if self.code != 200:
            return status(self.code, "no")
        if request.headers.get("If-None-Match") == (etag := f'"{len(self.versions)}"'):
            return web.Response(status=304)
        resources = [{"resource": CLONES.plural, "verbs": ["list", "watch"]}]
        group = {"metadata": {"name": CLONES.group}, "versions": [{"version": one, "resources": resources} for one in self.versions]}
        return web.json_response({"kind": "APIGroupDiscoveryList", "items": [group]}, headers={"ETag": etag})


@asynccontextmanager
async def followed(api: FakeApi, folder: Path) -> AsyncIterator[tuple[CustomKinds, WorkloadQueue, list[tuple[str, Any]]]]:
    """What it follows, into which queue, and what it tells."""
    told: list[tuple[str, Any]] = []
    async with serving(api, folder) as client:
        gate, queue = Connectivity(client), WorkloadQueue(asyncio.Event())

        def tell(event: str, /, **fields: Any) -> None:
            told.append((event, fields.get("error")))

        kinds = CustomKinds(client, gate, tell, lambda kind, store: Reflector(client, kind, store, gate, tell, 1.0), catalog(), WIDE, queue)
        task = asyncio.create_task(kinds.run())
        try:
            yield kinds, queue, told
        finally:
            task.cancel()
            await asyncio.wait([task])


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks and failures are milliseconds apart."""
    monkeypatch.setattr(custom_kinds, "LOOK", 0.02)
    monkeypatch.setattr(backoff, "FIRST", 0.005)
    monkeypatch.setattr(reflector, "ABSENT", 0.02)


def test_what_the_server_lacks_costs_one_call_for_all(tmp_path: Path) -> None:
    """However many kinds the catalog knows."""

    async def work() -> None:
        api = Discovered()
        async with followed(api, tmp_path) as (kinds, _, told):
            await until(lambda: len(api.calls) > 5, "looks")
            assert set(api.calls) == {"/apis"}
            assert (kinds.asked.is_set(), kinds.reflectors, told) == (True, [], [])

    run(work())


def test_a_kind_comes_changes_its_version_and_goes(tmp_path: Path) -> None:
    """Its objects are known meanwhile, and forgotten with it."""

    async def work() -> None:
        api = Discovered()
        async with followed(api, tmp_path) as (kinds, queue, _):
            await until(kinds.asked.is_set, "the first look")
            api.versions = ("v9", "v1alpha1")
            await api.put("a", SPEC)
            await until(lambda: bool(queue.take_pods()), "its pods")
            assert [one.kind for one in kinds.reflectors] == ["CloneSet.apps.kruise.io"]
            assert queue.versions == {("apps.kruise.io", "CloneSet"): "apps.kruise.io/v1alpha1"}
            api.served, api.versions = "v9", ("v9",)
            for one in api.store.values():
                one["apiVersion"] = api.api_version
            await until(lambda: queue.versions == {("apps.kruise.io", "CloneSet"): "apps.kruise.io/v9"}, "the other version")
            api.versions = ()
            await api.wrong("end")
            await until(lambda: None in queue.take_pods().values(), "its pods to go")
            await until(lambda: not kinds.reflectors, "the kind to be let go")
            api.calls.clear()  # a list that was under way may still arrive
            await until(lambda: len(api.calls) >= 8 and set(api.calls[-8:]) == {"/apis"}, "looks, and nothing but looks")

    run(work())


@pytest.mark.parametrize("code", [403, 404, 500])
def test_a_server_that_does_not_say(tmp_path: Path, code: int) -> None:
    """Is told once, and the rest goes on; once it says so, its kinds are followed."""

    async def work() -> None:
        api = Discovered()
        api.code, api.versions = code, ("v1alpha1",)
        async with followed(api, tmp_path) as (kinds, _, told):
            await until(lambda: kinds.asked.is_set() and len(api.calls) > 6, "the rest to go on")
            assert [event for event, _ in told] == ["discovery_failed"]
            assert told[0][1].startswith("custom workloads are not audited: GET /apis: ")
            api.code = 200
            await until(lambda: bool(kinds.reflectors), "the kind")
            assert "discovery_healed" in [event for event, _ in told]

    run(work())


def test_a_kind_that_can_not_be_listed_holds_nothing_up(tmp_path: Path) -> None:
    """One whose conversion is broken: it is told, and once it heals it is followed."""

    async def work() -> None:
        api = Discovered()
        api.versions = ("v1alpha1",)
        await api.put("a", SPEC)
        api.faults.extend(["list 500"] * 5)
        async with followed(api, tmp_path) as (kinds, queue, told):
            await until(lambda: bool(kinds.reflectors), "the kind")
            async with asyncio.timeout(PATIENCE):
                await kinds.tried()
            assert kinds.reflectors[0].counts.lists == 0
            assert [event for event, _ in told] == ["kind_failed"]
            await until(lambda: bool(queue.take_pods()), "its pods")

    run(work())


def test_a_kind_that_may_not_be_read_is_hardly_asked_for(tmp_path: Path) -> None:
    """A role of an older version may lack all of them: three times it is asked for, and it is told once."""

    async def work() -> None:
        api = Discovered()
        api.versions, api.forbidden = ("v1alpha1",), True
        async with followed(api, tmp_path) as (kinds, _, told):
            await until(lambda: bool(kinds.reflectors) and kinds.reflectors[0].synced, "the kind to be given up for now")
            looks = api.calls.count("/apis")
            await until(lambda: api.calls.count("/apis") > looks + 5, "looks")
            assert len(api.calls) - api.calls.count("/apis") == FORBIDDEN
            assert [event for event, _ in told] == ["kind_failed"]
            assert "Berth may not read clonesets.apps.kruise.io" in told[0][1]

    run(work())


def test_a_template_that_can_not_be_taken_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told once, with its kind."""

    def failing(value: Any, *_: Any) -> Any:
        raise RecursionError("deep") if value["metadata"]["name"] == "odd" else LookupError

    async def work() -> None:
        api = Discovered()
        api.versions = ("v1alpha1",)
        await api.put("odd", SPEC)
        await api.put("odder", SPEC)
        async with followed(api, tmp_path) as (kinds, queue, told):
            await until(lambda: bool(kinds.reflectors) and kinds.reflectors[0].synced, "the kind")
            assert [event for event, _ in told if event == "template_failed"] == ["template_failed"] * 2
            assert queue.take_pods() == {}

    monkeypatch.setattr("cluster.watch.workload_kinds.template_pods", failing)
    run(work())
