"""What is asked of the API server about one person, and what is made of its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest

from cluster.client.errors import Unreachable
from console.access.api_server import ApiServer
from console.access.people import People, Person
from console.access.rights import CLUSTER_WIDE, NAMESPACED, Rights, places
from console.world.scope import ALL, NONE, ListableNamespaces, Scope
from tests.console.access.test_sessions import Clock
from tests.support.console.worlds import world
from tests.support.recorded import eks

ADA = Person(name="ada", uid="7", groups=("team", "system:authenticated"), extra=(("scopes", ("a", "b")),))


class Answers(ApiServer):
    """Says what it is told to, and remembers what it was asked."""

    def __init__(self, allowed: set[tuple[str, str]], status: Mapping[str, Any] | None = None) -> None:
        self.allowed, self.status = allowed, status
        self.asked: list[Mapping[str, Any]] = []
        self.gone = False

    async def review(self, group: str, kind: str, plural: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append(spec)
        await asyncio.sleep(0)
        if self.gone:
            raise Unreachable("It is gone")
        if self.status is not None:
            return self.status
        what = spec["resourceAttributes"]
        return {"allowed": (what["resource"], what["namespace"]) in self.allowed}


def test_every_right_is_asked_for() -> None:
    """No field of a scope is left to a default; in the cluster first, then by namespace, with all by which a person may be known."""
    found = world(eks.objects())
    answers = Answers({("pods", "research"), ("nodes", ""), ("gpupolicies", "")})
    scope = asyncio.run(Rights(answers).of(ADA, found))
    assert {field.name for field in fields(Scope)} == {"who", "reports", *NAMESPACED, *CLUSTER_WIDE}
    expected = Scope(
        who="ada", pods=ListableNamespaces(names=frozenset({"research"})), own_policies=ALL, nodes=True, events=NONE, reports=NONE
    )
    assert scope == expected
    asked = [(one["resourceAttributes"]["resource"], one["resourceAttributes"]["namespace"]) for one in answers.asked]
    assert len(asked) == len(set(asked)) == 9 + len(places(found)) + 2
    assert {what for what, where in asked if where == "research"} == {"pods", "events", "reports"}
    who = {"user": "ada", "uid": "7", "groups": ["team", "system:authenticated"], "extra": {"scopes": ["a", "b"]}}
    assert all({**one, **who} == one and one["resourceAttributes"]["verb"] == "list" for one in answers.asked)


def test_what_somebody_may_list_in_all_namespaces_needs_no_pods() -> None:
    """Who may list policies, Events or reports of the whole cluster sees them; who may in one namespace, where its pods are theirs too."""
    found = world(eks.objects())
    both = {("reports", "research"), ("policyreports", "research")}
    for allowed, expected in (
        ({("events", "")}, {"events": ALL}),
        ({("events", "research"), *both}, {}),
        ({("pods", ""), *both}, {"pods": ALL, "reports": ListableNamespaces(names=frozenset({"research"}))}),
        ({("pods", ""), ("policyreports", "research")}, {"pods": ALL}),
    ):
        assert asyncio.run(Rights(Answers(allowed)).of(ADA, found)) == Scope(who="ada", **expected)  # type: ignore[arg-type]


def test_answers_count_for_a_while() -> None:
    """Nothing is asked twice within it, also by pages at the same time; afterwards all is."""
    found, clock, answers = world(eks.objects()), Clock(), Answers(set())
    rights = Rights(answers, clock)

    async def pages() -> None:
        await asyncio.gather(*(rights.of(ADA, found) for _ in range(6)))

    asyncio.run(pages())
    once = len(answers.asked)
    clock.now += 29
    asyncio.run(pages())
    assert len(answers.asked) == once
    clock.now += 1
    asyncio.run(pages())
    assert len(answers.asked) == 2 * once


def test_nothing_is_guessed() -> None:
    """An API server that does not answer ends it, and what is neither yes nor no is no."""
    found, answers = world(eks.objects()), Answers(set())
    answers.gone = True
    with pytest.raises(Unreachable):
        asyncio.run(Rights(answers).of(ADA, found))
    for status in ({}, {"allowed": "true"}, {"allowed": True, "denied": True}, {"allowed": 1}):
        assert asyncio.run(Rights(Answers(set(), status)).of(ADA, found)) == Scope(who="ada")


def test_a_token_is_somebodys_only_if_it_is_said() -> None:
    """Authenticated, without an error, with a name that is not the anonymous one, and meant for the audience that was asked for."""
    good = {"authenticated": True, "user": {"username": "ada", "uid": "7", "groups": ["team"], "extra": {"b": ["2"], "a": None}}}
    found = asyncio.run(People(Answers(set(), good)).of("t"))
    assert found == Person(name="ada", uid="7", groups=("team",), extra=(("a", ()), ("b", ("2",))))
    anonymous = {"authenticated": True, "user": {"username": "system:anonymous"}}
    for status in ({}, {**good, "authenticated": "true"}, {**good, "error": "x"}, {"authenticated": True}, anonymous, {**good, "user": {}}):
        assert asyncio.run(People(Answers(set(), status)).of("t")) is None
    for got, meant in ((["console", "x"], True), (["x"], False), ([], False), (None, False)):
        who = asyncio.run(People(Answers(set(), {**good, "audiences": got}), ["console"]).of("t"))
        assert (who is not None) == meant
    silent = Answers(set(), good)
    assert asyncio.run(People(silent).of("no token")) is None
    assert silent.asked == []
