"""Screenshots of the console, as somebody comes to each screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.pictures.scene import Scene
from tests.support.browser import chromium
from tests.support.browser.console import base, console
from tests.support.browser.webdriver import Browser
from tests.testcluster.__main__ import WITHOUT

WIDTH = 1200
"""Pixels of a window. At README's width of 830 the type is 11 pixels high, and the widest table still fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One picture."""

    path: str
    """{pod} is the pod that waits, with its namespace"""
    scheme: str
    height: int = 860
    width: int = WIDTH


SCREENS = {
    "impact.png": Shot(path="/impact", scheme="light"),
    "berths.png": Shot(path="/berths", scheme="dark", height=1100),
    "job.png": Shot(path="/job?pod={pod}", scheme="light", height=1000),
}
"""File -> what is on it"""


def screenshots(scene: Scene, names: Sequence[str], folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and PNG of each. Raises NoBrowser."""
    if not names:
        return
    with console(folder, "--kubeconfig", str(scene.kubeconfig)) as address, chromium.running() as browser:
        browser.look(WIDTH)
        browser.open(address)
        for name in names:
            yield name, _shot(browser, base(address), SCREENS[name], scene.without["metadata"]["name"])


def _shot(browser: Browser, base: str, shot: Shot, pod: str) -> bytes:
    browser.look(shot.width, shot.scheme, shot.height, phone=shot.width < WIDTH)
    browser.open(base + shot.path.format(pod=f"{WITHOUT}/{pod}"))
    return browser.screenshot()
