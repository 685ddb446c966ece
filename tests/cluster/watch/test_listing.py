"""One look at an API server that misbehaves: what can be read is read, and what can't is named with the reason."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from cluster.client.errors import Unreachable
from cluster.watch.kinds import KINDS
from cluster.watch.listing import Listing, Survey, survey
from tests.support.cluster.fake_api import FakeApi, serving

NODE, POLICY, POOL = (next(one for one in KINDS if one.kind == kind) for kind in ("Node", "GPUPolicy", "NodePool"))


async def surveyed(api: FakeApi, folder: Path, namespace: str = "") -> tuple[Survey, list[tuple[str, int]]]:
    progress: list[tuple[str, int]] = []
    async with serving(api, folder) as client:
        found = await survey(client, [api.watched, POOL], namespace, lambda kind, count: progress.append((kind, count)))
    return found, progress


def test_all_pages_are_read_and_counted(tmp_path: Path) -> None:
    """Of each kind; one that the server lacks is named."""
    api = FakeApi(NODE)

    async def look() -> tuple[Survey, list[tuple[str, int]]]:
        await api.put_many(10)
        return await surveyed(api, tmp_path)

    found, progress = asyncio.run(look())
    assert sorted(one["metadata"]["name"] for one in found.objects["Node"]) == sorted(f"m{n}" for n in range(10))
    assert sorted(progress) == [("Node", 10), ("NodePool", 0)]
    assert found.unread == {"NodePool": "the API server has no nodepools.karpenter.sh"}
    assert found.absent == {"NodePool"}


def test_no_more_objects_are_listed_than_the_row_allows(tmp_path: Path) -> None:
    """Pages are read until there are so many; the rest is left out."""
    api = FakeApi(NODE)

    async def look() -> list[str]:
        await api.put_many(10)
        async with serving(api, tmp_path) as client:
            objects, _ = await Listing(client, replace(NODE, page=1, most_objects=3)).all()
        return [one["metadata"]["name"] for one in objects]

    assert len(asyncio.run(look())) == 3


@pytest.mark.parametrize("fault", ["list 410", "list 410 in the middle", "list 429"])
def test_what_passes_is_tried_again(tmp_path: Path, fault: str) -> None:
    """Pages that expire while they are read, and a server that is busy."""
    api = FakeApi(NODE)

    async def look() -> Survey:
        await api.put_many(5)
        api.faults.append(fault)
        return (await surveyed(api, tmp_path))[0]

    found = asyncio.run(look())
    assert (len(found.objects["Node"]), "Node" in found.unread) == (5, False)


def test_a_kind_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    """In all namespaces, or in the one that was asked for."""
    api = FakeApi(POLICY)
    api.forbidden = True
    assert asyncio.run(surveyed(api, tmp_path))[0].unread["GPUPolicy"] == "you may not list gpupolicies.berth.dev"


class Discovered(FakeApi):
    """It lets nobody list its kind, and says whether it has it."""

    def __init__(self, groups: list[str]) -> None:
        super().__init__(POLICY)
        self.forbidden = True
        self.groups = groups

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path != "/apis":
            return await super().answer(request)
        resources = [{"resource": POLICY.plural, "verbs": ["list", "watch"]}]
        versions = [{"version": "v1alpha1", "resources": resources}]
        items = [{"metadata": {"name": name}, "versions": versions} for name in self.groups]
        return web.json_response({"kind": "APIGroupDiscoveryList", "items": items})


def test_a_kind_that_is_not_installed_is_not_one_that_may_not_be_read(tmp_path: Path) -> None:
    """The API server answers 403 about either; discovery, which everybody may read, tells them apart."""
    lacking, having = (asyncio.run(surveyed(Discovered(groups), tmp_path))[0] for groups in (["other.dev"], [POLICY.group]))
    assert (lacking.unread["GPUPolicy"], lacking.absent >= {"GPUPolicy"}) == ("the API server has no gpupolicies.berth.dev", True)
    assert (having.unread["GPUPolicy"], having.absent >= {"GPUPolicy"}) == ("you may not list gpupolicies.berth.dev", False)


def test_without_a_server_nothing_is_reported(tmp_path: Path) -> None:
    """A page of a proxy in front of it is no list."""
    api = FakeApi(NODE)
    api.faults.append("list html")
    with pytest.raises(Unreachable, match="not JSON"):
        asyncio.run(surveyed(api, tmp_path))
