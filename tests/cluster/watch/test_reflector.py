"""Following one kind: whatever the server does wrong, what is kept is what the server has."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cluster.client.api_client import Client
from cluster.client.line_stream import Lines
from cluster.watch import listing, reflector
from cluster.watch.kinds import KINDS, Watched
from tests.support.cluster.collecting_store import CollectingStore, following, run, until
from tests.support.cluster.fake_api import LIST_FAULTS, WATCH_FAULTS, FakeApi, serving
from tests.support.counts import count
from tests.testcluster.calls import PATIENCE

POLICY, NAMESPACE, NODE, NODE_POOL = (
    next(one for one in KINDS if one.kind == kind) for kind in ("GPUPolicy", "Namespace", "Node", "NodePool")
)
HARMLESS = ("event again", "bookmark", "split", "empty lines")
"""What is no error"""
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A script that fails waits for seconds: to make it shorter would take an hour."""
Step = tuple[str, str, int]


def steps() -> st.SearchStrategy[list[Step]]:
    names = st.sampled_from(["a", "b", "c", "d", "e"])
    put = st.tuples(st.just("put"), names, st.integers(0, 3))
    delete = st.tuples(st.just("delete"), names, st.just(0))
    fault = st.tuples(st.just("wrong"), st.sampled_from([one for one in LIST_FAULTS + WATCH_FAULTS if one != "silence"]), st.just(0))
    other = st.tuples(st.sampled_from(["rest", "compact"]), st.just(""), st.just(0))
    return st.lists(st.one_of(put, put, delete, fault, fault, other), max_size=14)


async def done(api: FakeApi, step: Step) -> None:
    what, name, number = step
    if what == "put":
        await api.put(name, number)
    elif what == "delete":
        await api.delete(name)
    elif what == "wrong":
        await api.wrong(name)
    elif what == "compact":
        api.compact()
    else:
        await asyncio.sleep(0.005)


async def played(watched: Watched, script: list[Step]) -> None:
    api, kept = FakeApi(watched), CollectingStore()
    with tempfile.TemporaryDirectory() as folder:
        async with serving(api, Path(folder)) as client, following(client, [watched], kept, watch_seconds=1):
            for step in script:
                await done(api, step)
            await until(lambda: not api.faults and kept.named(watched.kind) == api.seen(), f"{script}: {api.faults} {kept.logged[-3:]}")
            await api.put("last", "one")
            await until(lambda: kept.named(watched.kind) == api.seen(), f"{script}, and then one more")


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("watched", [POLICY, NAMESPACE], ids=lambda one: one.kind)
@settings(max_examples=count(12, 500), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], phases=UNSHRUNK)
@given(script=steps())
def test_after_any_faults_what_is_kept_is_what_the_server_has(watched: Watched, script: list[Step]) -> None:
    """Lists and watches that fail, lie or end in any order, between changes: nothing is lost, and nothing stays that is gone."""
    run(played(watched, script))


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("fault", WATCH_FAULTS)
def test_each_fault_of_a_watch_is_told_and_followed_by_a_list(fault: str, tmp_path: Path) -> None:
    """A watch that did anything odd is never resumed; duplicates, bookmarks and split characters are not odd."""

    async def work() -> None:
        api, kept = FakeApi(POLICY), CollectingStore()
        await api.put("a", 1)
        async with serving(api, tmp_path) as client, following(client, [POLICY], kept, watch_seconds=2) as ([one], _):
            await until(lambda: one.counts.watches == 1, "the first watch")
            if fault.startswith("watch "):
                await api.wrong("list 429")  # ends the watch, so that there is a next one
            await api.wrong(fault)
            await api.put("b", 2)
            await until(lambda: not api.faults and kept.named("GPUPolicy") == api.seen(), f"{fault}: {kept.logged}")
            assert (one.counts.lists == 1, kept.errors() == []) == (fault in HARMLESS, fault in HARMLESS), kept.logged
            assert "bad" not in kept.named("GPUPolicy")

    run(work())


