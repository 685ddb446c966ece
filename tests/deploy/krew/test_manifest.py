"""krew's manifest: valid by krew's own rules, with the addresses and hashes of the archives."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli import VERSION
from deploy.krew import manifest
from deploy.krew.plugin import PLATFORMS
from tests.support import go_tools
from tests.support.counts import only_in_prove
from tests.testcluster.calls import PATIENCE

ROOT = Path(__file__).parents[3]


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    """A folder with a file of each archive's name; what is in them is for test_plugin.py."""
    for platform in PLATFORMS:
        (tmp_path / platform.archive).write_text(platform.arch + platform.os)
    return tmp_path


def validated(file: Path) -> subprocess.CompletedProcess[str]:
    """By the judge of krew's index, without its trial installations, which download."""
    judge = go_tools.program("validate-krew-manifest")
    command = [str(judge), "-manifest", str(file), "-skip-install"]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def written(archives: Path, repository: str = "example/berth") -> tuple[Path, dict[str, Any]]:
    """As ``make plugin REPOSITORY=...`` writes it."""
    module = [sys.executable, "-m", "deploy.krew.manifest", str(archives), "--repository", repository]
    subprocess.run(module, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return archives / "berth.yaml", yaml.safe_load((archives / "berth.yaml").read_text())


@only_in_prove
def test_krew_accepts_it(archives: Path) -> None:
    """Every rule of its index: names, version, platforms, hashes. ``make test`` has its addresses and hashes, below."""
    done = validated(written(archives)[0])
    assert done.returncode == 0, done.stderr


@only_in_prove
def test_the_judge_finds_mistakes(archives: Path) -> None:
    """Else the test above would show nothing, so ``make test`` needs none of it."""
    file, value = written(archives)
    value["spec"]["platforms"][0]["sha256"] = "x"
    file.write_text(yaml.safe_dump(value))
    assert validated(file).returncode != 0


def test_each_platform_has_its_archive(archives: Path) -> None:
    """Downloaded from the release of this version, known by its hash."""
    _, value = written(archives)
    found = {tuple(one["selector"]["matchLabels"].values()): (one["uri"], one["sha256"]) for one in value["spec"]["platforms"]}
    release = f"https://github.com/example/berth/releases/download/v{VERSION}"
    assert found == {
        (one.os, one.arch): (f"{release}/{one.archive}", hashlib.sha256((one.arch + one.os).encode()).hexdigest()) for one in PLATFORMS
    }


def test_an_archive_that_is_not_built_is_named(tmp_path: Path) -> None:
    """No manifest for a part of them."""
    with pytest.raises(FileNotFoundError, match=PLATFORMS[0].archive):
        manifest.text(tmp_path, "example/berth")
