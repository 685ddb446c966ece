"""The first commands of the README in a fresh checkout, and ``make cluster`` as a process.

What its nodes, Karpenter and Berth do with a Job is for ``tests/e2e``; here the commands of docs/try.md are typed once.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.calls.server_process import ROOT, until
from tests.support.counts import only_in_prove
from tests.testcluster import go_build, programs
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane import starting
from tests.testcluster.controlplane.cluster import Options
from tests.testcluster.controlplane.processes import ClusterFailed, free_port, watched
from tests.testcluster.controlplane.starting import Starting
from tests.testcluster.controlplane.test_processes import alive, gone
from tests.testcluster.fixtures import needs_programs
from tests.testcluster.kubelets.fixtures import needs_kubelets

MODULE = ("-P", "-m", "tests.testcluster")
RUNS_ALREADY = "a cluster runs already: export KUBECONFIG={}/kubeconfig, or end it first"
UP = "Stays until Ctrl-C"


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """A fresh one. No Python but its own has what it installs."""

    folder: Path

    def make(self, target: str, *options: str, **environment: str) -> subprocess.Popen[str]:
        """Start ``make TARGET &`` as a shell does, deaf to Ctrl-C, outside of the make that runs the tests; a process group of its own."""
        environ = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
        deaf = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]
        command = [*deaf, "make", target, f"PYTHON={sys.executable}", *options]
        environ |= {"PIP_COMPILE": "0", **environment}
        return subprocess.Popen(
            command, cwd=self.folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )

    @property
    def command(self) -> list[str]:
        """What ``make cluster`` runs."""
        return [str(self.folder / ".venv" / "bin" / "python"), *MODULE]

    @property
    def played(self) -> list[str]:
        """As it is wherever there is no root: what docs/try.md shows."""
        return [*self.command, "--played"]


class Shown:
    """The command, and what it has printed so far."""

    def __init__(self, process: subprocess.Popen[bytes], files: Path, output: Path) -> None:
        self.process = process
        self.files = files
        self._output = output

    @property
    def text(self) -> str:
        return self._output.read_text()

    @property
    def folder(self) -> Path:
        """Where the cluster's files are."""
        found = re.search(r"^Logs: (\S+)\.", self.text, re.MULTILINE)
        assert found is not None, self.text
        return Path(found[1])

    def children(self) -> dict[str, int]:
        """Program -> PID, of what it started."""
        listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False)
        pairs = (line.split(None, 2) for line in listed.stdout.splitlines())
        return {Path(words[1]).name: int(words[0]) for words in pairs}

    def up(self) -> None:
        until(lambda: self.process.poll() is not None or UP in self.text, "a cluster")
        assert UP in self.text, self.text

    def kubectl(self, *words: str) -> str:
        """What it prints, warnings too, with the files that the command left."""
        command = [str(self.files / "kubectl"), f"--kubeconfig={self.files / 'kubeconfig'}", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def prints(self, words: list[str], wanted: list[str]) -> None:
        """An apply at once, what is looked at in the end."""
        if words[0] == "apply":
            assert as_lines(self.kubectl(*words)) == wanted
        else:
            until(lambda: as_lines(self.kubectl(*words)) == wanted, f"kubectl {shlex.join(words)} to print\n" + "\n".join(wanted))


@contextmanager
def shown(folder: Path, start: list[str]) -> Iterator[Shown]:
    """It runs in the foreground of nobody; killed on leaving, which ends all that it started."""
    files, output = folder / "files", folder / "output"
    with output.open("wb") as written:
        process = subprocess.Popen([*start, str(files)], cwd=Path(start[0]).parents[2], stdout=written, stderr=subprocess.STDOUT)
    try:
        yield Shown(process, files, output)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """What git keeps of this one, with changes that are not committed yet. Its environment is made by the first command."""
    folder = tmp_path_factory.mktemp("checkout")
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    for name in filter(lambda name: (ROOT / name).is_file(), listed.stdout.decode().splitlines()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    fresh = Checkout(folder=folder)
    for target in ("run", "cluster"):  # neither relies on the other one's installation, which one environment would not show
        plan, _ = fresh.make(target, "--dry-run").communicate(timeout=PATIENCE)
        assert "-r requirements.txt" in plan
        assert "-r requirements-dev.txt" not in plan
    shown_once, _ = fresh.make("run", BERTH_RUN_ONCE="1").communicate(timeout=PATIENCE)
    assert "\nadmitted: " in shown_once, shown_once
    return fresh


@pytest.fixture
def programs_are_there(request: pytest.FixtureRequest) -> None:
    needs_programs(request.config)


@only_in_prove
def test_a_build_of_another_is_waited_for_aloud(checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``make cluster`` needs no more than ``make run``. It says whose build it waits for, and Ctrl-C ends it, in the background too.
    `make test` has the words in test_programs.py, and Ctrl-C below."""
    if shutil.which("go") is None:
        pytest.skip("there is no Go here")
    monkeypatch.setattr(go_build, "CACHE", tmp_path / "berth")
    with go_build.alone(programs.kept("etcd")), checkout.make("cluster", XDG_CACHE_HOME=str(tmp_path), KUBEBUILDER_ASSETS="") as process:
        try:
            assert process.stdout is not None
            line = next((line for line in process.stdout if "waiting" in line), "")
            assert f"etcd (1 of 8): waiting for process {os.getpid()} in {Path.cwd()}, which makes etcd: 0 s" in line
            os.killpg(process.pid, signal.SIGINT)
            assert process.stdout.read().endswith("\nstopped while it started; nothing is left running\n")
            assert process.wait(PATIENCE) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.usefixtures("programs_are_there")
def test_what_the_readme_shows_is_what_comes(checkout: Checkout, tmp_path: Path) -> None:
    """Typed word for word, and printed so but for names, ages and the order of rows; then Ctrl-C ends all, and its files go. What
    ``make run`` has installed is all that it needs."""
    with shown(tmp_path, checkout.played) as command:
        command.up()
        for words, wanted in walkthrough():
            command.prints(words, wanted)
        until(lambda: "default/train-: patched" in command.text, "the decision to be told")
        folder, started = command.folder, command.children()
        assert {"etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kwok", "karpenter"} <= started.keys()
        second = subprocess.run([*checkout.command, str(command.files)], cwd=checkout.folder, capture_output=True, text=True, check=False)
        assert (second.returncode, second.stderr) == (2, f"make cluster: {RUNS_ALREADY.format(command.files)}\n")
        command.process.send_signal(signal.SIGINT)
        assert command.process.wait(PATIENCE) == 0
        assert command.text.endswith("stopped; nothing is left running\n")
        assert gone([*started.values()], folder)
        assert {path.name for path in command.files.iterdir()} == {"lock"}


@only_in_prove
@pytest.mark.usefixtures("programs_are_there")
def test_replicas_run_on_real_nodes(request: pytest.FixtureRequest, checkout: Checkout, tmp_path: Path) -> None:
    """Where the machine allows it: the chart is installed by Helm, each replica is on a node of its own, and a Job is patched; Ctrl-C ends
    all. In make test what the readme shows comes, and replicas run on real nodes in tests/e2e/installation."""
    needs_kubelets(request.config)
    with shown(tmp_path, checkout.command) as command:
        command.up()
        replicas = ("--namespace=berth-system", "--selector=app.kubernetes.io/name=berth")
        nodes = command.kubectl("get", "pods", *replicas, "--output=jsonpath={.items[*].spec.nodeName}").split()
        assert sorted(nodes) == ["node-1", "node-2", "node-3"]
        command.kubectl("apply", "-f", "docs/examples/train.yaml")
        until(lambda: "default/train-: patched" in command.text, "the decision to be told")
        folder, started = command.folder, command.children()
        command.process.send_signal(signal.SIGINT)
        assert command.process.wait(PATIENCE) == 0
        assert gone([*started.values()], folder)


def walkthrough() -> list[tuple[list[str], list[str]]]:
    """The commands of docs/try.md, and what they print."""
    section = (ROOT / "docs" / "try.md").read_text().partition("## On a local control plane")[2].partition("\n## ")[0]
    pairs = re.findall(r"^\$ kubectl (.*)\n((?:(?![$`]).*\n)*)", section, re.MULTILINE)
    assert len(pairs) == 11
    return [(shlex.split(words), as_lines(output)) for words, output in pairs]


def as_lines(output: str) -> list[str]:
    """Sorted rows without what differs from time to time: generated names, ages, blanks."""
    text = re.sub(r"\b(train|pretrain)-[a-z0-9]{5}\b", r"\1-X", output)
    text = re.sub(r"\bkwok-gpu-\S+", "kwok-gpu-X", text)
    text = re.sub(r"\b\d+m?\d*s\b", "AGE", text)
    return sorted(" ".join(line.split()) for line in text.splitlines())


@only_in_prove
@pytest.mark.usefixtures("programs_are_there")
def test_a_part_that_dies_ends_it_with_its_name(checkout: Checkout, tmp_path: Path) -> None:
    """Who was killed, by what, where its log is; exit code 1, and nothing goes on. One that dies at its start:
    ``test_a_full_disk_is_said``."""
    with shown(tmp_path, checkout.played) as command:
        command.up()
        started = command.children()
        os.kill(started["etcd"], signal.SIGKILL)
        assert command.process.wait(PATIENCE) == 1
        assert re.search(r"make cluster: etcd ended by signal 9; the end of its log \(/\S+/etcd\.log\):", command.text)
        assert "nothing is left running" in command.text
        assert not any(map(alive, started.values()))
        shutil.rmtree(command.folder)


@pytest.mark.usefixtures("programs_are_there")
def test_a_full_disk_is_said(checkout: Checkout, tmp_path: Path) -> None:
    """etcd's own words; exit code 1, and nothing goes on. A small file system of our own, where the kernel lets us make one."""
    small = tmp_path / "small"
    small.mkdir()
    inside = f"mount -t tmpfs -o size=8m none {small} && TMPDIR={small} exec {shlex.join([*checkout.played, str(tmp_path / 'files')])}"
    command = ["unshare", "-rm", "sh", "-c", inside]
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace of our own to be had: a full disk was not tried")
    done = subprocess.run(command, cwd=checkout.folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1, done.stderr
    assert re.search(r"make cluster: etcd ended .*no space left on device.*nothing is left running", done.stderr, re.DOTALL), done.stderr


@pytest.mark.usefixtures("programs_are_there")
def test_a_port_that_is_taken_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is started anew on another; where none is ever free, its own words say so."""
    with socket.create_server(("127.0.0.1", 0)) as taken, watched() as processes:
        port = taken.getsockname()[1]
        given = iter([port])
        monkeypatch.setattr(starting, "free_port", lambda: next(given, None) or free_port())
        part = Starting(processes=processes, options=Options())
        _, found = part._started("etcd", part._etcd)
        assert found != port
        monkeypatch.setattr(starting, "free_port", lambda: port)
        with pytest.raises(ClusterFailed, match=r"(?s)etcd ended with exit code 1.*address already in use"):
            part._started("etcd", part._etcd)
