"""Somebody with a terminal and a browser."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.browser.pages import Watched
from tests.support.browser.webdriver import Browser, BrowserFailed, Element
from tests.testcluster.controlplane.cluster import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What they do."""

    team: str
    """its name, and that of its namespace"""
    cluster: Cluster
    watched: Watched

    @property
    def browser(self) -> Browser:
        return self.watched.browser

    def kubectl(self, *words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """What it prints, and its exit code; ``given`` is its standard input."""
        return subprocess.run(self.cluster.kubectl(*words), input=given, capture_output=True, text=True, check=False)

    def apply(self, value: dict[str, Any]) -> None:
        """Raises AssertionError with what kubectl says."""
        done = self.kubectl("apply", "-f", "-", given=json.dumps(value))
        assert done.returncode == 0, done.stderr

    def pod(self, name: str) -> dict[str, Any]:
        """Of the team; empty where there is none."""
        return self.cluster.api.get("v1", "Pod", name, self.team) or {}

    def once(self, found: Callable[[], Any], what: str) -> Any:
        """What ``found()`` returns once it is true."""
        return self.cluster.wait_for(found, what)

    def reload_until(self, link: str, found: Callable[[], Any], what: str) -> Any:
        """Click a link of the page again and again, until the page shows it: a cluster is read every so often."""

        def again() -> Any:
            self.browser.link(link).click()
            return found()

        return self.once(again, what)

    def row(self, name: str) -> Element | None:
        """The row of a table that has this name at its head; None where there is none."""
        rows = self.browser.find_all("tbody tr")
        return next((one for one in rows if one.find("th").text == name), None)

    def says(self, words: str) -> bool:
        """Whether the page that is open has these words."""
        try:
            return words in self.browser.find("main").text
        except BrowserFailed:
            return False
