"""Worlds one after another: what has not changed is not judged again, and the outcome is as if it had been."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from analysis.world.builder import WorldBuilder
from analysis.world.counts import PolicyCount
from analysis.world.world import World
from catalog.prices import prices
from sources.worlds import policies_of, world_of
from tests.support.console.worlds import AT, LIBRARY, OPTIONS
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.support.recorded import eks


def built(builder: WorldBuilder, objects: list[dict[str, Any]], ours: list[dict[str, Any]]) -> World:
    return world_of(builder, ours, objects, "dump.yaml", catalog(), AT)


def new() -> WorldBuilder:
    return WorldBuilder(catalog(), OPTIONS, prices(catalog()))


def counted(cells: Mapping[Any, Mapping[Any, PolicyCount]]) -> Any:
    """Counts, with dollars to the cent: pods are added up in the order in which they came."""

    def cents(usd: float | None) -> float | None:
        return None if usd is None else round(usd, 2)

    return {
        (one, other): (count.pods, count.gpus, cents(count.usd), cents(count.usd_found), count.findings)
        for one, found in cells.items()
        for other, count in found.items()
    }


def told(world: World) -> Any:
    """What pages are made of."""
    pods = {key: pod[2:] for key, pod in world.ledger.pods.items()}
    return (
        pods,
        world.ledger.totals(),
        counted(world.counts.cells),
        counted(world.counts.every),
        world.report.findings,
        world.conditions,
        world.policies,
    )


def changed(objects: list[dict[str, Any]], chance: Random) -> list[dict[str, Any]]:
    """Some objects gone, some pods of another size or on another node, a label of a node or a namespace changed."""
    found = [copy.deepcopy(one) for one in objects if chance.random() > 0.1]
    for one in found:
        if one["kind"] in ("Node", "Namespace") and chance.random() < 0.2:
            one["metadata"].setdefault("labels", {})["team"] = chance.choice(("a", "b"))
        if one["kind"] == "Pod" and chance.random() < 0.3:
            one["spec"]["containers"][0].setdefault("resources", {})["limits"] = {"nvidia.com/gpu": str(chance.randrange(1, 12))}
        if one["kind"] == "Pod" and chance.random() < 0.1:
            one["spec"].pop("nodeName", None)
    return found


def test_a_world_is_the_same_whatever_was_built_before() -> None:
    """A builder that has built others, and a new one, of the same objects."""
    chance, library, builder = Random(19), policies_of([LIBRARY], catalog()), new()
    for _ in range(count(12, 300)):
        objects = changed(list(eks.objects()), chance)
        ours = [one for one in library if chance.random() > 0.2]
        if not any(one["kind"] in ("Pod", "Node", "NodePool") for one in objects):
            continue
        assert told(built(builder, objects, ours)) == told(built(new(), objects, ours))


def test_a_world_is_not_changed_by_the_next() -> None:
    """Pages that are made of the old one meanwhile find what was there."""
    builder, library = new(), policies_of([LIBRARY], catalog())
    objects = list(eks.objects())
    first = built(builder, objects, library)
    before = told(first)
    built(builder, [one for one in objects if one["kind"] != "Pod"], library)
    assert told(first) == before
    assert first.ledger.pods


def test_the_same_objects_are_judged_once(monkeypatch: Any) -> None:
    """A reading in which nothing changed judges no pod."""
    builder, library = new(), policies_of([LIBRARY], catalog())
    built(builder, list(eks.objects()), library)
    calls = []
    monkeypatch.setattr("analysis.audit.assessment.audit_pod", lambda *of: calls.append(of))
    built(builder, list(eks.objects()), library)
    assert calls == []


def test_what_is_as_it_was_is_held_once() -> None:
    """Pods and nodes of the next world are those of the one before, where nothing of them changed."""
    builder, library = new(), policies_of([LIBRARY], catalog())
    objects = list(eks.objects())
    before, after = (built(builder, copy.deepcopy(objects), library) for _ in range(2))
    assert before.snapshot is after.snapshot
    one, other = before.seen.cluster, after.seen.cluster
    assert one.pods
    assert [*map(id, one.pods)] == [*map(id, other.pods)]
    assert [*map(id, one.nodes)] == [*map(id, other.nodes)]
    others = changed(copy.deepcopy(objects), Random(3))
    assert told(built(builder, others, library)) == told(built(new(), others, library))


def test_a_world_follows_the_mode_of_the_server() -> None:
    """A console that is not told --max-mode takes what the statuses show: with the brake on, no policy does more than Audit."""
    builder = WorldBuilder(catalog(), replace(OPTIONS, follows_server=frozenset({"max_mode"})), prices(catalog()))
    policies = [{**one, "spec": {**one["spec"], "mode": "Enforce"}} for one in policies_of([LIBRARY], catalog())]
    status = {"mode": "Audit", "conditions": [{"type": "Ready", "status": "True", "reason": "ModeCapped"}]}
    braked = [{**policies[0], "status": status}, *policies[1:]]
    for ours, mode in ((policies, "Enforce"), (braked, "Audit"), (policies, "Enforce")):
        world = built(builder, list(eks.objects()), ours)
        assert (world.snapshot.max_mode, set(world.modes.values())) == (mode, {mode})