@pytest.mark.usefixtures("soon")
def test_a_watch_that_ends_at_its_own_time_goes_on_from_there(tmp_path: Path) -> None:
    """No list is asked for again, and nothing is told."""

    async def work() -> None:
        api, kept = FakeApi(POLICY), CollectingStore()
        async with serving(api, tmp_path) as client, following(client, [POLICY], kept, watch_seconds=1) as ([one], _):
            for number in range(4):
                await until(lambda number=number: one.counts.watches > number, "a watch")  # type: ignore[misc]
                await api.put("a", number)
            await until(lambda: kept.named("GPUPolicy") == api.seen(), "the last change")
            assert (one.counts.lists, api.counts["list"], kept.errors()) == (1, 1, [])

    run(work())


@pytest.mark.usefixtures("soon")
def test_a_watch_that_says_nothing_is_noticed(tmp_path: Path) -> None:
    """The connection stands, the server is silent past the end of the watch: the kind is listed again."""

    async def work() -> None:
        api, kept = FakeApi(POLICY), CollectingStore()
        async with serving(api, tmp_path) as client, following(client, [POLICY], kept, watch_seconds=2) as ([one], _):
            await until(lambda: one.counts.watches == 1, "the first watch")
            await api.wrong("silence")
            await until(lambda: not api.faults, "the silence")
            begun = time.monotonic()
            await api.put("a", 1)
            await until(lambda: kept.named("GPUPolicy") == api.seen(), "the change")
            assert time.monotonic() - begun > 1
            assert "does not answer in time" in kept.errors()[0]

    run(work())


