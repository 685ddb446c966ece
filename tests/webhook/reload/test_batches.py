"""Changes of a cluster outlive whatever is raised while they are applied."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from cluster.watch.delta_queue import DeltaQueue
from kube.tree import Raw
from policies.state.updater import Update, Updater
from server.limits import Limits
from sources.sources import ClusterSource, Sources, SourcesError, of_a_cluster, options
from telemetry.metrics import Metrics
from tests.support.cluster.collecting_store import until
from webhook.admission.app import AdmissionState
from webhook.reload import batches as module
from webhook.reload import cluster_watcher
from webhook.reload.activation import activate
from webhook.reload.batches import Batches, Changes
from webhook.reload.cluster_watcher import ClusterWatcher
from webhook.reload.reload_results import ReloadResults


def policy(name: str, version: int, most: int = 1) -> Raw:
    metadata = {"name": name, "uid": name, "generation": version, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"mode": "Enforce", "require": {"gpusPerPod": {"max": most}}}}


class Applying:
    """An updater that raises for chosen objects, or for all batches."""

    def __init__(self) -> None:
        self.updater = Updater(*options(of_a_cluster(Sources())))
        self.poison: set[str] = set()
        self.failures = 0
        """How many of the next batches fail"""
        self.batches = 0

    async def __call__(self, changes: Changes) -> Update:
        self.batches += 1
        if self.failures:
            self.failures -= 1
            raise RuntimeError("can't start new thread")
        if names := self.poison & {name for _, _, name in changes}:
            raise ValueError(f"poisoned: {sorted(names)}")
        return self.updater.apply(changes)


def acting(update: Update) -> dict[str, int | None]:
    limits = {compiled.policy.name: compiled.policy.require.gpus_per_pod for compiled in update.snapshot.policies}
    return {name: limit.max if limit else None for name, limit in limits.items()}


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_a_batch_that_failed_once_is_applied_later() -> None:
    """With what came meanwhile, of which the newest form counts; nothing is isolated."""

    async def work() -> None:
        queue, applying = DeltaQueue(), Applying()
        batches = Batches(queue, applying)
        await queue.replace("ClusterGPUPolicy", [policy("a", 1), policy("b", 1)])
        assert acting((await batches.next()).update) == {"a": 1, "b": 1}
        queue.put("ClusterGPUPolicy", policy("c", 2))
        queue.put("ClusterGPUPolicy", policy("a", 2, most=2))
        queue.remove("ClusterGPUPolicy", policy("b", 1))
        applying.failures = 1
        with pytest.raises(RuntimeError):
            await batches.next()
        assert queue.filled.is_set()
        queue.put("ClusterGPUPolicy", policy("a", 3, most=3))
        assert acting((await batches.next()).update) == {"a": 3, "c": 1}
        assert not batches.isolated

    run(work())


def test_one_poisoned_object_holds_up_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    """It is isolated and named once, and its last good form acts; deleted, it is forgotten."""

    async def work() -> None:
        queue, applying = DeltaQueue(), Applying()
        batches = Batches(queue, applying)
        await queue.replace("ClusterGPUPolicy", [policy(f"p{number}", 1) for number in range(40)])
        await batches.next()
        applying.poison = {"p7"}
        await queue.replace("ClusterGPUPolicy", [policy(f"p{number}", 2, most=2) for number in range(41)])
        with pytest.raises(ValueError, match="poisoned"):
            await batches.next()
        keys, update = await batches.next()
        assert acting(update) == {f"p{number}": 1 if number == 7 else 2 for number in range(41)}
        assert ("ClusterGPUPolicy", "", "p7") not in keys
        assert len(keys) == 40
        assert batches.names("ClusterGPUPolicy") == ["ClusterGPUPolicy/p7"]
        assert applying.batches < 20
        assert sorted(update.modified) == sorted(f"ClusterGPUPolicy/p{number}" for number in range(40) if number != 7)
        assert update.policies_changed
        queue.put("ClusterGPUPolicy", policy("p8", 3, most=3))
        queue.remove("ClusterGPUPolicy", policy("p7", 2))
        applying.poison = set()
        assert acting((await batches.next()).update)["p8"] == 3
        assert not batches.isolated
        assert "p7" not in acting((await batches.next()).update)

    run(work())
    assert capsys.readouterr().err.count('"event":"object_isolated","object":"ClusterGPUPolicy/p7"') == 1


def test_an_isolated_object_is_tried_again_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """In its newest form, without any further change in the cluster."""
    monkeypatch.setattr(module, "AGAIN", 0.01)

    async def work() -> None:
        queue, applying = DeltaQueue(), Applying()
        batches = Batches(queue, applying)
        applying.poison = {"a"}
        await queue.replace("ClusterGPUPolicy", [policy("a", 1), policy("b", 1)])
        with pytest.raises(ValueError, match="poisoned"):
            await batches.next()
        assert acting((await batches.next()).update) == {"b": 1}
        for _ in range(3):
            await until(lambda: queue.waits, "the next attempt")
            assert acting((await batches.next()).update) == {"b": 1}
        applying.poison = set()
        await until(lambda: queue.waits, "the last attempt")
        assert acting((await batches.next()).update) == {"a": 1, "b": 1}
        assert not batches.isolated

    run(work())


def test_an_older_form_never_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """An isolated object that changes, or is deleted, while its next attempt is due: its newest state is applied last."""
    monkeypatch.setattr(module, "AGAIN", 0.05)

    async def work() -> None:
        for newest in (policy("a", 2, most=2), None):
            queue, applying = DeltaQueue(), Applying()

            async def slowly(changes: Changes, applying: Applying = applying) -> Update:
                await asyncio.sleep(0.1 if changes else 0)
                return await applying(changes)

            batches = Batches(queue, slowly)
            applying.poison = {"a"}
            await queue.replace("ClusterGPUPolicy", [policy("a", 1)])
            with pytest.raises(ValueError, match="poisoned"):
                await batches.next()
            await batches.next()
            applying.poison = set()
            await queue.replace("ClusterGPUPolicy", [newest] if newest else [])
            await batches.next()
            assert not queue.waits
            assert acting((await batches.next()).update) == ({"a": 2} if newest else {})

    run(work())


def test_a_failure_of_the_process_isolates_nothing() -> None:
    """Where nothing can be applied at all, all is kept for when it can."""

    async def work() -> None:
        queue, applying = DeltaQueue(), Applying()
        batches = Batches(queue, applying)
        applying.failures = 7
        await queue.replace("ClusterGPUPolicy", [policy(f"p{number}", 1) for number in range(5)])
        failed = 0
        while True:
            try:
                update = (await batches.next()).update
            except RuntimeError:
                failed += 1
                continue
            break
        assert failed == 4  # a batch alone, then three times with an empty one
        assert len(acting(update)) == 5
        assert not batches.isolated

    run(work())


def watcher() -> ClusterWatcher:
    admission = AdmissionState(limits=Limits(), metrics=Metrics("x"))
    source = ClusterSource(kubeconfig=None, context=None, watch=60, lease=("a", "b"))
    made = ClusterWatcher(source, Sources(), ReloadResults(admission=admission))
    made._updater = Updater(*options(of_a_cluster(Sources())))
    return made


def following(check: Callable[[ClusterWatcher], Coroutine[Any, Any, None]]) -> None:
    async def work() -> None:
        made = watcher()
        await made.inbox.replace("ClusterGPUPolicy", [policy("a", 1)])
        await made._take()
        task = asyncio.create_task(made.follow())
        try:
            await check(made)
        finally:
            task.cancel()

    run(work())


def in_force(made: ClusterWatcher) -> list[str]:
    snapshot = made.results.admission.snapshot
    return [compiled.policy.name for compiled in snapshot.policies] if snapshot else []


def test_a_swap_that_fails_is_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compiled is activated once that works, though nothing else changes."""
    failures = [1, 1]

    async def broken(results: ReloadResults, update: Update) -> None:
        if failures:
            failures.pop()
            raise OSError("no memory")
        await activate(results, update)

    async def check(made: ClusterWatcher) -> None:
        monkeypatch.setattr(cluster_watcher, "activate", broken)
        made.inbox.put("ClusterGPUPolicy", policy("b", 2))
        await until(lambda: in_force(made) == ["a", "b"], "the change")
        assert not failures

    following(check)


def test_the_event_loop_goes_on_while_the_catalog_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog and the options are read on a thread of their own, and what is wrong with them is raised all the same."""
    threads: list[int] = []

    def wrong(sources: Sources) -> None:
        threads.append(threading.get_ident())
        raise SourcesError([])

    monkeypatch.setattr(cluster_watcher, "options", wrong)
    with pytest.raises(SourcesError):
        asyncio.run(watcher().first())
    assert threads
    assert threading.get_ident() not in threads
