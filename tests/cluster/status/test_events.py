"""Which changes are events, and how many at most. That the API server takes them: ``test_statuses``."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from analysis.conditions.conditions import Condition
from analysis.world.happenings import EVENT_NOTE
from cluster.client.api_client import Access, Client
from cluster.status.events import BURST, BURST_OF_ONE, MOST_NAMESPACES, MOST_WAITING, Events
from policies.state.objects import ObjectEntry
from tests.support.cluster.lease_history import closed
from tests.testcluster.controlplane.cluster import Cluster


def entry(*key: str) -> ObjectEntry:
    """The parts of an object that an event names."""
    return cast(ObjectEntry, SimpleNamespace(key=key, uid="u", resource_version="7"))


SUBJECT = entry("GPUPolicy", "default", "p" * 253)
BAD = Condition("Accepted", "False", "Invalid", "x" * 2000)
WELL = Condition("Accepted", "True", "Understood", "")


class Clock:
    """Stands still."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def events(client: Any = None, *, clock: Clock | None = None, held: bool = True) -> Events:
    return Events(client, instance="berth-0", held=lambda: held, tell=lambda event, /, **fields: None, clock=clock or Clock())


@pytest.mark.parametrize(
    ("before", "now", "number"),
    [
        ({}, WELL, 0), ({}, BAD, 1), ({"Accepted": ("True", "Understood")}, WELL, 0), ({"Accepted": ("False", "Invalid")}, BAD, 0),
        ({"Accepted": ("False", "Invalid")}, WELL, 1), ({"Accepted": ("False", "TemplateNotFound")}, BAD, 1),
        ({}, Condition("Conflicted", "False", "NoConflict", ""), 0), ({}, Condition("Conflicted", "True", "DefaultsDiffer", "x"), 1),
        ({}, Condition("Clipped", "True", "OutsideRequirements", "x"), 0),
    ],
    ids=str,
)  # fmt: skip
def test_only_changes_are_events(before: dict[str, tuple[str, str]], now: Condition, number: int) -> None:
    """Of Accepted and Conflicted; and that all is well only where it was not."""
    one = events()
    one.changed(SUBJECT, before, now)
    assert len(one._waiting) == number


def about(namespace: str) -> ObjectEntry:
    return entry("GPUPolicy" if namespace else "ClusterGPUPolicy", namespace, "p")


def test_what_comes_too_fast_is_dropped_and_counted() -> None:
    """A burst, then one a second."""
    clock = Clock()
    one = events(clock=clock)
    for _ in range(BURST + 90):
        one.changed(about(""), {}, BAD)
    assert (len(one._waiting), one.dropped) == (BURST, 90)
    for _ in range(5):
        clock.now += 1.0
        one.changed(about(""), {}, BAD)
        one.changed(about(""), {}, BAD)
    assert (len(one._waiting), one.dropped) == (BURST + 5, 95)


def test_one_namespace_does_not_use_up_the_events_of_others() -> None:
    """Nor all of them together those about the cluster's policies."""
    clock = Clock()
    one = events(clock=clock)
    for _ in range(100):
        one.changed(about("loud"), {}, BAD)
    assert len(one._waiting) == BURST_OF_ONE
    one.changed(about("quiet"), {}, BAD)
    assert len(one._waiting) == BURST_OF_ONE + 1
    for number in range(100):
        one.changed(about(f"ns-{number}"), {}, BAD)
    assert len(one._waiting) == BURST
    one.changed(about(""), {}, BAD)
    assert len(one._waiting) == BURST + 1
    clock.now += 10.0
    one.changed(about("loud"), {}, BAD)
    one.changed(about("loud"), {}, BAD)
    assert len(one._waiting) == BURST + 2


def test_namespaces_that_are_quiet_again_are_forgotten() -> None:
    """However many there have been."""
    clock = Clock()
    one = events(clock=clock)
    for number in range(3 * MOST_NAMESPACES):
        clock.now += 1.0
        one.changed(about(f"ns-{number}"), {}, BAD)
    assert len(one._of_one) <= MOST_NAMESPACES


def test_no_more_events_wait_than_can_be_sent_soon() -> None:
    """While the API server answers slowly, more come than go."""
    clock = Clock()
    one = events(clock=clock)
    for number in range(3 * MOST_WAITING):
        clock.now += 1.0
        one.changed(about(f"ns-{number}"), {}, BAD)
    assert (len(one._waiting), one.dropped) == (MOST_WAITING, 2 * MOST_WAITING)


@pytest.mark.parametrize("held", [True, False])
def test_the_longest_event_is_taken_and_only_who_holds_sends(plane: Cluster, *, held: bool) -> None:
    """By a real API server: its limits on names, notes and namespaces hold."""

    async def run() -> Events:
        client = await Client.connect(Access(str(plane.kubeconfig)))
        one = events(client, held=held)
        one.changed(SUBJECT, {}, BAD)
        one.changed(entry("ClusterGPUPolicy", "", "a.b"), {}, BAD)
        task = asyncio.create_task(one.run())
        while one._filled.is_set():
            await asyncio.sleep(0.01)
        task.cancel()
        await closed(client)
        return one

    one = asyncio.run(run())
    assert (one.sent, one.dropped) == (2 if held else 0, 0 if held else 2)
    stored = plane.api.list("events.k8s.io/v1", "Event", "default", fieldSelector="reason=Invalid")
    assert all(len(one["note"]) == EVENT_NOTE for one in stored)
