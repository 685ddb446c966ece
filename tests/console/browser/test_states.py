"""Pages in states that a healthy cluster does not have: nothing there, nothing to be seen, nothing read, and objects that attack them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from analysis.world.world import World
from console.screens import SCREENS
from console.serve import Fixed
from console.server.app import WorldSource
from console.world.scope import NOTHING
from tests.support.browser.axe import violations
from tests.support.browser.hostile import MARK, hostile
from tests.support.browser.pages import WIDTHS, Watched, kinds
from tests.support.browser.served import served
from tests.support.browser.webdriver import Browser
from tests.support.console.asked import Somebody
from tests.support.console.worlds import world
from tests.support.counts import PROVE
from tests.support.recorded import eks

PAGES = tuple(screen.path for screen in SCREENS if screen.section)


class Unread:
    """A source that has read nothing, and says why."""

    world: World | None = None
    stale = "the API server does not answer"
    near = None

    async def first(self) -> None:
        """Return at once: there is a reason."""


class Stale(Fixed):
    """A source that cannot read any more."""

    stale = "connect to 10.0.0.1:6443: no route to host"


EMPTY: dict[str, Callable[[], tuple[WorldSource, Somebody]]] = {
    "no-policies-no-pods": lambda: (Fixed(world([], [])), Somebody()),
    "policies-without-pods": lambda: (Fixed(world([])), Somebody()),
    "pods-without-policies": lambda: (Fixed(world(eks.objects(), [])), Somebody()),
    "nothing-may-be-seen": lambda: (Fixed(world(eks.objects())), Somebody(NOTHING, name="ada@example.org", leaves=True)),
    "nothing-read": lambda: (Unread(), Somebody()),
    "stale": lambda: (Stale(world(eks.objects())), Somebody()),
}


@pytest.mark.parametrize("state", EMPTY if PROVE else ("nothing-read",))
def test_empty_and_error_states_break_no_rule(browser: Browser, axe_core: str, state: str) -> None:
    """Each screen: WCAG 2.2 AA, no complaint of the browser, no page wider than its window."""
    with served(*EMPTY[state]()) as base:
        watched = Watched(browser, base)
        wrong: dict[str, list[str]] = {}
        for path in PAGES:
            browser.look(390, "dark")
            wrong[path] = [
                *watched.open_until_still(path),
                *violations(browser, axe_core),
                *watched.too_wide(WIDTHS if PROVE else WIDTHS[:1]),
            ]
    assert {path: found for path, found in wrong.items() if found} == {}


def test_what_objects_say_stays_text(browser: Browser) -> None:
    """Scripts, tags, marks of direction and words of 3,000 letters in every name, label and annotation: nothing runs, nothing is asked for,
    no page is wider than its window, and no text turns round."""
    with served(Fixed(world(hostile(eks.objects()))), Somebody()) as base:
        watched = Watched(browser, base)
        browser.look(390)
        wrong: dict[str, list[str]] = {}
        for path in kinds(watched, PAGES):
            found = [*watched.open_until_still(path), *watched.too_wide((320, 1440))]
            if browser.run(f"return window.{MARK} !== undefined"):
                found.append("a script ran")
            if not {"\u202e", "\u2066", "\u0000"}.isdisjoint(browser.run("return document.documentElement.outerHTML + document.title")):
                found.append("marks of direction are shown")
            wrong[path[:200]] = found
    assert 500 not in watched.statuses.values()
    assert len(wrong) > len(PAGES), "links with names in them are followed"
    assert {path: found for path, found in wrong.items() if found} == {}
