"""Pairs put into a folder while disks are full, processes die, and others do the same: both files or neither, and one CA for ever."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from certs import writing
from certs.authority import CertificateError, issue, issued_by, load, make_ca
from certs.files import FILES, self_signed
from certs.writing import locked, store
from tests.certs.pairs import DAY, NOW
from tests.counts import count
from tests.patience import PATIENCE

ROUNDS = count(10, 200)
PROCESSES = 6
LEAD = 0.003
"""Seconds from a command to the start that it is for: enough for six lines through pipes."""


def ran(module: str, *arguments: str, mount: str = "", said: str = "") -> str:
    """What ``python -m module`` prints, in a mount namespace of its own where something is to be mounted first."""
    command = [sys.executable, "-m", module, *arguments]
    if mount:
        if subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True, check=False).returncode:
            pytest.skip("this machine lets nobody mount")
        command = ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$@"', "sh", *command]
    done = subprocess.run(command, input=said, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        pytest.param("disk", ": No space left on device; make room on its file system", id="disk"),
        pytest.param("size", ": File too large; raise this process's limit of file sizes (ulimit -f)", id="size"),
        pytest.param("descriptors", "/ca.crt: Too many open files; raise this process's limit of open files (ulimit -n)", id="files"),
    ],
)
def test_a_shortage_leaves_nothing_behind(kind: str, said: str, tmp_path: Path) -> None:
    """The first start says what to do about it; the next one, when it is over, makes a CA as if it were the first."""
    mount = f"mount -t tmpfs -o size=20k none {tmp_path}" if kind == "disk" else ""
    told = json.loads(ran("tests.certs.shortage", str(tmp_path), kind, mount=mount))
    assert told["first"]["error"] == f"{tmp_path}{said}"
    assert set(told["left"]) <= {".lock"}
    assert told["second"]["error"] == ""
    assert told["made"] == [".lock", *FILES]


@pytest.mark.parametrize(("days", "steps"), [(0, 20), (6, 15)])
def test_a_process_may_die_at_any_step(days: int, steps: int, tmp_path: Path) -> None:
    """The next start succeeds without help, keeps a CA that anybody could have seen, and tidies up what was left beside."""
    if days:
        self_signed(tmp_path / "before", ["localhost"], NOW)
    died = int(ran("tests.certs.crashes", str(tmp_path), str(days)))
    assert died > steps
    halves = 0
    for folder in (tmp_path / str(step) for step in range(1, died + 1)):
        held = {path.name: path.read_bytes() for path in folder.glob("ca.*")}
        halves += list(held) == ["ca.key"]
        files = self_signed(folder, ["localhost"], NOW + days * DAY)
        assert held.get("ca.crt") in (None, files.ca.read_bytes())
        assert held.get("ca.key") in (None, (folder / "ca.key").read_bytes())
        assert ("made a new CA" in "".join(files.notes)) == ("ca.crt" not in held)
        assert issued_by(load(files.certificate.read_bytes(), files.key.read_bytes()), files.authority)
        assert [path.name for path in folder.glob(".*.new")] == []
    assert halves == (0 if days else 1), "the one moment that needs finishing was met"


def test_a_lone_key_that_is_not_half_of_ours_is_left_alone(tmp_path: Path) -> None:
    """What lies beside belongs to another key: nothing is put in its place, and callers may trust the certificate that is gone."""
    self_signed(tmp_path, ["localhost"], NOW)
    (tmp_path / "ca.crt").unlink()
    (tmp_path / ".ca.crt.new").write_bytes(make_ca(NOW).certificate_pem)
    with pytest.raises(CertificateError, match=r"ca\.crt: it is missing but ca\.key is there; restore it"):
        self_signed(tmp_path, ["localhost"], NOW)


class Starting:
    """Processes that wait for a command, each of them ready to start a server."""

    def __init__(self, open_ones: ExitStack) -> None:
        command = [sys.executable, "-m", "tests.certs.starts"]
        self._processes = [
            open_ones.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for _ in range(PROCESSES)
        ]
        for process in self._processes:
            open_ones.callback(process.kill)

    def all_at_once(self, folder: Path, names: list[list[str]], days: int = 0) -> list[dict[str, Any]]:
        at = time.monotonic() + LEAD
        for process, wanted in zip(self._processes, names, strict=True):
            assert process.stdin
            print(json.dumps({"folder": str(folder), "names": wanted, "at": at, "days": days}), file=process.stdin, flush=True)
        return [json.loads(process.stdout.readline()) for process in self._processes if process.stdout]


@pytest.fixture(scope="module")
def starting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starting]:
    with ExitStack() as open_ones:
        starting = Starting(open_ones)
        starting.all_at_once(tmp_path_factory.mktemp("warm"), [["localhost"]] * PROCESSES)
        yield starting


def made(told: list[dict[str, Any]], what: str) -> int:
    return sum(what in note for one in told for note in one["notes"])


def test_six_that_start_at_once_make_one_ca_and_one_leaf(starting: Starting, tmp_path: Path) -> None:
    """All start, with the same leaf; six days later all start again, and one of them has renewed it."""
    for folder in (tmp_path / str(n) for n in range(ROUNDS)):
        for days in (0, 6):
            told = starting.all_at_once(folder, [["localhost"]] * PROCESSES, days)
            assert [one["error"] for one in told] == [""] * PROCESSES
            assert len({one["leaf"] for one in told}) == 1
            assert (made(told, "made a new CA"), made(told, "made a new serving certificate")) == (int(not days), 1)


def test_six_with_other_names_make_one_ca(starting: Starting, tmp_path: Path) -> None:
    """Each replaces the leaf of the one before, and none reads a key of one and the certificate of another."""
    names = [[f"{letter}.example"] for letter in "abcdef"]
    for folder in (tmp_path / str(n) for n in range(ROUNDS)):
        told = starting.all_at_once(folder, names)
        assert [one["error"] for one in told] == [""] * PROCESSES
        assert [f", for {wanted}, " in one["notes"][-1] for one, (wanted,) in zip(told, names, strict=True)] == [True] * PROCESSES
        assert made(told, "made a new CA") == 1
        ca, leaf = (load(*((folder / f"{stem}.{end}").read_bytes() for end in ("crt", "key"))) for stem in ("ca", "tls"))
        assert issued_by(leaf, ca)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield
    os.close(descriptor)


def test_who_finds_the_lock_taken_waits(tmp_path: Path) -> None:
    """Until the other one is done or has died."""
    done = threading.Event()

    def wait() -> None:
        with locked(tmp_path):
            done.set()

    thread = threading.Thread(target=wait)
    with held(tmp_path):
        thread.start()
        assert not done.wait(0.1)
    thread.join()
    assert done.is_set()


def test_a_lock_that_is_never_let_go_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server does not hang behind another; and where nothing is to be made it does not ask for the lock."""
    monkeypatch.setattr(writing, "PATIENCE", 0.05)
    with held(tmp_path), pytest.raises(CertificateError, match=r"\.lock: another process has held it for .* end that one \(fuser "):
        self_signed(tmp_path, ["localhost"], NOW)
    self_signed(tmp_path, ["localhost"], NOW)
    with held(tmp_path):
        assert self_signed(tmp_path, ["localhost"], NOW).notes == ()


