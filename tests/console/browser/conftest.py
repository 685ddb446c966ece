"""One browser, and one console, for all tests of a file."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.browser import axe, chromium
from tests.support.browser.console import base, console
from tests.support.browser.pages import Watched
from tests.support.browser.webdriver import Browser
from tests.support.console.worlds import LIBRARY
from tests.support.recorded import eks


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    with chromium.browser_of(request.config) as found:
        yield found


@pytest.fixture(scope="module")
def address(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """As `berth console` prints it, of a dump: it opens once. ``browser`` comes first, or a console would start for nothing."""
    folder = tmp_path_factory.mktemp("console")
    dump = folder / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": eks.objects()}))
    with console(folder, "--from", str(dump), "--policies", LIBRARY) as found:
        yield found


@pytest.fixture(scope="module")
def watched(browser: Browser, address: str) -> Watched:
    """The browser, let in."""
    browser.open(address)
    return Watched(browser, base(address))


@pytest.fixture(scope="session")
def axe_core(request: pytest.FixtureRequest) -> str:
    return axe.source_for(request.config)