@pytest.mark.usefixtures("soon")
def test_a_list_comes_in_pages_and_begins_again_where_one_has_expired(tmp_path: Path) -> None:
    """410 with a continue: all of it is asked for anew, and nothing of the first half is taken."""

    async def work() -> None:
        api, kept = FakeApi(NODE), CollectingStore()
        await api.put_many(10)
        await api.wrong("list 410 in the middle")
        async with serving(api, tmp_path) as client, following(client, [NODE], kept):
            await until(lambda: kept.named("Node") == api.seen(), "ten nodes")
            assert api.counts["list"] == 2 + 4
            assert "410" in kept.errors()[0]

    run(work())


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("fault", ["", "stream with changes", "stream without end", "stream cut", "stream hangs"])
def test_a_list_is_streamed_where_the_server_streams(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is what the server has, also where the stream fails: the pages are read then."""
    monkeypatch.setattr(listing, "BEGINS", 0.2)

    async def work() -> None:
        api, kept = FakeApi(POLICY), CollectingStore()
        api.streams = True
        for number in range(30):
            await api.put(f"a{number}", number)
        api.faults.extend([fault] if fault else [])
        async with serving(api, tmp_path) as client, following(client, [POLICY], kept) as ([one], _):
            await until(lambda: one.synced and kept.named("GPUPolicy") == api.seen(), "the list")
            streams = fault in ("", "stream with changes")
            assert (api.counts["stream"], "list" in api.counts, kept.errors()) == (1, not streams, [])
            await api.put("a1", "new")
            await until(lambda: kept.named("GPUPolicy") == api.seen(), "a change")

    run(work())


@pytest.mark.usefixtures("soon")
def test_pages_are_as_large_as_their_objects_allow(tmp_path: Path) -> None:
    """Of small objects ever larger ones, up to a client's default; of large ones no page is much over a mebibyte, without a failure."""

    async def work() -> None:
        watched = replace(POLICY, most=0)
        api, kept = FakeApi(watched), CollectingStore()
        api.page = 10_000
        for number in range(400):
            await api.put(f"a{number:03}", number)
        for number in range(30):
            await api.put(f"b{number:03}", "x" * 500_000)
        for number in range(200):
            await api.put(f"c{number:03}", number)
        async with serving(api, tmp_path) as client, following(client, [watched], kept) as ([one], _):
            await until(lambda: one.synced and kept.named("GPUPolicy") == api.seen(), "the list")
            assert (one.counts.lists, kept.errors()) == (1, [])
        assert api.limits[:3] == [10, 40, 160]
        assert min(api.limits) == 1
        assert api.limits[-1] > 100
        assert max(api.limits) <= POLICY.page

    run(work())


@pytest.mark.usefixtures("soon")
def test_a_sink_that_raises_is_told_and_gets_the_whole_list(tmp_path: Path) -> None:
    """At the first list, at a change and at a deletion."""

    async def work() -> None:
        api, kept = FakeApi(POLICY), CollectingStore()
        kept.broken = 2
        await api.put("a", 1)
        async with serving(api, tmp_path) as client, following(client, [POLICY], kept) as ([one], _):
            await until(lambda: one.counts.watches == 1, "the first watch")
            for change in (api.put("b", 1), api.delete("a")):
                kept.broken = 1
                await change
                await until(lambda: kept.named("GPUPolicy") == api.seen() and one.healthy, "what the server has")
            assert all("can't be processed: KeyError" in error for error in kept.errors())
            assert len(kept.errors()) == 3

    run(work())


@pytest.mark.usefixtures("soon")
def test_a_log_that_fails_ends_nothing(tmp_path: Path) -> None:
    """What is told may raise."""

    async def work() -> None:
        api, kept = FakeApi(POLICY), CollectingStore()
        kept.logged = None  # type: ignore[assignment]
        async with serving(api, tmp_path) as client, following(client, [POLICY], kept):
            await api.wrong("event html")
            await api.put("b", 1)
            await until(lambda: kept.named("GPUPolicy") == api.seen(), "what the server has")

    run(work())


@pytest.mark.usefixtures("soon")
def test_a_kind_that_nobody_needs_may_be_absent(tmp_path: Path) -> None:
    """404 in every version: synced and empty; when it is there it is followed, and when it goes there are none of it."""

    async def work() -> None:
        api, kept = FakeApi(NODE), CollectingStore()
        api.definition = None
        async with serving(api, tmp_path) as client, following(client, [NODE], kept) as ([one], _):
            await until(lambda: one.synced, "sync")
            assert (one.absent, one.healthy, one.error) == (True, True, "")
            api.definition = {}
            await api.put("n", 1)
            await until(lambda: list(kept.named("Node")) == ["n"], "the node")
            assert not one.absent
            api.definition = None
            await api.wrong("end")
            await until(lambda: one.absent and not kept.named("Node"), "no nodes")

    run(work())


@pytest.mark.usefixtures("soon")
def test_an_older_version_is_followed_where_there_is_no_newer_one(tmp_path: Path) -> None:
    """Versions are tried in their order, each time the kind is listed; objects are of the version that was found."""

    async def work() -> None:
        claim = next(one for one in KINDS if one.kind == "ResourceClaim")
        api, kept = FakeApi(claim, "v1beta1"), CollectingStore()
        await api.put("a", 1)
        async with serving(api, tmp_path) as client, following(client, [claim], kept) as ([one], _):
            await until(lambda: one.counts.watches == 1 and kept.named("ResourceClaim") == api.seen(), "the first version")
            assert kept.named("ResourceClaim")["a"]["apiVersion"] == "resource.k8s.io/v1beta1"
            api.served = "v1"  # an upgrade
            await api.put("a", 2)
            api.history.clear()
            await api.wrong("end")
            await until(lambda: kept.named("ResourceClaim") == api.seen() and one.healthy, "the second version")

    run(work())


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("watched", [POLICY, NAMESPACE, NODE], ids=lambda one: one.kind)
def test_a_kind_that_may_not_be_read_is_told(watched: Watched, tmp_path: Path) -> None:
    """403 at the start: what is required is not synced, the rest is, and is not healthy; followed as soon as it may be."""

    async def work() -> None:
        api, kept = FakeApi(watched), CollectingStore()
        api.forbidden = True
        await api.put("a", 1)
        async with serving(api, tmp_path) as client, following(client, [watched], kept) as ([one], _):
            await until(lambda: one.counts.errors >= 3, "errors")
            assert (one.synced, one.healthy) == (not watched.required, False)
            assert one.error.startswith(f"Berth may not read {watched.resource}: ")
            assert one.error.endswith("type: kubectl apply -f deploy/rbac.yaml")
            assert kept.errors() == [one.error]
            api.forbidden = False
            await until(lambda: kept.named(watched.kind) == api.seen() and one.healthy and one.synced, "what the server has")

    run(work())


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("watched", "fault"),
    [
        *((one, "list 500") for one in KINDS if not one.required),
        *((NODE_POOL, fault) for fault in ("list html", "list cut", "list of others", "list hangs")),
        (NODE, "list hangs"),
    ],
    ids=lambda one: one.kind if isinstance(one, Watched) else one,
)
def test_no_optional_kind_holds_up_a_first_decision(watched: Watched, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong with its list, as by a conversion webhook that is down: it is unknown, and known once its list works."""
    monkeypatch.setattr(reflector, "PATIENCE", 0.05)
    monkeypatch.setattr(reflector, "LONG_PATIENCE", 0.05)
    monkeypatch.setattr(listing, "SECONDS", 0.5)

    async def work() -> None:
        api, kept = FakeApi(watched), CollectingStore()
        await api.put("a", 1)
        api.faults.extend([fault] * (3 if fault == "list hangs" else 10))
        async with serving(api, tmp_path) as client, following(client, [watched], kept) as ([one], _):
            await until(lambda: one.settled, "the first decision")
            assert (one.healthy, one.counts.lists) == (False, 0)
            await until(lambda: kept.named(watched.kind) == api.seen() and one.healthy and one.synced, "what the server has")
            assert watched.without in [fields.get("without") for event, fields in kept.logged if event == "kind_failed"]

    run(work())


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("fault", ["list 500", "list html"])
@pytest.mark.parametrize("watched", [one for one in KINDS if one.required], ids=lambda one: one.kind)
def test_a_required_kind_is_awaited(watched: Watched, fault: str, tmp_path: Path) -> None:
    """Policies and namespaces that can't be listed hold up the first decision: without them no policy would act."""

    async def work() -> None:
        api, kept = FakeApi(watched), CollectingStore()
        await api.put("a", 1)
        api.faults.extend([fault] * 6)
        async with serving(api, tmp_path) as client, following(client, [watched], kept) as ([one], _):
            await until(lambda: one.counts.errors > 4, "failures")
            assert not one.settled
            await until(lambda: one.settled and kept.named(watched.kind) == api.seen(), "what the server has")

    run(work())


@pytest.mark.usefixtures("soon")
def test_a_kind_of_ours_must_be_there(tmp_path: Path) -> None:
    """404 at the start: not synced, with what to type; synced as soon as it is there."""

    async def work() -> None:
        api, kept = FakeApi(POLICY), CollectingStore()
        api.definition = None
        async with serving(api, tmp_path) as client, following(client, [POLICY], kept) as ([one], _):
            await until(lambda: one.error != "", "an error")
            assert not one.synced
            assert not one.healthy
            assert one.error.endswith("type: berth crds | kubectl apply -f -")
            api.definition = {}
            await until(lambda: one.synced and one.healthy and not one.error, "sync")

    run(work())


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("how", ["terminating", "gone", "terminating, and the watch ends", "gone, and the watch ends"])
def test_what_goes_with_its_definition_is_kept(how: str, tmp_path: Path) -> None:
    """A CustomResourceDefinition takes all its objects along: that is no wish of a team. When it is back, what it has counts."""

    async def work() -> None:
        api, kept = FakeApi(POLICY), CollectingStore()
        await api.put("a", 1)
        async with serving(api, tmp_path) as client, following(client, [POLICY], kept) as ([one], _):
            await until(lambda: one.counts.watches == 1, "the first watch")
            api.definition = {"metadata": {"deletionTimestamp": "2026-11-21T00:00:00Z"}} if how.startswith("terminating") else None
            if how.endswith("ends"):
                api.history.clear()
                api.store.clear()
                await api.wrong("end")
            else:
                await api.delete("a")
            await until(lambda: one.counts.errors >= 4, "errors")
            assert (list(kept.named("GPUPolicy")), kept.removed, one.synced, one.healthy) == (["a"], [], True, False)
            assert "the last valid objects stay active" in one.error
            api.definition = {"metadata": {}}
            await api.put("b", 1)
            await until(lambda: list(kept.named("GPUPolicy")) == ["b"] and one.healthy, "what the new one has")

    run(work())


@pytest.mark.usefixtures("soon")
def test_a_deletion_costs_one_question(tmp_path: Path) -> None:
    """Whether the definition is still there is asked once for all deletions that come together."""

    async def work() -> None:
        api, kept = FakeApi(POLICY), CollectingStore()
        for name in "abcdefgh":
            await api.put(name, 1)
        async with serving(api, tmp_path) as client, following(client, [POLICY], kept) as ([one], _):
            await until(lambda: one.counts.watches == 1, "the first watch")
            for name in "abcdefg":
                api.version += 1
                gone = api.store.pop(name)
                gone["metadata"]["resourceVersion"] = str(api.version)
                api.history.append((api.version, "DELETED", gone))
            await api.delete("h")
            await until(lambda: not kept.named("GPUPolicy"), "all gone")
            assert len(kept.removed) == 8
            assert api.counts["definition"] == 1

    run(work())


def test_ten_thousand_events_at_once_let_others_work(tmp_path: Path) -> None:
    """The event loop is never held for long, and all of them arrive."""

    async def work() -> None:
        api, kept = FakeApi(NODE), CollectingStore()
        async with serving(api, tmp_path) as client, following(client, [NODE], kept) as ([one], _):
            await until(lambda: one.counts.watches == 1, "the first watch")
            many = count(10_000, 100_000)
            await api.put_many(many)
            begun, most, arrived = time.monotonic(), 0, 0
            while len(kept.objects) < many:
                await asyncio.sleep(0)
                most, arrived = max(most, len(kept.objects) - arrived), len(kept.objects)
                assert time.monotonic() - begun < PATIENCE
            assert (one.counts.lists, one.counts.events) == (1, many)
            assert most <= 200
            print(f"{many / (time.monotonic() - begun):.0f} events/s, at most {most} in one turn")

    run(work())


def test_a_list_that_is_cancelled_as_it_begins_ends() -> None:
    """The cancellation arrives in the turn of the event loop that brings the first bytes of a streamed list."""

    class Served:
        """A client whose streams wait for their bytes."""

        def __init__(self) -> None:
            self.reading = asyncio.Event()
            self.bytes: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        @contextlib.asynccontextmanager
        async def stream(self, *_: object) -> AsyncIterator[Lines]:
            yield Lines(self._read)

        async def _read(self) -> bytes:
            self.reading.set()
            chunk, self.bytes = await self.bytes, asyncio.get_running_loop().create_future()
            return chunk

    async def work() -> None:
        served = Served()
        task = asyncio.create_task(listing.Listing(cast("Client", served), POLICY, streams=True).all())
        await served.reading.wait()
        policy = {
            "apiVersion": "berth.dev/v1alpha1",
            "kind": "GPUPolicy",
            "metadata": {"name": "a", "namespace": "x", "resourceVersion": "1"},
        }
        served.bytes.set_result(orjson.dumps({"type": "ADDED", "object": policy}) + b"\n")
        await asyncio.sleep(0)  # the read has its bytes, and the list that waits for it has not run yet
        task.cancel()
        ended, _ = await asyncio.wait([task], timeout=PATIENCE)
        assert ended, "it goes on after it was cancelled"
        assert task.cancelled()

    run(work())
