"""Sessions: under new ids, bounded, never longer than their tokens, and of no use without the id."""

from __future__ import annotations

import base64
import json

from console.access.people import Person, expiry, is_token
from console.access.sessions import MOST, MOST_OF_ONE, Sessions


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def person(name: str = "ada") -> Person:
    return Person(name=name, uid="", groups=(), extra=())


def jwt(**claims: object) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.c2ln"


def test_a_session_ends_on_time() -> None:
    """After what was asked for, or with its token if that is sooner."""
    clock = Clock()
    sessions = Sessions(3600, clock, lambda: 5000.0)
    long, short = sessions.open("opaque", person())[0], sessions.open(jwt(exp=5060), person())[0]
    clock.now += 59
    assert sessions.find(short) is not None
    clock.now += 1
    assert (sessions.find(short), sessions.find(long) is None) == (None, False)
    clock.now += 3540
    assert sessions.find(long) is None
    assert sessions.open(jwt(exp=1), person())[1] == 0


def test_what_is_stored_opens_nothing() -> None:
    """Neither ids nor tokens are in it; the id gives the token back, and no two sessions have one id."""
    sessions = Sessions(3600)
    ids = {sessions.open("the-secret-token", person(str(number)))[0] for number in range(50)}
    assert len(ids) == 50
    stored = repr(sessions._sessions) + "".join(str(one.sealed) for one in sessions._sessions.values())
    assert not [one for one in (*ids, "the-secret-token") if one in stored]
    assert {sessions.token(one) for one in ids} == {"the-secret-token"}
    assert sessions.find("made-up") is None


def test_the_number_is_bounded() -> None:
    """Somebody who signs in again and again ends sessions of their own; of all, the oldest ends."""
    sessions = Sessions(3600)
    other = sessions.open("t", person("bob"))[0]
    own = [sessions.open("t", person("ada"))[0] for _ in range(MOST_OF_ONE + 5)]
    assert [sessions.find(one) is not None for one in own] == [False] * 5 + [True] * MOST_OF_ONE
    assert sessions.find(other) is not None
    for number in range(MOST):
        sessions.open("t", person(f"p{number}"))
    assert len(sessions) == MOST
    assert sessions.find(other) is None


def test_claims_are_read_without_faith() -> None:
    """What is no token of three parts, or has an odd end, has no end that is known."""
    assert expiry(jwt(exp=12)) == 12
    odd = ("", "a.b", "a.!.c", "a.W10.c", jwt(exp="12"), jwt(exp=True), jwt(exp=-1), jwt(exp=10**400), "é.é.é", f"a.{'W' * 9999}.c")
    assert {expiry(one) for one in odd} == {None}
    assert [is_token(one) for one in ("a.b-c_d~+/=", "", "a b", "a\nb", "é", "x" * 16385)] == [True, *[False] * 5]
