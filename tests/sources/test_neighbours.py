"""What is read around one object: what its author wrote stays a part of a path, and leads nowhere else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cluster.watch.kinds import KINDS
from sources.neighbours import Neighbours
from tests.support.cluster.fake_api import FakeApi, serving
from tests.support.generators.random_worlds import catalog

NODE = next(one for one in KINDS if one.kind == "Node")


class Answering(FakeApi):
    """It has every object, and each API version lists its resources; the addresses that it was asked for are remembered."""

    def __init__(self) -> None:
        super().__init__(NODE)
        self.asked: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.raw_path)
        return web.json_response({"kind": "APIResourceList", "resources": []})


@pytest.mark.parametrize("version", ["v1?x=", "v1#", "..", "v1%2f..%2f..", "v 1"])
def test_the_version_of_an_owner_is_a_part_of_the_path(tmp_path: Path, version: str) -> None:
    """An owner reference has the API version that the author of a pod wrote: it adds no query, and takes no part of the path away."""
    api = Answering()
    reference = {"apiVersion": f"batch/{version}", "kind": "Job", "name": "a/b", "uid": "u", "controller": True}
    pod: dict[str, Any] = {"kind": "Pod", "metadata": {"name": "p", "ownerReferences": [reference]}}

    async def look() -> None:
        async with serving(api, tmp_path) as client:
            await Neighbours(client, catalog(), "ns").owners(pod)

    asyncio.run(look())
    assert [one for one in api.asked if not one.endswith("/namespaces/ns/jobs/a%2Fb") or "?" in one or "%2f" in one] == []
