"""The reconciler: what is written, when, and how often, without an API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import pytest

from cluster.client.errors import Reply, Unreachable
from cluster.reconciler import Correction, Reconciler


@dataclass
class Server:
    """Stores texts by key. ``status`` is the one of its answers; ``change`` is what it makes of a text that is written."""

    status: int = 200
    change: Callable[[str], str] = lambda text: text
    stored: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    async def call(self, method: str, path: str, *, body: Any, **_: Any) -> Reply:
        self.calls.append(f"{method} {path}")
        if self.status == 0:
            raise Unreachable("it is away")
        if self.status != 200:
            return Reply(self.status, {"kind": "Status", "message": "no"}, retry_after=45.0 if self.status == 429 else None)
        if method == "DELETE":
            del self.stored[path]
        else:
            self.stored[path] = self.change(body["text"])
        return Reply(200, body)


@dataclass(kw_only=True)
class Texts(Reconciler[str]):
    """Brings the texts of a server to the desired ones."""

    task: ClassVar[str] = "texts"

    server: Server
    desired: dict[str, str] = field(default_factory=dict)

    async def collect(self) -> bool:
        self.add(self.desired.keys() | self.server.stored.keys())
        return True

    def correction(self, key: str) -> Correction | None:
        if key == "odd":
            raise ZeroDivisionError("unforeseen")
        wanted, stored = self.desired.get(key), self.server.stored.get(key)
        if wanted == stored:
            return None
        method = "PATCH" if wanted is not None else "DELETE"
        return Correction(
            subject=key,
            desired=wanted,
            stored=stored,
            answered=lambda reply: self.server.stored.get(key),
            path=key,
            method=method,
            body={"text": wanted},
        )


@dataclass
class World:
    """A reconciler, its server, and the time, which stands still until it is set."""

    now: float = 1_000.0
    left: float = 60.0
    server: Server = field(default_factory=Server)
    logged: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.texts = Texts(
            client=cast(Any, self.server),
            left=lambda: self.left,
            tell=lambda event, /, **fields: self.logged.append(fields["error"]),
            clock=lambda: self.now,
            chance=lambda: 0.5,
            rate=100_000.0,
            server=self.server,
        )

    def turn(self) -> float:
        """Return the seconds until the next turn."""
        return asyncio.run(self.texts._turn())


@pytest.fixture
def world() -> World:
    return World()


def test_what_differs_is_written_and_what_is_not_desired_is_deleted(world: World) -> None:
    """Once: afterwards nothing differs."""
    world.texts.desired = {"a": "1", "b": "2"}
    world.server.stored = {"b": "2", "c": "3"}
    assert world.turn() == world.texts.idle
    assert world.server.stored == world.texts.desired
    assert sorted(world.server.calls) == ["DELETE c", "PATCH a"]
    world.turn()
    assert len(world.server.calls) == 2
    assert (world.texts.counts.written, world.texts.counts.deleted, world.texts.due) == (1, 1, 0)


def test_the_same_is_not_written_again_within_a_minute(world: World) -> None:
    """However often another writer puts its own back."""
    world.texts.desired = {"a": "1"}
    for seconds, calls in ((0, 1), (30, 1), (29, 1), (1, 2), (59, 2)):
        world.now += seconds
        world.server.stored["a"] = "of another"
        world.turn()
        assert len(world.server.calls) == calls
    world.texts.desired["a"] = "2"
    world.turn()
    assert len(world.server.calls) == 3


def test_what_the_server_stores_differently_is_not_written_again(world: World) -> None:
    """Of a definition without some fields, as an older release has it."""
    world.server.change = lambda text: text.upper()
    world.texts.desired = {"a": "x"}
    for _ in range(3):
        world.turn()
        world.now += 1_000
    assert len(world.server.calls) == 1


def test_a_write_that_is_denied_is_tried_again_later_and_later(world: World) -> None:
    """At most once a minute; the others are written meanwhile."""
    world.texts.again = 20.0
    world.texts.desired = {"a": "1"}
    world.server.status = 403
    for seconds, calls in ((0, 1), (19, 1), (1, 2), (39, 2), (1, 3), (59, 3), (1, 4), (59, 4), (1, 5)):
        world.now += seconds
        assert world.turn() == world.texts.idle
        assert len(world.server.calls) == calls
    assert world.logged == ["a: 403 no"]
    assert world.texts.counts.failed == 5


@pytest.mark.parametrize(("status", "error"), [(0, "it is away"), (503, "503 no"), (429, "429 no")])
def test_a_server_that_fails_gets_one_call_a_turn(world: World, status: int, error: str) -> None:
    """The pause doubles up to half a minute, or is what the server asks for; the next turn begins with another object."""
    world.texts.desired = {f"{number}": "1" for number in range(20)}
    world.server.status = status
    pauses = [world.turn() for _ in range(8)]
    assert pauses == ([45.0] * 8 if status == 429 else [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0])
    assert len(set(world.server.calls)) == len(world.server.calls) == 8
    assert (world.logged, world.texts.counts.failed) == ([error], 8)
    world.server.status = 200
    world.now += 60
    assert world.turn() == world.texts.idle
    assert world.server.stored == world.texts.desired


def test_a_conflict_is_no_failure(world: World) -> None:
    """The newer object comes by the watch, and is compared again."""
    world.texts.desired = {"a": "1"}
    world.server.status = 409
    assert world.turn() == world.texts.idle
    assert (world.texts.counts.lost, world.texts.counts.failed, world.texts.due) == (1, 0, 0)
    world.server.status = 200
    world.turn()
    assert world.server.stored == {"a": "1"}


def test_nothing_is_written_without_the_lease(world: World) -> None:
    """Whoever gets it again compares everything."""
    world.texts.desired = {"a": "1"}
    world.left = 0.0
    world.turn()
    assert world.server.calls == []
    world.left = 60.0
    world.turn()
    world.left = 0.0
    world.turn()
    world.server.stored["a"] = "of another replica"
    world.left = 60.0
    world.turn()
    assert world.server.stored == {"a": "1"}


def test_one_object_holds_up_no_other(world: World) -> None:
    """Its error is logged, and it is tried again in a minute."""
    world.texts.desired = {"odd": "1", "a": "1"}
    world.turn()
    assert world.server.stored == {"a": "1"}
    assert world.logged == ["ZeroDivisionError: unforeseen"]
    assert world.texts.due == 1
