"""Signing in and out, in one process: cookies, forms of other sites, guesses, and what is logged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
from starlette.applications import Starlette

from cluster.client.errors import Unreachable
from console.access import attempts
from console.access.attempts import MOST
from console.access.entrance import Entrance
from console.access.hosts import Hosts
from console.access.people import People, Person
from console.access.rights import Rights
from console.access.sessions import Sessions
from console.access.sign_in import BAD, COOKIE, SignIn
from console.screens import SCREENS
from console.serve import Fixed
from console.server.app import application
from console.server.rendering import environment
from telemetry import log
from tests.console.access.test_rights import Answers
from tests.console.access.test_sessions import Clock
from tests.support import virtual_time
from tests.support.console.asked import Answered, answer
from tests.support.console.worlds import world
from tests.support.recorded import eks

GOOD = "good-token"


class Known(People):
    """Knows one token."""

    def __init__(self) -> None:
        super().__init__(Answers(set()))
        self.good = GOOD
        self.gone = False

    async def of(self, token: str) -> Person | None:
        if self.gone:
            raise Unreachable("It is gone")
        return Person(name="ada", uid="", groups=(), extra=()) if token == self.good else None


class Door:
    """The whole application, and its parts."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self.clock, self.people = Clock(), Known()
        clock = clock or self.clock
        hosts = Hosts([], "https://gpus.example.com")
        paths = [one.path for one in SCREENS if one.section]
        self.gate = SignIn(self.people, Rights(Answers(set())), Sessions(3600, clock), hosts, paths, clock)
        self.app: Starlette = application(
            Fixed(world(eks.objects())), self.gate, SCREENS, Entrance(self.gate, environment()).routes(), hosts.origins
        )

    def ask(self, path: str, form: Mapping[str, str] | None = None, fields: Mapping[str, str] = {}, **headers: str) -> Answered:
        return asyncio.run(
            answer(self.app, path, form=form, fields=fields, headers={name.replace("_", "-"): one for name, one in headers.items()})
        )

    def id(self, **headers: str) -> str:
        """Sign in; return the id of the session."""
        return self.ask("/login", {"token": GOOD, "next": "/"}, {}, **headers).headers["set-cookie"].partition(";")[0].partition("=")[2]


def test_the_cookie_is_for_this_host_alone() -> None:
    """Over TLS, unread by scripts, from no other site's forms and frames, and gone with the session."""
    cookie = Door().ask("/login", {"token": GOOD, "next": "/impact"}).headers["set-cookie"]
    name, *attributes = cookie.split("; ")
    assert name.startswith("__Host-berth=")
    assert {one.lower() for one in attributes} == {"max-age=3600", "path=/", "httponly", "secure", "samesite=lax"}


def test_an_id_that_somebody_brings_is_never_taken() -> None:
    """Signing in ends the session that the browser had and begins another; one that was made up is none."""
    door = Door()
    old = door.id()
    assert door.ask("/impact", cookie=f"{COOKIE}={old}").status == 200
    new = door.id(cookie=f"{COOKIE}={old}")
    assert door.ask("/impact", cookie=f"{COOKIE}={old}").status == 303
    assert door.ask("/impact", cookie=f"{COOKIE}={new}").status == 200
    assert door.id(cookie=f"{COOKIE}=chosen-by-an-attacker") != "chosen-by-an-attacker"
    assert door.ask("/impact", cookie=f"{COOKIE}=chosen-by-an-attacker").status == 303


def test_signing_out_ends_it() -> None:
    """By a form of this site; a link or another site's form does nothing."""
    door = Door()
    cookie = f"{COOKIE}={door.id()}"
    assert door.ask("/logout", cookie=cookie).status == 405
    assert door.ask("/logout", {}, cookie=cookie, origin="https://evil.example").status == 400
    assert door.ask("/impact", cookie=cookie).status == 200
    assert door.ask("/logout", {}, cookie=cookie, origin="https://gpus.example.com").status == 303
    assert door.ask("/impact", cookie=cookie).status == 303


