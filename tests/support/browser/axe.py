"""axe-core, which judges pages by the rules of WCAG: fetched from npm once into the cache, by version and hash. It is not part of Berth
(MPL-2.0)."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser.webdriver import Browser
from tests.testcluster.fixtures import not_tried
from tests.testcluster.go_build import CACHE, alone

VERSION = "4.14.1"
INTEGRITY = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
"""Of the package's archive, as `npm view axe-core dist.integrity` prints it"""
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
"""WCAG 2.2 AA"""
SECONDS = 120
"""in which npm must have fetched 600 KB"""
JUDGE = "return axe.run(document, {runOnly: {type: 'tag', values: arguments[0]}, resultTypes: ['violations', 'incomplete']})"


class NoAxe(Exception):
    """It can't be had here; the message is one line."""


def source() -> str:
    """Its script. Raises NoAxe."""
    file = CACHE / "npm" / f"axe-core-{VERSION}.js"
    if not file.exists():
        with alone(file):
            if not file.exists():
                _fetch(file)
    return file.read_text()


def _fetch(file: Path) -> None:
    if shutil.which("npm") is None:
        raise NoAxe("there is no npm: apt install npm")
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, f"axe-core@{VERSION}"]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise NoAxe(f"npm pack axe-core@{VERSION} took more than {SECONDS} s") from None
        archive = Path(folder, f"axe-core-{VERSION}.tgz")
        if done.returncode or not archive.exists():
            raise NoAxe(f"npm pack axe-core@{VERSION} failed: {' '.join(done.stderr.split())[:200]}")
        found = f"sha512-{base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()}"
        assert found == INTEGRITY, f"axe-core {VERSION} is not what was pinned: {found}"
        with tarfile.open(archive) as opened:
            member = opened.extractfile("package/axe.min.js")
            assert member is not None
            beside = file.with_name(f".{file.name}.{os.getpid()}")
            beside.write_bytes(member.read())
        beside.rename(file)


def source_for(config: pytest.Config) -> str:
    """For a fixture: where it can't be had the tests are skipped, and the run says so; on a build machine they fail."""
    try:
        return source()
    except NoAxe as error:
        not_tried(config, f"this test has pages judged by axe-core. {error}")


def violations(browser: Browser, script: str) -> list[str]:
    """What is wrong with the page that is open, a line for each element: rule, element, what it wants."""
    browser.run(script + "\n;return axe.version")
    found: dict[str, list[dict[str, Any]]] = browser.run(JUDGE, TAGS)
    return [_line(rule, node) for rule in found["violations"] for node in rule["nodes"]]


def _line(rule: dict[str, Any], node: dict[str, Any]) -> str:
    wants = " ".join(node.get("failureSummary", "").split())
    return f"{rule['id']} ({rule['impact']}): {' '.join(map(str, node['target']))}: {wants}"
