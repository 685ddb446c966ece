"""The inbox against a model: what is taken is what changed, each object once, whatever comes in which order."""

from __future__ import annotations

from random import Random
from typing import Any

import orjson
import pytest

from cluster.watch.bounds import SHARE, ListBounds
from cluster.watch.decoder import event
from cluster.watch.delta_queue import AT_ONCE, AT_ONCE_BYTES, DeltaQueue
from cluster.watch.kinds import KINDS as KINDS_FOLLOWED
from kube.tree import Raw
from policies.document import UNREAD
from policies.policy import API_VERSION
from policies.state.objects import Key
from tests.support.cluster.collecting_store import at_once, digest_of
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
            at_once(inbox.replace(kind, listed))
            model.there = {key: value for key, value in model.there.items() if key[0] != kind}
            model.there |= {key_of(kind, value): value for value in listed}
        case _:
            model.take(inbox.take())


def test_whoever_takes_knows_what_is_there() -> None:
    """After any lists, events and takings in any order, the next taking leads to what is there, and the sizes are right."""
    for seed in range(count(120, 10_000)):
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
    at_once(inbox.replace("Node", [thing(name, 1) for name in NAMES]))
    inbox.take()
    at_once(inbox.replace("Node", [thing("a", 1), thing("b", 2), thing("c", 1, uid="other"), thing("e", 1)]))
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
        at_once(inbox.replace("Node", [{**thing("a", 1), "spec": value}, thing("b", 1)]))
        assert ("Node", "", "a") in inbox.take()
    inbox.put("Node", {**thing("a", 2), "spec": value})
    assert set(inbox.take()) == {("Node", "", "a")}


