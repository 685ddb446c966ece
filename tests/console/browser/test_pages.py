"""Every page in a browser: screens, and what their links lead to, so that a new one is looked at without a line here."""

from __future__ import annotations

import json

import pytest

from console.screens import SCREENS
from tests.support.browser.axe import violations
from tests.support.browser.pages import WIDTHS, Watched, kinds
from tests.support.browser.webdriver import ENTER, TAB
from tests.support.counts import PROVE, only_in_prove

PAGES = tuple(screen.path for screen in SCREENS if screen.section)
"""Those of the menu; others are parts of pages, which scripts ask for."""
WRONG = ("/nothing-here", "/impact?page=x", "/impact/cell?policy=nobody", "/impact?" + "&".join(f"f{number}=1" for number in range(50)))
"""Addresses that are answered with an error page"""
LOOKS = [(390, "dark"), *([(1440, "light"), (390, "light"), (1440, "dark"), (320, "light"), (2560, "dark")] if PROVE else [])]


@pytest.fixture(scope="module")
def pages(watched: Watched) -> list[str]:
    """One address of every kind of page."""
    return kinds(watched, PAGES)


@pytest.fixture(autouse=True)
def _laptop(watched: Watched) -> None:
    """Every test begins on one."""
    watched.browser.look(1440)


def test_links_lead_to_pages(watched: Watched, pages: list[str]) -> None:
    """Every screen is reached, and no link leads to an address that there is not."""
    assert len(pages) > len(PAGES), "links with parameters are followed"
    assert {path for path, status in watched.statuses.items() if status == 404 and path not in PAGES} == set()


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_no_page_breaks_a_rule(watched: Watched, pages: list[str], axe_core: str, width: int, scheme: str) -> None:
    """WCAG 2.2 AA by axe-core; nothing asked of another host; no error, no violation of the policy of the page; nothing that moves. No
    page is wider than its window, at 400 % or on a large screen: tables scroll by themselves."""
    wrong: dict[str, list[str]] = {}
    for path in (*pages, *WRONG):
        watched.browser.look(width, scheme)
        wrong[path] = [*watched.open_until_still(path), *violations(watched.browser, axe_core), *watched.too_wide(WIDTHS)]
    assert {path: found for path, found in wrong.items() if found} == {}


@only_in_prove
def test_the_keyboard_reaches_everything(watched: Watched, pages: list[str]) -> None:
    """Tab comes to everything that can be used, in the order of the page, and one sees where it is. ``make test`` has
    the rules of axe-core, above."""
    wrong: dict[str, list[str]] = {}
    for path in (*pages, WRONG[0]):
        watched.open(path)
        wrong[path] = watched.unreached()
    assert {path: found for path, found in wrong.items() if found} == {}


@only_in_prove
def test_the_first_link_skips_the_menu(watched: Watched, pages: list[str]) -> None:
    """Tab, Enter: what comes next is in the content. ``make test`` has
    the rules of axe-core, above."""
    for path in pages:
        watched.open(path)
        watched.browser.press(TAB, ENTER)
        assert watched.browser.run("return document.activeElement.id") == "main", path
        watched.browser.press(TAB)
        inside = "return document.activeElement === document.body || document.activeElement.closest('main, footer') !== null"
        assert watched.browser.run(inside), path


@only_in_prove
def test_nothing_moves_for_those_who_ask_for_that(watched: Watched, pages: list[str]) -> None:
    """prefers-reduced-motion: no transition, no animation. ``make test`` has
    the rules of axe-core, above."""
    watched.browser.look(1440, features=[("prefers-reduced-motion", "reduce")])
    for path in pages:
        watched.open(path)
        assert watched.browser.run(MOVING) == [], path


@only_in_prove
def test_colours_that_the_system_forces_leave_words_and_borders(watched: Watched, pages: list[str]) -> None:
    """forced-colors: pages are as wide as their window, and what had only a ground of its own gets a border. ``make test`` has
    the rules of axe-core, above."""
    watched.browser.look(390, features=[("forced-colors", "active")])
    for path in pages:
        watched.open(path)
        assert watched.wrong() == [], path
        assert watched.browser.run(BARE) == [], path


@only_in_prove
def test_a_page_works_without_scripts(watched: Watched, pages: list[str]) -> None:
    """All of them have the same text with scripts switched off, but for buttons that a script needs.

    ``make test`` reads every page without a browser (``tests/console``)."""
    texts = {}
    for scripts in (True, False):
        watched.browser.cdp("Emulation.setScriptExecutionDisabled", value=not scripts)
        try:
            for path in pages:
                watched.open(path)
                texts[path, scripts] = watched.browser.find("main").text
        finally:
            watched.browser.cdp("Emulation.setScriptExecutionDisabled", value=False)
    buttons = {"Copy"}
    assert [path for path in pages if _words(texts[path, True], buttons) != _words(texts[path, False], buttons)] == []


def _words(text: str, without: set[str]) -> list[str]:
    return [word for word in text.split() if word not in without]


def test_the_address_opens_once(watched: Watched, address: str) -> None:
    """Whoever has the cookie is led on; nobody else is let in by it, and is told what to type."""
    watched.browser.open(address)
    assert watched.browser.url == f"{watched.base}/"
    cookies = watched.browser.call("GET", "/cookie")
    assert [(one["httpOnly"], one["secure"], one["sameSite"]) for one in cookies] == [(True, True, "Lax")]
    watched.browser.call("DELETE", "/cookie")
    try:
        watched.browser.open(address)
        assert "Press Enter in the terminal of the console" in watched.browser.find("body").text
    finally:
        kept = {name: value for name, value in cookies[0].items() if name != "domain"}
        watched.browser.call("POST", "/cookie", {"cookie": kept})


def test_what_is_wrong_is_seen(watched: Watched, axe_core: str) -> None:
    """The tests above would notice a request to another host, an inline script, a page too wide, one that moves, a field without label."""
    watched.open("/impact")
    watched.browser.run(SPOILED)
    found = "\n".join([*watched.wrong(), *watched.too_wide((390,)), *violations(watched.browser, axe_core)])
    watched.open("/impact")
    words = (
        "asks http://elsewhere.example/x.png",
        "Content Security Policy",
        "moves: ",
        "at 390 px: 30",
        "label (critical)",
        "complains",
    )
    assert [word for word in words if word not in found] == [], json.dumps(found)


MOVING = """
return [...document.querySelectorAll('*')].filter(one => {
  const style = getComputedStyle(one);
  return style.transitionDuration.split(',').some(time => parseFloat(time) > 0) || style.animationName !== 'none';
}).map(one => one.tagName + '.' + one.className)
"""
BARE = """
return [...document.querySelectorAll('.mode, .diff .added, .diff .removed')].filter(one =>
  one.getClientRects().length && (getComputedStyle(one).borderTopWidth === '0px' || !one.textContent.trim())).map(one => one.className)
"""
SPOILED = """
const script = document.createElement('script');
script.textContent = 'window.ran = 1';
document.head.append(script);
const image = new Image();
image.src = 'http://elsewhere.example/x.png';
fetch('http://elsewhere.example/x.png').catch(() => 0);
const field = document.createElement('input');
field.id = 'wide';
document.querySelector('main').prepend(field);
const wide = document.createElement('div');
wide.append('wide');
wide.setAttribute('class', 'wide');
document.querySelector('main').prepend(wide);
wide.style.width = '3000px';
wide.style.height = '300px';
return new Promise(resolve => setTimeout(resolve, 300))
"""
