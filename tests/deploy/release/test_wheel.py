"""The wheel: what is in it, and that it is all that a user needs, in any folder and without a right to write where it is installed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cli import VERSION
from cli.main import SUBCOMMANDS
from deploy.release import wheel
from tests.deploy.release.installed_wheel import Installed
from tests.support.calls.server_process import serving
from tests.support.counts import only_in_prove

ROOT = Path(__file__).parents[3]
TRAIN = ROOT / "docs" / "examples" / "train.yaml"
HELP = f"""
import contextlib
from cli.main import main
for command in {list(SUBCOMMANDS)}:
    with contextlib.suppress(SystemExit):
        main([command, "--help"])
"""
"""A program that prints the help of each subcommand; the parser exits after it."""
INSTALL_SECONDS = 600
"""some thirty packages come over the network"""


@pytest.fixture(autouse=True)
def nothing_is_written(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test does with it, the installation stays as it was."""
    if "installed" not in request.fixturenames:
        yield
        return
    installed: Installed = request.getfixturevalue("installed")
    before = installed.listing()
    yield
    assert installed.listing() == before


def in_wheel(path: Path) -> set[str]:
    """The names of its files, those that tell of the wheel itself left out."""
    with zipfile.ZipFile(path) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@only_in_prove
def test_two_builds_are_the_same_bytes(built: Path, tmp_path: Path) -> None:
    """Whoever builds it, whenever, from the same tree. ``make test`` has what the builds could differ in, below."""
    assert wheel.build(tmp_path).read_bytes() == built.read_bytes()


def test_no_file_has_a_time_or_rights_of_its_own(built: Path) -> None:
    """Every file in the wheel has the same time and mode, and they are in the order of their names, folder by folder."""
    with zipfile.ZipFile(built) as archive:
        entries = archive.infolist()
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {oct(entry.external_attr >> 16) for entry in entries if not entry.filename.endswith("/RECORD")} == {"0o100644"}
    names = [entry.filename for entry in entries if ".dist-info/" not in entry.filename]
    assert names == sorted(names, key=lambda name: (Path(name).parent.parts, name))


def test_it_holds_the_source_and_its_data_and_nothing_else(built: Path) -> None:
    """Every file that git keeps of the packages; no test, no bench, nothing that an older build has left."""
    folders = sorted(wheel.packages())
    kept = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    expected = {name for name in kept.stdout.splitlines() if (ROOT / name).exists()}
    assert in_wheel(built) == expected | {f"gpu_berth-{VERSION}.data/data/share/man/man1/berth.1"}
    assert {"catalog/catalog.yaml", "policies/library/berth-default.yaml"} <= expected


def test_it_is_for_every_platform(built: Path) -> None:
    """No compiled code in it."""
    assert built.name == f"gpu_berth-{VERSION}-py3-none-any.whl"


def test_its_own_code_runs_and_not_the_checkout(installed: Installed) -> None:
    """Else the tests below would show nothing."""
    done = installed.run("python", "-c", "import cli, os; print(cli.__file__, os.getuid())")
    file, user = done.stdout.split()
    assert Path(file).is_relative_to(installed.folder)
    assert user != "0"
    assert "No module named 'pytest'" in installed.run("python", "-c", "import pytest").stderr


def test_nobody_may_write_there(installed: Installed) -> None:
    """Else the tests below would not notice a write."""
    (packages,) = installed.folder.glob("lib/python3.*/site-packages")
    done = installed.run("python", "-c", f"open({str(packages / 'x')!r}, 'w')")
    assert "PermissionError" in done.stderr


def test_it_tells_its_version(installed: Installed) -> None:
    """As the wheel's own name does."""
    assert installed.run("berth", "--version").stdout == f"berth {VERSION}\n"


def test_every_subcommand_starts(installed: Installed) -> None:
    """All that it imports is there: one process of the installed Python runs them all."""
    done = installed.run("python", "-c", HELP)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^usage: berth (\S+) ", done.stdout, re.MULTILINE) == list(SUBCOMMANDS)


def test_a_manifest_is_tried_in_any_folder(installed: Installed) -> None:
    """By the catalog and the policy that are shipped with it."""
    shutil.copy(TRAIN, installed.elsewhere / "train.yaml")
    done = installed.run("berth", "try", "-o", "yaml", "train.yaml")
    assert done.returncode == 0, done.stderr
    pod = yaml.safe_load(done.stdout)["spec"]["template"]["spec"]
    assert pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def test_the_catalog_is_shown(installed: Installed) -> None:
    """It is in the wheel."""
    assert "\nA100-40GB " in installed.run("berth", "gpus").stdout


@pytest.mark.parametrize(("command", "kind"), [("crds", "CustomResourceDefinition"), ("webhooks", "MutatingWebhookConfiguration")])
def test_what_a_cluster_needs_is_printed(installed: Installed, command: str, kind: str) -> None:
    """Who has the wheel alone has no deploy/ to apply."""
    done = installed.run("berth", command)
    assert kind in {value["kind"] for value in yaml.safe_load_all(done.stdout)}


def test_it_serves_in_any_folder(installed: Installed, tmp_path: Path) -> None:
    """Ready with the shipped policy, ended by SIGTERM."""
    program = [*installed.prefix, str(installed.programs / "berth"), "serve", "--health", "127.0.0.1:0"]
    with serving(tmp_path, "--lame-duck", "0", program=program, cwd=installed.elsewhere) as server:
        assert server.health("/readyz").status == 200
        assert server.stop(signal.SIGTERM) == 0


@only_in_prove
@pytest.mark.parametrize("way", ["uv", "pipx"])
def test_it_is_installed_as_users_do(built: Path, tmp_path: Path, way: str) -> None:
    """With its dependencies from the index, as the newest are; make test installs it beside those of the lock."""
    homes = {"UV_TOOL_DIR": "tools", "UV_TOOL_BIN_DIR": "bin", "UV_CACHE_DIR": "cache", "PIPX_HOME": "home", "PIPX_BIN_DIR": "bin"}
    environ = {**os.environ, "HOME": str(tmp_path), **{name: str(tmp_path / folder) for name, folder in homes.items()}}
    module, *words = {"uv": ["uv", "tool", "install", "--python", sys.executable], "pipx": ["pipx", "install", "--python", sys.executable]}[
        way
    ]
    command = [sys.executable, "-m", module, *words, str(built)]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    found = Installed(folder=tmp_path, prefix=(), elsewhere=tmp_path)
    shutil.copy(TRAIN, tmp_path / "train.yaml")
    assert found.run("berth", "--version").stdout == f"berth {VERSION}\n"
    assert found.run("kubectl-berth", "try", "train.yaml").returncode == 0
    program = [str(found.programs / "berth"), "serve", "--health", "127.0.0.1:0"]
    with serving(tmp_path, program=program, cwd=tmp_path) as server:
        assert server.health("/readyz").status == 200


def test_the_manual_page_is_installed(installed: Installed) -> None:
    """Where man looks for it, by the folder of the programs on the PATH."""
    assert (installed.folder / "share" / "man" / "man1" / "berth.1").read_text() == (ROOT / "docs" / "berth.1").read_text()
