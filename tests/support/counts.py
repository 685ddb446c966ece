"""How much is tried: what starts no server in ``make check``; few examples of a property in ``make test``; all of them, and the longest
tests, in ``make prove`` (BERTH_PROVE=1).

``make check`` loads this module as a plugin of pytest (``-p``). A test is then skipped as soon as it, or a fixture of it, binds a socket,
starts a process that runs beside it, or builds a program. So no list says which tests these are.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from types import FrameType

import pytest

PROVE = os.environ.get("BERTH_PROVE") == "1"
only_in_prove = pytest.mark.skipif(not PROVE, reason="in make prove alone; its docstring names what make test has of it")
STARTS = ("socket.bind", "fcntl.flock")
"""Audit events of what starts a server or builds a program; the lock is that of the cache of programs, where another run may be building"""
_test_runs = False


def count(small: int, full: int) -> int:
    """``full`` under ``make prove``, else ``small``."""
    return full if PROVE else small


def pytest_configure() -> None:
    """Watch from now on. An audit hook also sees what libraries in C bind and start."""
    sys.addaudithook(_skip)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers() -> int:
    """A worker a core: these tests wait for nobody."""
    return os.cpu_count() or 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """What pytest and its plugins start between tests is theirs."""
    global _test_runs
    _test_runs = True
    try:
        return (yield)
    finally:
        _test_runs = False


def _skip(event: str, _: object) -> None:
    if _test_runs and (event in STARTS or (event == "subprocess.Popen" and not _is_waited_for(sys._getframe()))):
        pytest.skip("starts a server or a process beside itself, or builds a program: make test has it")


def _is_waited_for(frame: FrameType | None) -> bool:
    """Whether ``subprocess.run`` and its like start the process, which return when it has ended."""
    while frame is not None and frame.f_code is not subprocess.Popen.__init__.__code__:
        frame = frame.f_back
    return frame is not None and frame.f_back is not None and frame.f_back.f_code.co_filename == subprocess.__file__