def claim(name: str, size: int, namespace: str, version: int = 1) -> Raw:
    metadata: Raw = {"name": name, "uid": name, "namespace": namespace, "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {"devices": {"requests": [{"exactly": {"deviceClassName": "x" * size}}]}}}


@pytest.mark.parametrize(("spec", "last_good", "unread"), [(250_000, 250_000, 0), (270_000, 100, 1), (100, 270_000, 1)])
def test_the_last_good_spec_of_a_policy_counts_apart(spec: int, last_good: int, unread: int) -> None:
    """A large policy with an error is read again once it is fixed, though its status has the last good spec; each alone is bounded."""
    policy = claim("policy", spec, "a") | {"apiVersion": API_VERSION, "kind": "GPUPolicy"}
    policy |= {"status": {"lastGood": {"generation": 1, "spec": {"text": "x" * last_good}}}}
    inbox = DeltaQueue()
    inbox.put("GPUPolicy", policy)
    assert inbox.unread("GPUPolicy") == unread
    watched = next(kind for kind in KINDS_FOLLOWED if kind.kind == "GPUPolicy")
    streamed = event(orjson.dumps({"type": "ADDED", "object": policy}), watched, watched.versions[0]).value
    assert streamed is not None
    assert (UNREAD in streamed) is bool(unread)
    assert (UNREAD in ListBounds(watched).within([policy])[0]) is bool(unread)


def test_of_an_object_that_is_too_large_the_name_is_kept() -> None:
    """A claim or a policy is queued as one that can't be read; of another kind there is none, and it is not wholly known."""
    inbox = DeltaQueue()
    for kind, size, namespace in (("ResourceClaim", 70_000, "a"), ("GPUPolicy", 270_000, "a"), ("Node", 70_000, "")):
        inbox.put(kind, claim("big", size, namespace))
        inbox.put(kind, claim("small", 100, namespace))
        assert inbox.unread(kind) == 1
        big = inbox.take()[kind, namespace, "big"]
        if kind == "Node":
            assert big is None
        else:
            assert big is not None
            assert (big["spec"], UNREAD in big) == (None, True)
        inbox.put(kind, claim("big", 100, namespace, 2))
        assert inbox.unread(kind) == 0
        assert inbox.take() == {(kind, namespace, "big"): claim("big", 100, namespace, 2)}


def test_a_namespace_has_a_share_of_what_is_kept() -> None:
    """Whatever comes and goes: nothing beyond the share is kept, nothing of other namespaces is lost, and deletions make room."""
    for seed in range(count(6, 200)):
        random, inbox = Random(seed), DeltaQueue()
        kept: dict[Key, Raw] = {}
        known: set[Key] = set()
        for version in range(1, 250):
            namespace, name = random.choice(("full", "full", "full", "other")), f"c{random.randrange(60)}"
            kind = random.choice(("ResourceClaim", "ResourceClaimTemplate"))
            obj = claim(name, random.randrange(60_000) if namespace == "full" else 100, namespace, version)
            if random.random() < 0.7:
                inbox.put(kind, obj)
                known.add(key_of(kind, obj))
            else:
                inbox.remove(kind, obj)
                known.discard(key_of(kind, obj))
            for key, value in inbox.take().items():
                if value is None or UNREAD in value:
                    kept.pop(key, None)
                else:
                    kept[key] = value
            assert sum(len(orjson.dumps(value)) for key, value in kept.items() if key[1] == "full") <= SHARE
            assert {key for key in known if key[1] == "other"} == {key for key in kept if key[1] == "other"}
            assert inbox.unread("ResourceClaim") + inbox.unread("ResourceClaimTemplate") == len(known) - len(kept)
        for kind, _, name in known:
            for namespace in ("full", "other"):
                inbox.remove(kind, claim(name, 0, namespace))
        assert not inbox._kept
        inbox.put("ResourceClaim", claim("last", 60_000, "full"))
        assert inbox.unread("ResourceClaim") == 0


@pytest.mark.parametrize("kind", ["GPUPolicy", "ResourceClaim"])
def test_a_new_list_and_a_new_replica_keep_what_is_kept(kind: str) -> None:
    """Of a namespace beyond its share the oldest objects are kept, in whatever order names come; a digest tells which."""
    olds, news = ([claim(f"{letter}{number:02}", 55_000, "full") for number in range(34)] for letter in "za")
    for age, some in enumerate((olds, news)):
        for obj in some:
            obj["metadata"]["creationTimestamp"] = f"2026-11-2{age}T00:00:00Z"
    followed, restarted = DeltaQueue(), DeltaQueue()
    at_once(followed.replace(kind, olds))
    followed.take()
    for obj in news:
        followed.put(kind, obj)
    unread = {key for key, value in followed.take().items() if value is not None and UNREAD in value}
    for _ in range(2):
        at_once(followed.replace(kind, [*news, *olds]))
        assert {key for key, value in followed.take().items() if value is not None and UNREAD not in value} == set()
        assert followed.unread(kind) == len(unread)
    at_once(restarted.replace(kind, [*news, *olds]))
    assert {key for key, value in restarted.take().items() if value is not None and UNREAD in value} == unread
    assert restarted.digest(kind) == followed.digest(kind)


def test_a_new_list_keeps_what_there_is_room_for_now() -> None:
    """An object beyond the share is queued again once others are gone."""
    inbox = DeltaQueue()
    many = [claim(f"c{number:02}", 50_000, "full") for number in range(50)]
    at_once(inbox.replace("ResourceClaim", many))
    inbox.take()
    assert (unread := inbox.unread("ResourceClaim")) > 0
    at_once(inbox.replace("ResourceClaim", many[20:]))
    assert inbox.unread("ResourceClaim") == 0
    assert len([value for value in inbox.take().values() if value is not None]) == unread


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
    at_once(inbox.replace("Node", []))
    assert inbox.filled.is_set()
    assert (inbox.take(), inbox.sizes()) == ({}, {"GPUPolicy": 1, "Node": 0})


def test_a_digest_is_the_same_for_the_same_versions_alone() -> None:
    """Two that were told the same in other orders and by other ways agree; any difference in name, namespace or version shows."""
    digests: dict[str, frozenset[tuple[str, str, int]]] = {}
    for seed in range(count(150, 5_000)):
        random = Random(seed)
        places = random.sample([(namespace, name) for namespace in ("", "a", "b") for name in NAMES], random.randint(0, 3))
        known = frozenset((namespace, name, random.randint(1, 2)) for namespace, name in places)
        things: list[dict[str, Any]] = [thing(name, version, namespace) for namespace, name, version in known]
        random.shuffle(things)
        listed, watched = DeltaQueue(), DeltaQueue()
        at_once(listed.replace("Node", things))
        watched.put("Node", thing("other", 9))
        for one in things:
            watched.put("Node", one)
        watched.remove("Node", thing("other", 9))
        watched.take()
        assert listed.digest("Node") == watched.digest("Node")
        assert digests.setdefault(listed.digest("Node"), known) == known


@pytest.mark.parametrize(("many", "size", "most"), [(10 * AT_ONCE, 10, AT_ONCE), (100, AT_ONCE_BYTES // 10, 10)], ids=["many", "large"])
def test_a_long_list_is_taken_in_by_parts(many: int, size: int, most: int) -> None:
    """The event loop gets its turn after a bounded number of objects and of bytes; a reader sees nothing of the list before its end."""
    queue, before = DeltaQueue(), 0
    work = queue.replace("ClusterGPUPolicy", [claim(f"p{number}", size, "") for number in range(many)])
    try:
        while True:
            work.send(None)
            known = queue.sizes()["ClusterGPUPolicy"]
            assert (queue.take(), known - before <= most) == ({}, True)
            before = known
    except StopIteration:
        assert (many - before <= most, len(queue.take())) == (True, many)


def test_a_reader_never_misses_an_object_that_stays() -> None:
    """While a list replaces some objects by others, old ones go only together with the coming of the new ones."""
    queue = DeltaQueue()
    at_once(queue.replace("Node", [thing(f"old{number}", 1) for number in range(2 * AT_ONCE)] + [thing("same", 1)]))
    queue.take()
    work = queue.replace("Node", [thing(f"new{number}", 2) for number in range(2 * AT_ONCE)] + [thing("same", 1)])
    for _ in range(3):
        work.send(None)
        assert queue.take() == {}
    at_once(work)
    taken = queue.take()
    assert ("Node", "", "same") not in taken
    assert [value is None for value in taken.values()].count(False) == len(taken) // 2 == 2 * AT_ONCE


@pytest.mark.parametrize("turns", range(1, 6))
def test_the_next_list_repairs_what_a_cancelled_one_has_left(turns: int) -> None:
    """Whenever a list is cut short, whoever takes what came of it and then the next list knows what is there."""
    queue, model = DeltaQueue(), Model()
    at_once(queue.replace("Node", [thing(f"a{number}", 1) for number in range(2 * AT_ONCE)]))
    model.take(queue.take())
    listed = [thing(f"a{number}", 2) for number in range(AT_ONCE, 3 * AT_ONCE)]
    work = queue.replace("Node", listed)
    for _ in range(turns):
        work.send(None)
    work.close()
    model.take(queue.take())
    at_once(queue.replace("Node", listed))
    model.take(queue.take())
    assert model.applied == {key_of("Node", one): one for one in listed}
    assert queue.digest("Node") == digest_of(listed)


def test_what_is_not_wholly_known_is_so_until_the_reader_has_it() -> None:
    """A kind of which a name alone was known counts as not wholly known until the list is in that has the whole object."""
    queue = DeltaQueue()
    at_once(queue.replace("Node", [claim("a", 70_000, "")]))
    queue.take()
    work = queue.replace("Node", [claim("a", 10, "", 2)] + [thing(f"b{number}", 1) for number in range(AT_ONCE)])
    work.send(None)
    assert (queue.unread("Node"), queue.take()) == (1, {})
    at_once(work)
    assert (queue.unread("Node"), ("Node", "", "a") in queue.take()) == (0, True)
