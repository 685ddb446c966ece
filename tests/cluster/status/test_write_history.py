"""Which statuses are to be written, by what was written before: without an API server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from analysis.conditions import ObjectStatus, compute_conditions
from cluster.status.write_history import WriteHistory
from policies.state.objects import Key, ObjectEntry
from policies.state.updater import Options, Updater
from tests.support.cases.golden import catalog_with

KEY: Key = ("ClusterGPUPolicy", "", "one")


@dataclass(slots=True)
class Clock:
    now: float = 1_000.0
    history: WriteHistory = field(init=False)

    def __post_init__(self) -> None:
        self.history = WriteHistory(lambda: self.now, 60.0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def found() -> tuple[ObjectEntry, ObjectStatus]:
    """A policy without a status, and what is found of it."""
    value = {"metadata": {"name": "one", "uid": "u", "generation": 1, "resourceVersion": "7"}, "spec": {"mode": "Enforce"}}
    update = Updater(catalog_with(), Options(platforms=("gke",))).apply({KEY: value})
    return update.entries[KEY], compute_conditions(update.snapshot, update.entries, {})[KEY]


def test_an_object_without_its_status_is_due(clock: Clock) -> None:
    """One of another uid or generation than the finding's is not: it is found anew first."""
    entry, finding = found()
    assert asyncio.run(clock.history.due({KEY: entry}, {KEY: finding})) == [KEY]
    others = (None, replace(entry, uid="other"), replace(entry, generation=2))
    assert [clock.history.is_due(other, finding) for other in others] == [False, False, False]


def test_the_same_is_not_written_again_within_a_minute(clock: Clock) -> None:
    """However often another writer puts its own back."""
    entry, finding = found()
    assert clock.history.is_due(entry, finding)
    clock.history[KEY].try_later(finding, clock.now)
    clock.now += 59.0
    assert not clock.history.is_due(replace(entry, resource_version="8"), finding)
    clock.now += 1.0
    assert clock.history.is_due(replace(entry, resource_version="9"), finding)


def test_what_was_looked_at_is_not_looked_at_again(clock: Clock) -> None:
    """A write that changed nothing leaves the version as it is; after a change of hands everything is looked at."""
    entry, finding = found()
    assert clock.history.is_due(entry, finding)
    clock.history[KEY].looked_at = entry.resource_version, finding
    assert not clock.history.is_due(entry, finding)
    clock.history.forget()
    assert clock.history.is_due(entry, finding)
    clock.history.keep_only([])
    with pytest.raises(KeyError):
        clock.history[KEY]
