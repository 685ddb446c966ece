"""Debian's Chromium without a window, driven by the W3C WebDriver protocol (https://www.w3.org/TR/webdriver2/) over http.client.

Selenium has the same calls behind ten more packages to be pinned, Playwright behind a Node of its own; what is called here are a dozen
addresses. Beside those of the standard there are two of ChromeDriver: commands of the DevTools protocol (``goog/cdp/execute``), and logs.
"""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.testcluster.calls import PATIENCE

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The name under which a reference to an element travels (section 12 of the standard)"""
HEIGHT = 900
TAB = "\ue004"
ENTER = "\ue007"
CONTROL = "\ue009"
"""Keys (section 17.4.2)"""


class BrowserFailed(Exception):
    """The driver answered with an error; the message has its code and its sentence."""


@dataclass(frozen=True, slots=True)
class Element:
    """An element of the page that is open."""

    browser: Browser
    id: str

    @property
    def reference(self) -> dict[str, str]:
        """As an argument of a script."""
        return {ELEMENT: self.id}

    @property
    def text(self) -> str:
        """As it is seen: without what is hidden."""
        return str(self.browser.call("GET", f"/element/{self.id}/text"))

    def find(self, css: str) -> Element:
        """The first within it. Raises BrowserFailed where there is none."""
        return self._element("css selector", css)

    def link(self, text: str) -> Element:
        """The first link within it that has this text in it. Raises BrowserFailed where there is none."""
        return self._element("partial link text", text)

    def _element(self, using: str, value: str) -> Element:
        found = self.browser.call("POST", f"/element/{self.id}/element", {"using": using, "value": value})
        return Element(self.browser, found[ELEMENT])

    def attribute(self, name: str) -> str | None:
        """As it is written; None where it is not."""
        found = self.browser.call("GET", f"/element/{self.id}/attribute/{name}")
        return None if found is None else str(found)

    def click(self) -> None:
        """Where it is seen, as a mouse does. Raises BrowserFailed where something is over it."""
        self.browser.call("POST", f"/element/{self.id}/click", {})

    def type(self, text: str) -> None:
        """Key by key, after what is there."""
        self.browser.call("POST", f"/element/{self.id}/value", {"text": text})

    def clear(self) -> None:
        """Of a field: nothing is in it any more."""
        self.browser.call("POST", f"/element/{self.id}/clear", {})

    def screenshot(self) -> bytes:
        """PNG."""
        return base64.b64decode(self.browser.call("GET", f"/element/{self.id}/screenshot"))


class Browser:
    """One session: one window, with cookies of its own."""

    def __init__(self, port: int, capabilities: dict[str, Any]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._session = ""
        found = self.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self._session = f"/session/{found['sessionId']}"

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The value of the answer. Raises BrowserFailed."""
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, self._session + path, sent, {"Content-Type": "application/json"})
        value = json.loads(self._connection.getresponse().read())["value"]
        if isinstance(value, dict) and "error" in value:
            raise BrowserFailed(f"{value['error']}: {value['message']}")
        return value

    def quit(self) -> None:
        """The browser ends."""
        self.call("DELETE", "")
        self._connection.close()

    def open(self, url: str) -> None:
        """And wait until it is loaded."""
        self.call("POST", "/url", {"url": url})

    @property
    def url(self) -> str:
        return str(self.call("GET", "/url"))

    def find(self, css: str) -> Element:
        """The first. Raises BrowserFailed where there is none."""
        return self._element("css selector", css)

    def find_all(self, css: str) -> list[Element]:
        return [Element(self, one[ELEMENT]) for one in self.call("POST", "/elements", {"using": "css selector", "value": css})]

    def link(self, text: str) -> Element:
        """The first link that has this text in it. Raises BrowserFailed where there is none."""
        return self._element("partial link text", text)

    def _element(self, using: str, value: str) -> Element:
        return Element(self, self.call("POST", "/element", {"using": using, "value": value})[ELEMENT])

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of a function's body; a promise is waited for."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def press(self, *keys: str) -> None:
        """One after another, wherever the focus is; after CONTROL all with it held down."""
        actions = [{"type": kind, "value": key} for key in keys if key != CONTROL for kind in ("keyDown", "keyUp")]
        if CONTROL in keys:
            actions = [{"type": "keyDown", "value": CONTROL}, *actions, {"type": "keyUp", "value": CONTROL}]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def cdp(self, command: str, **parameters: Any) -> Any:
        """A command of the DevTools protocol."""
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self, kind: str) -> list[dict[str, Any]]:
        """What was logged since it was last asked: ``browser`` (console, security) or ``performance`` (events of DevTools)."""
        found: list[dict[str, Any]] = self.call("POST", "/se/log", {"type": kind})
        return found

    def screenshot(self) -> bytes:
        """PNG of what is seen."""
        return base64.b64decode(self.call("GET", "/screenshot"))

    def look(
        self, width: int, scheme: str = "light", height: int = HEIGHT, *, phone: bool = False, features: Sequence[tuple[str, str]] = ()
    ) -> None:
        """See pages in this many CSS pixels, light or dark. ``phone``: scroll bars lie over the page. ``features``: more of what media
        queries ask for."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone)
        wanted = [("prefers-color-scheme", scheme), *features]
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in wanted])
