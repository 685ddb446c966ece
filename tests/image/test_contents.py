"""What is in the image: little, nobody's but root's, and nothing of the machine that built it."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

from cli import VERSION
from tests.image.conftest import Built
from tests.support.counts import only_in_prove
from tests.support.module_imports import LAYERS
from tests.testcluster.images.containers import ran

ROOT = Path(__file__).parents[2]
MOST = 92 * 10**6
"""bytes of files beyond the base; 150 MB is what the issue allows"""


def test_it_runs_as_nobody(built: Built) -> None:
    """A number, so that the kubelet can tell that it is not root, and the command itself, so that signals reach it."""
    assert built.root.config["User"] == "65532:65532"
    assert built.root.config["Entrypoint"] == ["/opt/berth/bin/berth"]
    assert built.root.config.get("Cmd") is None


def test_its_labels_say_what_it_is(built: Built) -> None:
    """The version is that of the command."""
    labels = {name.rpartition(".")[2]: text for name, text in built.root.config["Labels"].items()}
    assert (labels["title"], labels["licenses"], labels["version"]) == ("berth", "Apache-2.0", VERSION)
    assert {"description", "revision", "source"} <= set(labels)


def test_it_is_small(built: Built) -> None:
    """All but the first layer, which is the base's."""
    assert sum(layer.files for layer in built.image.layers[1:]) < MOST


def test_nothing_in_it_installs_or_is_a_shell(built: Built) -> None:
    """No pip, setuptools or ensurepip, no shell, and of our own commands Berth and its interpreter alone."""
    files = [path.relative_to(built.root.folder) for path in built.root.folder.rglob("*")]
    assert [path for path in files if {"pip", "setuptools", "ensurepip", "pkg_resources"} & set(path.parts)] == []
    assert [path for path in files if path.name in {"sh", "bash", "dash", "busybox"} and "bin" in path.parts] == []
    assert sorted(path.name for path in files if path.parent == Path("opt/berth/bin")) == ["berth", "python3"]


def test_nobody_can_change_what_runs(built: Built) -> None:
    """Files are root's, no group and no other may write, and none lends its owner's rights."""
    states = [(path, path.lstat()) for path in (built.root.folder / "opt").rglob("*") if not path.is_symlink()]
    assert len(states) > 1000
    assert [path for path, state in states if state.st_uid or state.st_gid] == []
    assert [path for path, state in states if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH | stat.S_ISUID | stat.S_ISGID)] == []


def test_nothing_tells_where_it_was_built(built: Built) -> None:
    """No settings of pip, no secret, no address in the history or the environment."""
    files = {path.name for path in built.root.folder.rglob("*")}
    assert not files & {"pip.conf", "direct_url.json", ".netrc", "secrets"}
    assert re.findall(r"\w+://(?!github\.com/)|index-url|/etc/ssl|PIP_", json.dumps(built.image.config)) == []


def test_every_module_of_ours_is_compiled(built: Built) -> None:
    """Nothing can be written when it runs, so what has no bytecode would be compiled at each start."""
    site = next(built.root.folder.glob("opt/berth/lib/python3.*/site-packages"))
    compiled = built.root.folder / "opt/berth/pycache" / site.relative_to(built.root.folder)
    sources = [path.relative_to(site) for path in site.rglob("*.py")]
    (tag,) = {path.name.split(".")[1] for path in compiled.glob("cli/*.pyc")}
    assert [path for path in sources if not (compiled / path).with_suffix(f".{tag}.pyc").exists()] == []


@only_in_prove
def test_what_is_not_shipped_is_never_loaded(built: Built) -> None:
    """Every module of Berth can be imported in the image, and what reads kubeconfigs, the Kubernetes client's generated classes left out.
    ``make test`` starts it (``test_it_serves_and_stops_when_it_is_told_to``)."""
    code = (
        "import importlib, pkgutil, sys, kubernetes.aio.config, kubernetes.aio.client.rest\n"
        "found = [m.name for r in sys.argv[1:] for m in pkgutil.walk_packages(importlib.import_module(r).__path__, r + '.')]\n"
        "print(len([importlib.import_module(name) for name in found]))"
    )
    done = ran(built.root, "-c", code, *LAYERS, entrypoint=["/opt/berth/bin/python3"])
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 200


@only_in_prove
def test_the_command_tells_the_version_of_the_project(built: Built) -> None:
    """The wheel and the image say the same. ``make test`` has the wheel (``tests/deploy/release``)."""
    done = ran(built.root, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"berth {VERSION}\n", "")


def test_only_what_the_wheel_is_made_of_goes_to_the_builder() -> None:
    """A room that .dockerignore lacks would be missing from the wheel; tests and documents are no part of it."""
    named = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert {name for name in named if (ROOT / name).is_dir()} == rooms
    assert named - rooms == {
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "requirements.txt",
        "deploy/image/build.txt",
        "deploy/image/finish.py",
        "docs/berth.1",
    }
