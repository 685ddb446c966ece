"""Whatever becomes of a test, nothing that it started goes on."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.support.calls.server_process import ROOT
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane import processes, warden
from tests.testcluster.controlplane.processes import ClusterFailed, free_port, watched

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
DEAF = [sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"]
TALKER = [sys.executable, "-c", "import sys; print('the disk is full'); sys.exit(3)"]
OWNER = f"""
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts its background jobs deaf to it
from tests.testcluster.controlplane.processes import watched
with watched() as started:
    pids = [started.start(name, {SLEEP!r}).popen.pid for name in ("one", "two")]
    print(started.folder, *pids, flush=True)
    time.sleep(600)
"""

INTERRUPTED = f"""
from tests.testcluster.controlplane.processes import Processes, watched
from tests.testcluster.calls import PATIENCE
with watched() as started:
    tell = Processes.tell
    def interrupted(self, line):
        tell(self, line)
        print(line.split()[1], self.folder, flush=True)
        raise KeyboardInterrupt
    Processes.tell = interrupted
    try:
        started.start("one", {SLEEP!r})
    finally:
        Processes.tell = tell
"""


@pytest.fixture(autouse=True)
def folders_go_with_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that stay after an error too."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def alive(pid: int) -> bool:
    """Zombies are not: their parent may be gone, and nobody has asked after them yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids: list[int], folder: Path) -> bool:
    deadline = time.monotonic() + PATIENCE
    while any(map(alive, pids)) or folder.exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "Ctrl-C"])
def test_nothing_outlives_who_started_it(number: signal.Signals) -> None:
    """Processes and folder are gone after a crash and after Ctrl-C."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert owner.stdout is not None
        with owner.stdout as line:
            folder, *pids = line.readline().split()
        assert all(alive(int(pid)) for pid in pids)
        owner.send_signal(number)
        owner.wait(PATIENCE)
    finally:
        owner.kill()
        owner.wait()
    if number == signal.SIGKILL:
        assert gone([*map(int, pids)], Path(folder))
    else:  # left by an exception: the logs stay
        assert not any(alive(int(pid)) for pid in pids)
        assert {path.name for path in Path(folder).iterdir()} == {"one.log", "two.log"}
        shutil.rmtree(folder)


def test_a_process_that_does_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM first, SIGKILL when it has had its time."""
    monkeypatch.setattr(processes, "END", 0.3)
    with watched() as started:
        deaf = started.start("deaf", DEAF)
        started.wait_for(lambda: "deaf" in deaf.log.read_text(), "it to turn deaf")
        started.end(deaf)
        assert deaf.popen.returncode == -signal.SIGKILL


def test_a_stopped_process_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that stopped it need not let it go on."""
    monkeypatch.setattr(processes, "END", 0.3)
    with watched() as started:
        stopped = started.start("stopped", SLEEP)
        stopped.signal(signal.SIGSTOP)
    assert not alive(stopped.popen.pid)


def test_waiting_ends_where_a_process_ends() -> None:
    """The error has its name, how it ended, and what it said last; its log stays."""

    def wait() -> None:
        with watched() as started:
            started.start("talker", TALKER)
            started.wait_for(lambda: None, "nothing")

    with pytest.raises(ClusterFailed, match="talker ended with exit code 3") as raised:
        wait()
    found = re.search(r"the end of its log \((/.*/talker\.log)\):\n  the disk is full$", str(raised.value))
    assert found is not None, raised.value
    assert [path.name for path in Path(found[1]).parent.iterdir()] == ["talker.log"]


def test_waiting_ends_in_time() -> None:
    """The error says what for, and where the logs are."""
    with pytest.raises(ClusterFailed, match=r"waited 0 s for Godot; logs are in /"), watched() as started:
        started.wait_for(lambda: None, "Godot", seconds=0.1)


def test_a_program_that_is_not_there() -> None:
    """Named, in one line."""
    with pytest.raises(ClusterFailed, match=r"nobody cannot be started: .*No such file"), watched() as started:
        started.start("nobody", ["/nonexistent/program"])


def test_a_free_port_is_free_and_none_of_outgoing_connections() -> None:
    """Nothing listens there, and no connection that a test makes is given it."""
    assert free_port() in processes.PORTS
    assert processes.PORTS.stop <= int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


def test_another_process_of_the_same_number_is_not_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The warden kills only what started when it was told of it."""
    with subprocess.Popen(SLEEP) as stranger:
        line = f"process {stranger.pid}\n"
        starts = iter(["before", "later"])
        with monkeypatch.context() as patched:
            patched.setattr(warden, "_start", lambda _: next(starts))
            warden.watch([line])
        assert stranger.poll() is None
        warden.watch([line])
        assert stranger.wait(PATIENCE) == -signal.SIGKILL


def test_one_that_was_started_just_before_an_exception_ends_too() -> None:
    """Nobody has put it on the list yet, but the warden knows of it."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=ROOT, capture_output=True, text=True, check=False)
    pid, folder = done.stdout.split()
    assert done.returncode != 0
    assert not alive(int(pid))
    shutil.rmtree(folder)
