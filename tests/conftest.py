"""What every test is given, and in which order and beside what it runs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.testcluster.fixtures import MISSED
from webhook import logs

settings.register_profile("berth", settings.default, deadline=None)  # of an example: on a machine that does other things it says nothing
settings.load_profile("berth")

LONG = ("e2e", "bench", "testcluster", "cluster", "fuzz", "docs")
"""Folders whose tests start servers or whole control planes, those that take longest first"""
MOST_WORKERS = 8
"""Each may have two control planes at a time, of 0.7 GiB each"""


@pytest.fixture(autouse=True)
def log_goes_where_it_went() -> Iterator[None]:
    """A test that sends the log elsewhere sends only its own there."""
    before = logs._sink
    yield
    logs.to(before)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Of ``-n auto``: two a core, since half of the time a test waits for a process and leaves its core to another."""
    return min(2 * (os.cpu_count() or 1), MOST_WORKERS)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In one process what needs a whole cluster comes last: it is slow to say what a test of one function says at once. On several, each
    of which takes file by file (``--dist loadfile``), it comes first, and what is short fills the cores at the end.

    Which lines of ``policies`` were passed through is not counted by tests that try thousands of pods, since counting triples what they
    take: the golden cases and a test of each part are to pass through nearly all of it."""
    for item in items:
        if "fuzz" in item.path.parts or getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.no_cover)
    items.sort(key=_rank, reverse=not hasattr(config, "workerinput"))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Nothing is traced while a test passes uncounted. pytest-cov stops the tracer that it started last; in a worker of several it has
    started two (as the one who tells the workers what to do, and as one of them), and the other one goes on."""
    if item.get_closest_marker("no_cover") is None:
        return (yield)
    tracer, of_threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        return (yield)
    finally:
        threading.settrace(of_threads)
        sys.settrace(tracer)


def _rank(item: pytest.Item) -> int:
    return next((at for at, folder in enumerate(LONG) if folder in item.path.parts), len(LONG))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of several hands over what it could not try."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["missed"] = session.config.stash.get(MISSED, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """And it is kept with what others could not."""
    node.config.stash.setdefault(MISSED, []).extend(getattr(node, "workeroutput", {}).get("missed", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What was not tried is said where everybody looks."""
    if missed := config.stash.get(MISSED, []):
        terminalreporter.section("NOT TRIED ON A REAL CONTROL PLANE", sep="!", red=True, bold=True)
        terminalreporter.line(missed[0])
