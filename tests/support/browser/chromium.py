"""Chromium and its driver, started and ended; what is in the way of that is said, not hidden."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.browser.webdriver import Browser
from tests.support.calls.server_process import until
from tests.testcluster.fixtures import not_tried

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRIVER = "chromedriver"
ARGUMENTS = (
    "--headless=new",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no name is resolved: nothing leaves the machine, whatever a page asks for
    "--no-proxy-server",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--lang=en",
    "--window-size=1440,900",
)
WITHOUT_SANDBOX = "--no-sandbox"
"""Chromium does not start as root otherwise. Nobody else has one without."""


class NoBrowser(Exception):
    """There is none here; the message says what to install."""


def programs() -> tuple[str, str]:
    """The browser and its driver. Raises NoBrowser."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    driver = shutil.which(DRIVER)
    if browser is None or driver is None:
        missing = " and ".join(name for name, there in (("chromium", browser), (DRIVER, driver)) if there is None)
        raise NoBrowser(f"there is no {missing}: apt install chromium chromium-driver")
    return browser, driver


@contextmanager
def running() -> Iterator[Browser]:
    """A browser that knows nobody. Raises NoBrowser."""
    browser, driver = programs()
    with tempfile.TemporaryDirectory(prefix="berth-browser-", ignore_cleanup_errors=True) as folder:
        log = Path(folder, "driver.log")
        environment = {**os.environ, "TMPDIR": folder, "HOME": folder}
        with (
            log.open("wb") as written,
            subprocess.Popen([driver, "--port=0"], stdin=subprocess.DEVNULL, stdout=written, stderr=written, env=environment) as process,
        ):
            try:
                session = Browser(_port(process, log), _capabilities(browser))
                try:
                    yield session
                finally:
                    session.quit()
            finally:
                process.terminate()


def _capabilities(browser: str) -> dict[str, object]:
    root = [WITHOUT_SANDBOX] if os.geteuid() == 0 else []
    options = {"binary": browser, "args": [*ARGUMENTS, *root]}
    return {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    """Where the driver listens, which it prints alone."""

    def printed() -> re.Match[str] | None:
        assert process.poll() is None, log.read_text()
        return re.search(r"successfully on port (\d+)", log.read_text())

    return int(until(printed, "the driver of the browser to listen")[1])


@contextmanager
def browser_of(config: pytest.Config) -> Iterator[Browser]:
    """For a fixture: where there is none the tests are skipped, and the run says so; on a build machine they fail."""
    try:
        programs()
    except NoBrowser as error:
        not_tried(config, f"this test looks at pages in a browser. {error}")
    with running() as found:
        yield found
