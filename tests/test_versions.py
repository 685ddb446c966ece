"""One version, ``cli.VERSION``: whatever else names Berth's version says the same."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from email.parser import HeaderParser
from pathlib import Path

import pytest
import yaml

from cli import VERSION
from deploy.krew import manifest
from deploy.krew.plugin import PLATFORMS
from deploy.release import wheel

ROOT = Path(__file__).parent.parent


def command(_: Path) -> str:
    """Of ``berth --version``."""
    done = subprocess.run([sys.executable, "-m", "cli.main", "--version"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.removeprefix("berth ").strip()


def wheel_metadata(folder: Path) -> str:
    """Of the wheel, by which pip and uv know it."""
    with zipfile.ZipFile(wheel.build(folder)) as built:
        (name,) = (name for name in built.namelist() if name.endswith(".dist-info/METADATA"))
        return str(HeaderParser().parsestr(built.read(name).decode())["Version"])


def krew_manifest(folder: Path) -> str:
    """Of the manifest by which krew knows the plugin, as its form wants it: with a v."""
    for platform in PLATFORMS:
        (folder / platform.archive).touch()
    version: str = yaml.safe_load(manifest.text(folder, "example/berth"))["spec"]["version"]
    return version.removeprefix("v")


def newest_section(_: Path) -> str:
    """Of the changelog: the first section that has a date."""
    return str(re.findall(r"^## \[(\d[^\]]*)\] - ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0])


PLACES: tuple[Callable[[Path], str], ...] = (command, wheel_metadata, krew_manifest, newest_section)
"""Each returns the version that one place names; it may write to the folder that it is given."""


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_every_place_names_the_same_version(place: Callable[[Path], str], tmp_path: Path) -> None:
    """A release changes cli.VERSION and the changelog, and nothing else by hand."""
    assert place(tmp_path) == VERSION


def test_the_security_policy_supports_this_version() -> None:
    """Its table has a row for this minor version, and it is supported."""
    minor = VERSION.rpartition(".")[0]
    assert re.search(rf"^\| {re.escape(minor)}\.x .*\| yes", (ROOT / "SECURITY.md").read_text(), re.MULTILINE)


def test_the_version_is_one_of_semantic_versioning() -> None:
    """Three numbers; what comes before a release is not published."""
    assert re.fullmatch(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", VERSION)
