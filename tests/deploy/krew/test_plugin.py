"""The plugin as one file: the same bytes from each build, installed by krew, run by kubectl with nothing but a Python on the PATH."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from cli import VERSION
from deploy.krew import manifest, plugin
from deploy.krew.plugin import NAME, PLATFORMS, PYTHONS, Platform
from tests.support import go_tools
from tests.support.counts import only_in_prove
from tests.testcluster import programs
from tests.testcluster.calls import PATIENCE
from tests.testcluster.fixtures import needs_programs

ROOT = Path(__file__).parents[3]
ARCHES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
HERE = next((one for one in PLATFORMS if (one.os, one.arch) == (sys.platform, ARCHES.get(platform.machine()))), None)
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
ENTRIES = [(NAME, "0o755", 0, 0), ("LICENSE", "0o644", 0, 0)]


@pytest.fixture(scope="module")
def here() -> Platform:
    """The platform that these tests run on, and Python."""
    if HERE is None or RUNNING not in PYTHONS:
        pytest.skip(f"no plugin is made for {sys.platform} on {platform.machine()} with Python {RUNNING}")
    return HERE


@pytest.fixture(scope="module")
def archive(here: Platform, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the archive for this machine."""
    return plugin.build(tmp_path_factory.mktemp("dist"), here)


@only_in_prove
def test_two_builds_are_the_same_bytes(here: Platform, archive: Path, tmp_path: Path) -> None:
    """So anybody can check what is published. ``make test`` has what the archive is made of: nobody's file, of no time, below."""
    assert plugin.build(tmp_path, here).read_bytes() == archive.read_bytes()


def test_an_archive_has_the_file_and_the_licence(tmp_path: Path) -> None:
    """Executable, of nobody and of no time, wherever the file was built."""
    (tmp_path / NAME).write_text("the file")
    archive = plugin._archive(tmp_path / "archive.tar.gz", tmp_path / NAME)
    with tarfile.open(archive) as tar:
        assert [(entry.name, oct(entry.mode), entry.uid, entry.mtime) for entry in tar] == ENTRIES
        assert [tar.extractfile(name).read() for name, *_ in ENTRIES] == [b"the file", (ROOT / "LICENSE").read_bytes()]  # type: ignore[union-attr]
    assert archive.read_bytes()[4:8] == bytes(4)  # the time of gzip (RFC 1952)


@only_in_prove
def test_the_file_runs_by_itself(archive: Path, tmp_path: Path) -> None:
    """In a home that has nothing else. ``make test`` has the archive, above, and runs the same entry point from the wheel
    (tests/deploy/release/test_kubectl.py)."""
    with tarfile.open(archive) as tar:
        assert [(entry.name, oct(entry.mode), entry.uid, entry.mtime) for entry in tar] == ENTRIES
        tar.extract(NAME, tmp_path, filter="data")
    environ = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run([tmp_path / NAME, "--version"], env=environ, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == f"berth {VERSION}\n"


@only_in_prove
def test_krew_installs_it_and_kubectl_runs_it(request: pytest.FixtureRequest, archive: Path, here: Platform, tmp_path: Path) -> None:
    """The real ones, by the manifest, in a home that has nothing else. ``make test`` runs its entry point by kubectl, from the wheel
    (tests/deploy/release/test_kubectl.py)."""
    needs_programs(request.config)
    for one in PLATFORMS:
        (tmp_path / one.archive).write_bytes(archive.read_bytes())
    (tmp_path / "berth.yaml").write_text(manifest.text(tmp_path, "example/berth"))
    krew = str(go_tools.program("krew"))
    path = os.pathsep.join((str(tmp_path / "krew" / "bin"), str(Path(sys.executable).parent), "/usr/bin", "/bin"))
    environ = {"HOME": str(tmp_path), "KREW_ROOT": str(tmp_path / "krew"), "PATH": path}

    def typed(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False)

    done = typed(krew, "install", "--manifest", "berth.yaml", "--archive", here.archive)
    assert done.returncode == 0, done.stderr
    kubectl = str(programs.path("kubectl"))
    assert typed(kubectl, "berth", "--version").stdout == f"berth {VERSION}\n"
    shutil.copy(ROOT / "docs" / "examples" / "train.yaml", tmp_path)
    done = typed(kubectl, "berth", "try", "train.yaml")
    assert (done.returncode, yaml.safe_load(done.stdout)["kind"]) == (0, "Job")
    assert done.stderr.startswith("kubectl berth: assuming --platforms ")
