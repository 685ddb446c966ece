"""What is true of every page: it asks nobody but its own server, runs nothing that its policy forbids, does not move under the reader, and
is as wide as the window."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support.browser.webdriver import TAB, Browser

WIDTHS = (320, 390, 1440, 2560)
"""CSS pixels: a window at 400 % (WCAG 1.4.10), a phone, a laptop, a large screen"""
SHIFTS = """
return new Promise(resolve => {
  const found = [];
  new PerformanceObserver(list => found.push(...list.getEntries())).observe({type: 'layout-shift', buffered: true});
  requestAnimationFrame(() => setTimeout(() => resolve(found.filter(one => one.value >= 0.0001).map(one => one.value + ' ' +
    one.sources.map(source => source.node ? source.node.nodeName + '.' + source.node.className : '').join(' '))), 0));
})
"""
"""What moved that can be seen: a part of a picture that is rounded to another pixel while it is painted counts 0.000001 (a page is good up
to 0.1, web.dev/articles/cls)."""
WIDER = """
const wide = document.documentElement.scrollWidth, seen = document.documentElement.clientWidth;
if (wide <= seen) return [];
const out = [...document.querySelectorAll('body *')].filter(one =>
  one.getBoundingClientRect().right > seen + 1 && !one.closest('.scroll, .diff, pre'));
return [`${wide} px in ${seen}: ` + out.slice(0, 5).map(one => one.tagName + '.' + one.className).join(' ')]
"""
LEAVES = ("/logout",)
LINKS = "return [...document.querySelectorAll('a[href]')].map(one => one.href)"


class Watched:
    """A browser whose every page is looked at. ``base``: the address of the console, without a path."""

    def __init__(self, browser: Browser, base: str) -> None:
        self.browser = browser
        self.base = base
        self._seen: list[dict[str, Any]] = []
        self.statuses: dict[str, int] = {}
        """path -> the status with which it was last answered"""

    def open(self, path: str) -> None:
        """And forget what was logged before."""
        self.browser.log("performance")
        self.browser.log("browser")
        self.browser.open(self.base + path)
        self._seen = self._events()
        answers = [one["params"] for one in self._seen if one["method"] == "Network.responseReceived"]
        self.statuses[path] = next(int(one["response"]["status"]) for one in answers if one["type"] == "Document")

    def wrong(self) -> list[str]:
        """What is wrong with the page that is open, but its width. A status that is no success is no error of the page."""
        return [*self.asked_elsewhere(), *self.complaints(), *(f"moves: {one}" for one in self.browser.run(SHIFTS))]

    def open_until_still(self, path: str) -> list[str]:
        """Open a page, up to three times, and say what is wrong: on a busy machine the browser may paint it before all of it has arrived,
        which moves it once."""
        for _ in range(3):
            self.open(path)
            wrong = self.wrong()
            if not wrong or not all(line.startswith("moves: ") for line in wrong):
                break
        return wrong

    def asked_elsewhere(self) -> list[str]:
        """Requests since the page was opened that were for another server."""
        asked = [one["params"]["request"]["url"] for one in (*self._seen, *self._events()) if one["method"] == "Network.requestWillBeSent"]
        assert asked, "requests are seen"
        return [f"asks {url}" for url in asked if not url.startswith(f"{self.base}/")]

    def _events(self) -> list[dict[str, Any]]:
        return [json.loads(entry["message"])["message"] for entry in self.browser.log("performance")]

    def complaints(self) -> list[str]:
        """Of the console of the browser: scripts that failed, and what the policy of the page did not let in."""
        found = [entry for entry in self.browser.log("browser") if entry["level"] in ("WARNING", "SEVERE")]
        return [
            f"complains: {one['message']}"
            for one in found
            if not (one["source"] == "network" and one["message"].startswith(self.browser.url))
        ]

    def too_wide(self, widths: Sequence[int] = WIDTHS) -> list[str]:
        """Widths of the window at which the page is wider."""
        found: list[str] = []
        for width in widths:
            self.browser.look(width)
            found += (f"at {width} px: {one}" for one in self.browser.run(WIDER))
        return found

    def unreached(self) -> list[str]:
        """What can be used and Tab does not come to, or not in its turn, or where one does not see that it has the focus."""
        run = self.browser.run
        wanted: list[str] = run(USABLE)
        run("document.activeElement.blur(); window.scrollTo(0, 0); getSelection().collapse(document.body, 0)")
        found: list[str] = []
        for _ in wanted:
            self.browser.press(TAB)
            line, seen = run(FOCUSED)
            found.append(line if seen else f"{line}: not seen")
        return [f"{there or 'nothing'} where {one} is wanted" for one, there in zip(wanted, found, strict=True) if one != there]


DESCRIBE = """
const all = [...document.querySelectorAll('*')];
const label = one => (one.getAttribute('aria-label') || one.textContent || one.name || '').trim().slice(0, 40);
const named = one => `${all.indexOf(one)} ${one.tagName.toLowerCase()} ${label(one)}`;
"""
USABLE = f"""{DESCRIBE}
return all.filter(one => one.matches('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')
  && !one.disabled && one.checkVisibility({{visibilityProperty: true}})).map(named)
"""
FOCUSED = f"""{DESCRIBE}
const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
const inside = box.width > 0 && box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight;
return [named(one), outlined && inside]
"""


def kinds(watched: Watched, starts: Iterable[str]) -> list[str]:
    """One address of every kind of page that links lead to from ``starts``: those with the same path and the same fields are of one."""
    found: dict[tuple[str, frozenset[str]], str] = {}
    waiting = list(starts)
    while waiting:
        path = waiting.pop(0)
        parts = urlsplit(path)
        kind = parts.path, frozenset(name for name, _ in parse_qsl(parts.query))
        if kind in found or parts.path in LEAVES:
            continue
        found[kind] = path
        watched.open(path)
        links = [urlsplit(one) for one in watched.browser.run(LINKS) if one.startswith(f"{watched.base}/")]
        waiting += [f"{one.path}?{one.query}" if one.query else one.path for one in links]
    return list(found.values())