@pytest.mark.parametrize(
    ("names", "days", "said"),
    [
        pytest.param(["localhost"], 1, r"^$", id="nothing-to-do"),
        pytest.param(["other"], 1, r"/\.tls\.key\.new: Read-only file system; --self-signed needs a folder it can write to$", id="name"),
        pytest.param(["localhost"], 400, r"/ca\.crt: it expired on 2027-11-20", id="expired-ca"),
    ],
)
def test_a_folder_that_is_read_only(names: list[str], days: int, said: str, tmp_path: Path) -> None:
    """Serves as long as nothing is to be written, then says what is wrong; the open key of a mount stays as it is and is told."""
    self_signed(tmp_path, ["localhost"], NOW)
    (tmp_path / "ca.key").chmod(0o644)
    mount = f"mount --bind {tmp_path} {tmp_path} && mount -o remount,ro,bind {tmp_path}"
    told = json.loads(ran("tests.certs.starts", mount=mount, said=json.dumps({"folder": str(tmp_path), "names": names, "days": days})))
    assert re.search(said, told["error"])
    if not told["error"]:
        assert "can be read by others, and stays so (Read-only file system): give it mode 0600" in told["notes"][0]


def test_a_pair_in_place_of_an_old_one(tmp_path: Path) -> None:
    """Both files are the new ones, the key for its owner only, and nothing lies beside."""
    ca = make_ca(NOW)
    for _ in range(2):
        pair = issue(ca, ["localhost"], NOW)
        store(pair, tmp_path / "tls.crt", tmp_path / "tls.key")
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"tls.crt": pair.certificate_pem, "tls.key": pair.key_pem}
    assert (tmp_path / "tls.key").stat().st_mode & 0o777 == 0o600
