"""Which tests ``make check``, ``make test`` and ``make prove`` run of a file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import asyncio, fcntl, socket, subprocess, sys
import pytest, uvloop

@pytest.fixture(scope="module")
def server():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening

def test_server(server): pass
def test_uvloop():
    async def serve():
        (await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)).close()
    uvloop.run(serve())
def test_popen(): subprocess.Popen([sys.executable, "-c", ""]).wait()
def test_lock(tmp_path):
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
def test_run(): subprocess.check_output([sys.executable, "-c", ""])
def test_pair():
    for end in socket.socketpair():
        end.close()
@pytest.mark.only_in_prove
def test_long(): pass
"""
STARTING, PLAIN, LONG = {"server", "uvloop", "popen", "lock"}, {"run", "pair"}, {"long"}


@pytest.mark.parametrize(
    ("mode", "passed", "skipped"),
    [("CHECK", PLAIN, STARTING), ("TEST", PLAIN | STARTING, set()), ("PROVE", PLAIN | STARTING | LONG, set())],
)
def test_each_mode_runs_its_own(tmp_path: Path, mode: str, passed: set[str], skipped: set[str]) -> None:
    """What starts a server, a process beside itself or a build is left out of check, by its fixtures too; what is long of all but prove."""
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "test_it.py").write_text(TESTS)
    environment = {name: text for name, text in os.environ.items() if not name.startswith("BERTH_")} | {f"BERTH_{mode}": "1"}
    command = [sys.executable, "-m", "pytest", "-v", "-p", "tests.support.counts", "--rootdir", str(tmp_path), str(tmp_path / "test_it.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    outcomes = dict(re.findall(r"::test_(\w+) (PASSED|SKIPPED)", done.stdout))
    assert ("left to make prove: 1 tests" in done.stdout) is (mode != "PROVE")
    assert outcomes == {**dict.fromkeys(passed, "PASSED"), **dict.fromkeys(skipped, "SKIPPED")}