def test_a_revoked_token_ends_its_session_within_a_minute() -> None:
    """It is asked for again then; a token that is another person's now ends it too."""
    door = Door()
    cookie = f"{COOKIE}={door.id()}"
    door.people.good = "another"
    door.clock.now += 59
    assert door.ask("/impact", cookie=cookie).status == 200
    door.clock.now += 1
    assert door.ask("/impact", cookie=cookie).status == 303
    assert len(door.gate.sessions) == 0


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a turn: what would wait is turned away."""
    monkeypatch.setattr(attempts, "LONGEST_WAIT", 0.0)


@pytest.mark.usefixtures("impatient")
def test_guesses_are_bounded() -> None:
    """So many at once, then one at a time; who has a session, or a token that was good before, notices nothing."""
    door = Door()
    for _ in range(MOST + 5):
        cookie = f"{COOKIE}={door.id()}"
    found = [door.ask("/login", {"token": f"guess-{number}", "next": "/"}).status for number in range(MOST + 2)]
    assert found == [401] * MOST + [429] * 2
    denied = door.ask("/impact", authorization="Bearer guess")
    assert (denied.status, denied.headers["retry-after"]) == (429, "1")
    assert door.ask("/impact", cookie=cookie).status == 200
    assert door.id()
    door.clock.now += 1
    assert door.ask("/impact", authorization="Bearer guess").status == 401


@pytest.mark.usefixtures("impatient")
def test_what_a_proxy_sends_is_no_guess() -> None:
    """A token that was good is reviewed each minute, however many others of the same address failed; and an API server that is gone counts
    against nobody."""
    door = Door()
    assert door.ask("/impact", authorization=f"Bearer {GOOD}").status == 200
    door.people.gone = True
    assert {door.ask("/impact", authorization=f"Bearer guess-{number}").status for number in range(2 * MOST)} == {503}
    door.people.gone = False
    found = [door.ask("/impact", authorization=f"Bearer guess-{number}").status for number in range(MOST + 1)]
    assert found == [401] * MOST + [429]
    door.clock.now += 0.1
    assert door.ask("/impact", authorization=f"Bearer {GOOD}").status == 200
    door.clock.now += 60
    assert door.ask("/impact", authorization=f"Bearer {GOOD}").status == 200
    door.people.good = "another"
    door.clock.now += 60
    assert door.ask("/impact", authorization=f"Bearer {GOOD}").status == 401


def test_a_good_token_waits_for_its_turn_behind_guesses() -> None:
    """It is not turned away: whoever signs in through the proxy that strangers use too is let in a moment later."""

    async def all_at_once(clock: Callable[[], float]) -> list[int]:
        door = Door(clock)
        forms = [{"token": f"guess-{number}", "next": "/"} for number in range(2 * MOST)] + [{"token": GOOD, "next": "/"}]
        return [found.status for found in await asyncio.gather(*(answer(door.app, "/login", form=form) for form in forms))]

    assert virtual_time.run(all_at_once) == [401] * 2 * MOST + [303]


def test_the_same_bad_token_is_checked_once() -> None:
    """For some seconds: a program that goes on with a token that has ended costs nobody a turn."""
    door, checked = Door(), list[str]()
    known = door.people.of

    async def counted(token: str) -> Person | None:
        checked.append(token)
        return await known(token)

    door.people.of = counted  # type: ignore[method-assign]
    assert {door.ask("/impact", authorization="Bearer ended").status for _ in range(5 * MOST)} == {401}
    door.clock.now += BAD
    door.people.good = "ended"
    assert door.ask("/impact", authorization="Bearer ended").status == 200
    assert checked == ["ended", "ended"]


@pytest.mark.parametrize("host", ["evil.example", "gpus.example.com.evil.example", "evil.example:443"])
def test_another_host_gets_no_page(host: str) -> None:
    """Neither a page, nor the login form, nor a redirect that names it."""
    door = Door()
    for found in (door.ask("/impact", host=host), door.ask("/login", host=host), door.ask("/login", {"token": GOOD}, host=host)):
        assert (found.status, "location" in found.headers, host in found.text) == (421, False, False)


def test_no_secret_is_logged_or_shown() -> None:
    """Neither tokens nor ids nor what stands behind a question mark; who asked for which page is."""
    door, lines = Door(), list[bytes]()
    log.to(lines.append)
    id_ = door.id()
    door.ask("/impact", fields={"page": "1", "secret": "in-the-query"}, cookie=f"{COOKIE}={id_}")
    shown = door.ask("/login", {"token": "bad-token", "next": "/"}).text
    written = b"".join(lines).decode()
    assert not [one for one in (GOOD, "bad-token", id_, "in-the-query") if one in written + shown]
    assert '"event":"page","path":"/impact","user":"ada","status":200' in written
    assert '"event":"login_denied"' in written


def test_hostile_words_come_to_nothing() -> None:
    """In the address to return to, in the token, and in a form that is no form."""
    door = Door()
    page = door.ask("/login", fields={"next": '/impact?x="><script>alert(1)</script>'})
    assert "<script>alert" not in page.text
    assert door.ask("/login", {"token": "a\r\nSet-Cookie: b=c", "next": "/"}).status == 400
    assert door.ask("/login", {"token": "x" * 70_000}).status == 400
    assert door.ask("/login", {"token": GOOD}, content_type="text/plain").status == 400
    assert door.ask("/login", {"token": GOOD, "next": "//evil.example"}).headers["location"] == "/"
