"""One asks for all whether the server is there."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from cluster.client.api_client import Access, Client
from cluster.watch import backoff, connectivity
from cluster.watch.connectivity import Connectivity
from cluster.watch.kinds import KINDS
from tests.support.cluster.collecting_store import run, until
from tests.support.cluster.fake_api import FakeApi, kubeconfig, serving
from tests.support.cluster.faulty_proxy import Proxy

NODE = next(one for one in KINDS if one.kind == "Node")


async def connected(folder: Path, server: str, token: str | None = None) -> Client:
    return await Client.connect(Access(str(kubeconfig(folder, server, token))))


def test_a_gate_that_nobody_doubts_asks_nothing(tmp_path: Path) -> None:
    """And one doubt costs one question."""

    async def work() -> None:
        api = FakeApi(NODE)
        async with serving(api, tmp_path) as client:
            gate = Connectivity(client)
            await gate.passing()
            assert "version" not in api.counts
            gate.doubt()
            await asyncio.gather(*(gate.passing() for _ in range(50)))
            assert (api.counts["version"], gate.open) == (1, True)

    run(work())


def test_an_outage_is_counted_when_it_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits between tries begins anew then; a doubt that is over at once is none."""
    clock = [100.0]
    monkeypatch.setattr("cluster.watch.connectivity.time.monotonic", lambda: clock[0])

    async def work() -> None:
        async with serving(FakeApi(NODE), tmp_path) as client:
            gate = Connectivity(client)
            for seconds, outages in ((connectivity.OUTAGE / 2, 0), (connectivity.OUTAGE, 1), (0, 1)):
                gate.doubt()
                clock[0] += seconds
                await gate.passing()
                assert gate.outages == outages

    run(work())


def test_while_the_server_is_down_one_tries_for_all(tmp_path: Path) -> None:
    """Fifty that wait make less than one connection a second together, ever more rarely."""

    async def work() -> None:
        with Proxy("127.0.0.1", 1) as proxy:
            proxy.deny()
            client = await connected(tmp_path, f"https://127.0.0.1:{proxy.port}", "a token")
            gate = Connectivity(client)
            gate.doubt()
            waiting = [asyncio.create_task(gate.passing()) for _ in range(50)]
            await until(lambda: len(proxy.connections) > 3, "four attempts")
            gaps = [after - before for before, after in pairwise(proxy.connections)]
            least = [backoff.FIRST * 2.0**number * (1 - backoff.JITTER) for number in range(3)]
            assert all(gap > bound for gap, bound in zip(gaps, least, strict=False)), gaps
            assert "can't be reached" in gate.error
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            await client.close()

    run(work())


def test_all_go_on_at_once_when_the_server_is_back(tmp_path: Path) -> None:
    """Also where the one that asked has been ended meanwhile: another takes its place."""

    async def work() -> None:
        api = FakeApi(NODE)
        async with serving(api, tmp_path) as direct:
            with Proxy("127.0.0.1", int(direct.server.rpartition(":")[2])) as proxy:
                proxy.deny()
                client = await connected(tmp_path, f"http://127.0.0.1:{proxy.port}")
                gate = Connectivity(client)
                gate.doubt()
                waiting = [asyncio.create_task(gate.passing()) for _ in range(50)]
                await until(lambda: gate.error != "", "an error")
                assert not any(one.done() for one in waiting)
                waiting[0].cancel()
                proxy.deny(on=False)
                await until(lambda: all(one.done() for one in waiting), "all of them")
                assert (api.counts["version"], gate.error) == (1, "")
                await client.close()

    run(work())


def test_credentials_that_are_not_accepted_close_the_gate(tmp_path: Path) -> None:
    """A 401 concerns all kinds; with a good token all go on."""

    async def work() -> None:
        api = FakeApi(NODE)
        api.token = "first"
        async with serving(api, tmp_path) as client:
            gate, api.token = Connectivity(client), "second"
            gate.doubt()
            waiting = asyncio.create_task(gate.passing())
            await until(lambda: "does not accept Berth's credentials" in gate.error, "401")
            kubeconfig(tmp_path, client.server, "second")
            await until(waiting.done, "the new token")

    run(work())
