"""The application: headers, forms, errors, and the one-time token of a laptop."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import re
from typing import Any

import pytest

from analysis.world.world import World
from cluster.client.errors import Unreachable
from console.access.one_time import COOKIE, OneTimeToken
from console.screens import SCREENS
from console.serve import Fixed
from console.server.app import HEADERS, application
from console.server.page import NotShown, Page, Screen, Visit
from console.server.query import MOST_FIELDS, MOST_FORM
from console.server.rendering import STATIC, VERSION
from telemetry import log
from tests.support.browser.served import listening
from tests.support.console.asked import Answered, Somebody, answer, asked
from tests.support.console.worlds import world
from tests.support.recorded import eks
from tests.testcluster.calls import PATIENCE

HTMX = "22283ef68cb7545914f0a88a1bdedc7256a703d1d580c1d255217d0a50d31313"
"""SHA-256 of dist/htmx.min.js of htmx.org 2.0.8."""


@pytest.fixture(scope="module")
def some_world() -> World:
    return world(eks.objects())


class Unread:
    """A source that has read nothing yet."""

    world: World | None = None
    stale = "the API server does not answer"
    near = None

    async def first(self) -> None:
        """Return at once: there is a reason."""


def page_of(screen: Screen, some_world: World, **more: Any) -> Answered:
    return asyncio.run(answer(application(Fixed(some_world), Somebody(), (screen,)), screen.path, **more))


def test_nothing_inline_may_run(some_world: World) -> None:
    """Every answer has the policy; no page has a script, a style or a handler of its own, or an address of another host."""
    for path in [*(screen.path for screen in SCREENS), "/nowhere", f"/static/{VERSION}/berth.css", "/livez"]:
        found = asked(some_world, path)
        policy = found.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert policy.startswith("default-src 'none'")
        if found.headers["content-type"].startswith("text/html"):
            assert re.findall(r"<script(?![^>]* src=\"/static)|<style| style=| on[a-z]+=|https?://(?!www\.w3\.org)", found.text) == []


def test_pages_are_not_stored_and_files_are_for_ever(some_world: World) -> None:
    """What somebody may see is no browser's to keep; a file's address changes with what it holds."""
    assert asked(some_world, "/impact").headers["cache-control"] == "no-store"
    files = [file.name for file in STATIC.iterdir()]
    assert {asked(some_world, f"/static/{VERSION}/{name}").headers["cache-control"] for name in files} == {
        "public, max-age=31536000, immutable"
    }
    assert asked(some_world, f"/static/{VERSION}/../screens.py").status == 404


def test_htmx_is_the_one_that_was_pinned() -> None:
    """The only script that is not our own."""
    import hashlib

    assert hashlib.sha256((STATIC / "htmx.min.js").read_bytes()).hexdigest() == HTMX


def test_errors_are_pages(some_world: World) -> None:
    """What is not there, what may not be seen, and an address that makes no sense say what to do."""
    assert asked(some_world, "/nowhere").status == 404
    assert "Check the address, or go to the start page" in asked(some_world, "/nowhere").text
    assert asked(some_world, "/impact", page="-1").status == 400
    assert "must be a number" in asked(some_world, "/impact", page="x" * 9000).text
    fields = {f"f{number}": "1" for number in range(MOST_FIELDS + 1)}
    assert asyncio.run(answer(application(Fixed(some_world), Somebody(), SCREENS), "/impact", fields=fields)).status == 400


def test_a_mistake_of_ours_is_not_shown(some_world: World, capfd: pytest.CaptureFixture[str]) -> None:
    """The page has no trace of it; the log has."""

    def fails(visit: Visit) -> Page:
        raise RuntimeError("secret detail")

    lines: list[bytes] = []
    log.to(lines.append)
    app = application(Fixed(some_world), Somebody(), (Screen(path="/", show=fails),))
    sent: list[Any] = []

    async def ask() -> None:
        with contextlib.suppress(RuntimeError):  # Starlette raises it again once it is answered, for the server's log
            sent.append(await answer(app, "/"))

    asyncio.run(ask())
    assert not sent or "secret detail" not in sent[0].text
    assert any(b"secret detail" in line for line in lines)


def test_a_mistake_has_the_headers_of_every_page(some_world: World, capfd: pytest.CaptureFixture[str]) -> None:
    """Though Starlette answers it outside of what adds them."""

    def fails(visit: Visit) -> Page:
        raise RuntimeError

    log.to(lambda line: None)
    app = application(Fixed(some_world), Somebody(), (Screen(path="/", show=fails),))
    with listening(lambda _base: app) as base:
        connection = http.client.HTTPConnection(base.removeprefix("http://"), timeout=PATIENCE)
        connection.request("GET", "/")
        found = connection.getresponse()
        connection.close()
    assert found.status == 500
    assert {name: found.headers[name] for name in (*HEADERS, "Cache-Control")} == {**HEADERS, "Cache-Control": "no-store"}


def test_before_the_first_reading_the_reason_is_told() -> None:
    """A cluster that was never read: 503, with what is the matter, and when to come again."""
    found = asked(Unread(), "/impact")
    assert found.status == 503
    assert "the API server does not answer" in found.text
    assert found.headers["retry-after"] == "5"


def test_a_cluster_that_is_gone_is_told_with_the_time(some_world: World) -> None:
    """The last world goes on, and each page says since when it has not been read."""

    class Gone(Fixed):
        stale = "the API server at https://10.0.0.1 can't be reached"

    found = asked(Gone(some_world), "/impact")
    assert found.status == 200
    assert "has not been read since 08:00:00 UTC" in found.text
    assert "10.0.0.1" in asked(Gone(some_world), "/state").text


@pytest.mark.parametrize(
    ("headers", "form", "expected"),
    [
        ({}, {"a": "1"}, 200),
        ({"origin": "http://127.0.0.1:8480"}, {"a": "1"}, 200),
        ({"origin": "https://evil.example"}, {"a": "1"}, 400),
        ({"origin": "null"}, {"a": "1"}, 400),
        ({"content-type": "text/plain"}, {"a": "1"}, 400),
        ({}, {"a": "x" * MOST_FORM}, 400),
    ],
)
def test_forms_are_bounded_and_our_own(some_world: World, headers: dict[str, str], form: dict[str, str], expected: int) -> None:
    """A form of another site, of another type, or of too many bytes is denied with words."""

    def echo(visit: Visit) -> Page:
        return Page(template="error.html", title="Echo", values={"text": visit.query.text("a"), "status": 200})

    assert page_of(Screen(path="/echo", show=echo, form=True), some_world, form=form, headers=headers).status == expected


def test_a_screen_without_form_takes_none(some_world: World) -> None:
    """POST is for screens that say so."""
    assert asyncio.run(answer(application(Fixed(some_world), Somebody(), SCREENS), "/impact", form={})).status == 405


def test_what_is_gathered_may_be_denied_or_unreachable(some_world: World) -> None:
    """Both are pages."""

    async def gone(visit: Visit) -> None:
        raise Unreachable("the API server at x can't be reached")

    async def hidden(visit: Visit) -> None:
        raise NotShown("ask for rights")

    def never(visit: Visit) -> Page:
        raise AssertionError("it is not shown")

    assert page_of(Screen(path="/a", show=never, gather=gone), some_world).status == 503
    found = page_of(Screen(path="/a", show=never, gather=hidden), some_world)
    assert (found.status, "ask for rights" in found.text) == (404, True)


# --- the one-time token ---


def gated(gate: OneTimeToken, some_world: World, path: str = "/impact", **more: Any) -> Answered:
    return asyncio.run(answer(application(Fixed(some_world), gate, SCREENS), path, **more))


def cookie_of(found: Answered) -> str:
    return found.headers["set-cookie"].partition(";")[0]


def test_a_token_opens_once(some_world: World) -> None:
    """It is exchanged for a cookie, and opens nothing afterwards; without either nothing is shown."""
    gate = OneTimeToken(frozenset({"127.0.0.1:8480"}))
    token = gate.token()
    assert gated(gate, some_world).status == 401
    assert gated(gate, some_world, fields={"token": "wrong"}).status == 401
    first = gated(gate, some_world, fields={"token": token})
    assert first.status == 303
    assert {"HttpOnly", "Secure", "SameSite=lax"} <= set(first.headers["set-cookie"].split("; "))
    again = gated(gate, some_world, fields={"token": token})
    assert (again.status, "already opened" in again.text) == (401, True)
    assert gated(gate, some_world, headers={"cookie": cookie_of(first)}).status == 200
    assert gated(gate, some_world, headers={"cookie": f"{COOKIE}=guess"}).status == 401


def test_a_new_token_takes_the_place_of_one_that_nobody_used(some_world: World) -> None:
    """Of two that were printed the last one opens."""
    gate = OneTimeToken(frozenset({"127.0.0.1:8480"}))
    old, new = gate.token(), gate.token()
    assert gated(gate, some_world, fields={"token": old}).status == 401
    assert gated(gate, some_world, fields={"token": new}).status == 303


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:9999", "", "127.0.0.1:8480.evil.example"])
def test_no_other_name_reaches_a_laptop(some_world: World, host: str) -> None:
    """A name of somebody's that resolves to this machine gets nothing, whatever it knows."""
    gate = OneTimeToken(frozenset({"127.0.0.1:8480"}))
    assert gated(gate, some_world, fields={"token": gate.token()}, headers={"host": host}).status == 421


def test_the_address_is_kept_but_not_the_token(some_world: World) -> None:
    """A deep link opens where it points, and the token is gone from the address."""
    gate = OneTimeToken(frozenset({"127.0.0.1:8480"}))
    found = gated(gate, some_world, "/policies/one", fields={"token": gate.token(), "name": "ClusterGPUPolicy/training"})
    assert found.headers["location"] == "/policies/one?name=ClusterGPUPolicy%2Ftraining"
