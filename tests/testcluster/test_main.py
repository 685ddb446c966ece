"""``make cluster`` as a process: what it says, what it leaves, and how it ends when something of it fails.

What its nodes, Karpenter and Berth do with a Job is for ``tests/e2e``; here it is typed as README has it, once.
"""

from __future__ import annotations

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
from pathlib import Path

import pytest

from tests.support.calls.server_process import ROOT, until
from tests.support.counts import only_in_prove
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane import starting
from tests.testcluster.controlplane.cluster import Options
from tests.testcluster.controlplane.processes import ClusterFailed, free_port, watched
from tests.testcluster.controlplane.starting import Starting
from tests.testcluster.controlplane.test_processes import alive, gone
from tests.testcluster.fixtures import needs_programs
from tests.testcluster.kubelets.fixtures import needs_kubelets

COMMAND = [sys.executable, "-m", "tests.testcluster"]
PLAYED = [*COMMAND, "--played"]
"""As it is wherever there is no root: what the README shows"""
RUNS_ALREADY = "a cluster runs already: export KUBECONFIG={}/kubeconfig, or end it first"
UP = "Stays until Ctrl-C"


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
def shown(folder: Path, start: list[str] = PLAYED) -> Iterator[Shown]:
    """It runs in the foreground of nobody; killed on leaving, which ends all that it started."""
    files, output = folder / "files", folder / "output"
    with output.open("wb") as written:
        process = subprocess.Popen([*start, str(files)], cwd=ROOT, stdout=written, stderr=subprocess.STDOUT)
    try:
        yield Shown(process, files, output)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(autouse=True)
def programs_are_there(request: pytest.FixtureRequest) -> None:
    needs_programs(request.config)


def test_what_the_readme_shows_is_what_comes(tmp_path: Path) -> None:
    """Typed word for word, and printed so but for names, ages and the order of rows; then Ctrl-C ends all, and its files go."""
    with shown(tmp_path) as command:
        command.up()
        for words, wanted in readme():
            command.prints(words, wanted)
        until(lambda: "default/train-: patched" in command.text, "the decision to be told")
        folder, started = command.folder, command.children()
        assert {"etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kwok", "karpenter"} <= started.keys()
        second = subprocess.run([*COMMAND, str(command.files)], cwd=ROOT, capture_output=True, text=True, check=False)
        assert (second.returncode, second.stderr) == (2, f"make cluster: {RUNS_ALREADY.format(command.files)}\n")
        command.process.send_signal(signal.SIGINT)
        assert command.process.wait(PATIENCE) == 0
        assert command.text.endswith("stopped; nothing is left running\n")
        assert gone([*started.values()], folder)
        assert {path.name for path in command.files.iterdir()} == {"lock"}


def test_replicas_run_on_real_nodes(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Where the machine allows it: the chart is installed by Helm, each replica is on a node of its own, and a Job is patched; Ctrl-C ends
    all."""
    needs_kubelets(request.config)
    with shown(tmp_path, COMMAND) as command:
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


def readme() -> list[tuple[list[str], list[str]]]:
    """The commands of the README's section, and what they print."""
    section = (ROOT / "README.md").read_text().partition("## Try it on a real control plane")[2].partition("\n## ")[0]
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
def test_a_part_that_dies_ends_it_with_its_name(tmp_path: Path) -> None:
    """Who was killed, by what, where its log is; exit code 1, and nothing goes on. One that dies at its start:
    ``test_a_full_disk_is_said``."""
    with shown(tmp_path) as command:
        command.up()
        started = command.children()
        os.kill(started["etcd"], signal.SIGKILL)
        assert command.process.wait(PATIENCE) == 1
        assert re.search(r"make cluster: etcd ended by signal 9; the end of its log \(/\S+/etcd\.log\):", command.text)
        assert "nothing is left running" in command.text
        assert not any(map(alive, started.values()))
        shutil.rmtree(command.folder)


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    """etcd's own words; exit code 1, and nothing goes on. A small file system of our own, where the kernel lets us make one."""
    small = tmp_path / "small"
    small.mkdir()
    inside = f"mount -t tmpfs -o size=8m none {small} && TMPDIR={small} exec {shlex.join([*PLAYED, str(tmp_path / 'files')])}"
    command = ["unshare", "-rm", "sh", "-c", inside]
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace of our own to be had: a full disk was not tried")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1, done.stderr
    assert re.search(r"make cluster: etcd ended .*no space left on device.*nothing is left running", done.stderr, re.DOTALL), done.stderr


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
