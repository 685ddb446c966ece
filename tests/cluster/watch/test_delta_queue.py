"""The inbox against a model: what is taken is what changed, each object once, whatever comes in which order."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from cluster.watch.delta_queue import DeltaQueue
from cluster.watch.trims import Raw
from policies.state.objects import Key
from tests.support.counts import count

KINDS = ("GPUPolicy", "ClusterGPUPolicy", "Node")
NAMES = ("a", "b", "c", "d")


def thing(name: str, version: int, namespace: str = "", uid: str = "u") -> Raw:
    metadata: Raw = {"name": name, "uid": uid, "resourceVersion": str(version), **({"namespace": namespace} if namespace else {})}
    return {"metadata": metadata, "spec": {"of": version}}


class Model:
    """What the API server has, and what the reader has been told, kept the simplest way."""

    def __init__(self) -> None:
        self.there: dict[Key, Raw] = {}
        self.applied: dict[Key, Raw] = {}

    def take(self, taken: dict[Key, Raw | None]) -> None:
        for key, value in taken.items():
            if value is None:
                self.applied.pop(key, None)
            else:
                self.applied[key] = value


def key_of(kind: str, one: Raw) -> Key:
    return kind, one["metadata"].get("namespace") or "", one["metadata"]["name"]


def step(random: Random, inbox: DeltaQueue, model: Model, version: int) -> None:
    """One call of the inbox, and the same on the model."""
    kind = random.choice(KINDS)
    namespace = random.choice(("x", "y")) if kind == "GPUPolicy" else ""
    one = thing(random.choice(NAMES), version, namespace, random.choice(("u", "v")))
    match random.randrange(4):
        case 0:
            inbox.put(kind, one)
            model.there[key_of(kind, one)] = one
        case 1:
            inbox.remove(kind, one)
            model.there.pop(key_of(kind, one), None)
        case 2:
            kept = [value for key, value in model.there.items() if key[0] == kind and random.random() < 0.7]
            listed = [*(value for value in kept if key_of(kind, value) != key_of(kind, one)), one]
            random.shuffle(listed)
            inbox.replace(kind, listed)
            model.there = {key: value for key, value in model.there.items() if key[0] != kind}
            model.there |= {key_of(kind, value): value for value in listed}
        case _:
            model.take(inbox.take())


def test_whoever_takes_knows_what_is_there() -> None:
    """After any lists, events and takings in any order, the next taking leads to what is there, and the sizes are right."""
    for seed in range(count(200, 10_000)):
        random, inbox, model = Random(seed), DeltaQueue(), Model()
        for version in range(1, 60):
            step(random, inbox, model, version)
        model.take(inbox.take())
        assert model.applied == model.there, f"Random({seed})"
        assert sum(inbox.sizes().values()) == len(model.there)
        assert (inbox.take(), inbox.filled.is_set()) == ({}, False)


def test_what_is_known_in_this_version_is_not_taken_again() -> None:
    """Of a new list only what differs is taken: another version, another uid in the same, what is new, what is gone."""
    inbox = DeltaQueue()
    inbox.replace("Node", [thing(name, 1) for name in NAMES])
    inbox.take()
    inbox.replace("Node", [thing("a", 1), thing("b", 2), thing("c", 1, uid="other"), thing("e", 1)])
    taken = inbox.take()
    assert set(taken) == {("Node", "", name) for name in ("b", "c", "d", "e")}
    assert taken["Node", "", "d"] is None


@pytest.mark.parametrize("odd", [1_000, "\ud800"], ids=["deep", "no UTF-8"])
def test_an_object_that_orjson_does_not_write_is_taken_like_any_other(odd: int | str) -> None:
    """Somebody's object that is nested deeper, or has half a character, keeps nobody else's from being known; it is taken with each list,
    as nobody tells whether it is the same."""
    value: Any = odd
    for _ in range(odd if isinstance(odd, int) else 0):
        value = {"x": value}
    inbox = DeltaQueue()
    for _ in range(2):
        inbox.replace("Node", [{**thing("a", 1), "spec": value}, thing("b", 1)])
        assert ("Node", "", "a") in inbox.take()
    inbox.put("Node", {**thing("a", 2), "spec": value})
    assert set(inbox.take()) == {("Node", "", "a")}


def test_an_object_that_changes_often_is_taken_once() -> None:
    """In its newest form, also one that is gone and there again."""
    inbox = DeltaQueue()
    for version in range(1, 50):
        inbox.put("Node", thing("a", version))
    inbox.remove("Node", thing("a", 50))
    inbox.put("Node", thing("a", 51, uid="other"))
    assert inbox.take() == {("Node", "", "a"): thing("a", 51, uid="other")}


def test_the_end_of_what_is_not_known_is_nothing() -> None:
    """Nobody is woken for it."""
    inbox = DeltaQueue()
    inbox.remove("Node", thing("a", 1))
    assert (inbox.filled.is_set(), inbox.take()) == (False, {})


def test_an_empty_first_list_is_told() -> None:
    """Whoever waits for it need not wait longer; and kinds are apart."""
    inbox = DeltaQueue()
    inbox.put("GPUPolicy", thing("a", 1, "x"))
    inbox.take()
    inbox.replace("Node", [])
    assert inbox.filled.is_set()
    assert (inbox.take(), inbox.sizes()) == ({}, {"GPUPolicy": 1, "Node": 0})


def test_a_digest_is_the_same_for_the_same_versions_alone() -> None:
    """Two that were told the same in other orders and by other ways agree; any difference in name, namespace or version shows."""
    digests: dict[str, frozenset[tuple[str, str, int]]] = {}
    for seed in range(count(300, 5_000)):
        random = Random(seed)
        places = random.sample([(namespace, name) for namespace in ("", "a", "b") for name in NAMES], random.randint(0, 3))
        known = frozenset((namespace, name, random.randint(1, 2)) for namespace, name in places)
        things: list[dict[str, Any]] = [thing(name, version, namespace) for namespace, name, version in known]
        random.shuffle(things)
        listed, watched = DeltaQueue(), DeltaQueue()
        listed.replace("Node", things)
        watched.put("Node", thing("other", 9))
        for one in things:
            watched.put("Node", one)
        watched.remove("Node", thing("other", 9))
        watched.take()
        assert listed.digest("Node") == watched.digest("Node")
        assert digests.setdefault(listed.digest("Node"), known) == known
