"""How much is tried: what starts no server in ``make check`` (BERTH_CHECK=1); few examples of a property in ``make test``; all of them, and
the longest tests, in ``make prove`` (BERTH_PROVE=1). A plugin of pytest.

In ``make check`` a test is skipped as soon as it, or a fixture of it, binds a socket, starts a process that runs beside it, or builds a
program. So no list says which tests these are.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

CHECK, PROVE = (os.environ.get(f"BERTH_{name}") == "1" for name in ("CHECK", "PROVE"))
only_in_prove = pytest.mark.only_in_prove
"""Its docstring, or its module's, names what ``make test`` has of it."""
STARTS = ("socket.bind", "fcntl.flock")
"""Audit events of what starts a server or builds a program; the lock is that of the cache of programs, where another run may be building"""
_LEFT = pytest.StashKey[int]()
_test_runs = False


def count(small: int, full: int) -> int:
    """``full`` under ``make prove``, else ``small``."""
    return full if PROVE else small


def pytest_configure(config: pytest.Config) -> None:
    """An audit hook also sees what libraries in C bind and start. It skips so many tests that they are counted, not listed."""
    config.addinivalue_line("markers", "only_in_prove: left to make prove; make test has something small of it")
    if CHECK:
        config.option.reportchars = "fE"
        for leaves in ("UnraisableException", "UnhandledThreadException"):  # a test that is skipped midway closes nothing
            config.addinivalue_line("filterwarnings", f"ignore::pytest.Pytest{leaves}Warning")
        sys.addaudithook(_skip)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to ``make prove`` what is its own."""
    if not PROVE and (left := [item for item in items if item.get_closest_marker("only_in_prove")]):
        items[:] = [item for item in items if item not in left]
        config.stash[_LEFT] = len(left)
        config.hook.pytest_deselected(items=left)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Report the number of deselected tests; every worker collects all of them."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["left"] = session.config.stash.get(_LEFT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Keep the number of a worker for the summary."""
    node.config.stash[_LEFT] = max(node.config.stash.get(_LEFT, 0), getattr(node, "workeroutput", {}).get("left", 0))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how many tests only ``make prove`` runs."""
    if left := config.stash.get(_LEFT, 0):
        terminalreporter.line(f"left to make prove: {left} tests")


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """In ``make check`` a worker a core: its tests wait for nobody."""
    return os.cpu_count() if CHECK else None


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
    """In the test's own thread: another one would end by it, while the test waits for it."""
    if threading.current_thread() is not threading.main_thread():
        return
    if _test_runs and (event in STARTS or (event == "subprocess.Popen" and not _is_waited_for(sys._getframe()))):
        pytest.skip("starts a server or a process beside itself, or builds a program: make test has it")


def _is_waited_for(frame: FrameType | None) -> bool:
    """Whether ``subprocess.run`` and its like start the process, which return when it has ended."""
    while frame is not None and frame.f_code is not subprocess.Popen.__init__.__code__:
        frame = frame.f_back
    return frame is not None and frame.f_back is not None and frame.f_back.f_code.co_filename == subprocess.__file__
