"""What every test is given, and in which order and beside what it runs."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

import policies
from cli.terminal import screen
from tests.support import shared_tables
from tests.support.generators import same_examples
from tests.testcluster.fixtures import MISSED, cluster, new_namespace
from tests.testcluster.kubelets.fixtures import kubelets
from webhook.telemetry import log

__all__ = ["cluster", "kubelets", "new_namespace"]
"""fixtures for everybody: one cluster a process, whichever folders its tests are of"""

same_examples.load()
shared_tables.share()

COUNTED = tuple(Path(__file__).parent / folder for folder in ("policies", "cli"))
"""Folders whose tests are to pass through every line of ``policies``"""
LONG = ("e2e", "bench", "image", "testcluster", "cluster", "deploy", "fuzz", "docs")
"""Folders whose tests start servers or whole control planes, those that take longest first"""
ON_SHARED_CLUSTER = (
    *(f"tests/e2e/{folder}/" for folder in ("access", "actors", "bypasses", "console", "crds", "rules", "webhooks")),
    *(f"tests/e2e/{file}.py" for file in ("test_smoke", "audit/test_audit_equals_enforce", "audit/test_stored_pods")),
    "tests/bench/test_burst.py",
)
"""Where the fixture ``cluster`` is used, which is one for each process. A file that is not named here has one more."""
MOST_WORKERS = 8
"""Each may have two control planes at a time, of 0.7 GiB each"""


@pytest.fixture(autouse=True)
def log_goes_where_it_went() -> Iterator[None]:
    """A test that sends the log elsewhere sends only its own there."""
    before = log._sink
    yield
    log.to(before)


@pytest.fixture(autouse=True)
def colour_is_as_it_was() -> Iterator[None]:
    """What a test chooses by ``--color``, as a command does for its whole process, is its own."""
    yield
    screen.choose("auto")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Of ``-n auto``: two a core, since half of the time a test waits for a process and leaves its core to another."""
    return min(2 * (os.cpu_count() or 1), MOST_WORKERS)


class FilesAndCluster(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """File by file, and all that is on the shared cluster in one worker: a cluster in each, idle most of the time, took a tenth of a whole
    run. (The groups of ``--dist loadgroup`` are written into ``Item._nodeid``, which pytest 9.2 does not read.)"""

    def _split_scope(self, nodeid: str) -> str:
        return "the shared cluster" if nodeid.startswith(ON_SHARED_CLUSTER) else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesAndCluster | None:
    """Of ``--dist loadfile``."""
    return FilesAndCluster(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Under coverage, the lines that run when a module is imported are counted here; reading the tests themselves is not traced, which
    would double what it takes in each worker."""
    if session.config.pluginmanager.hasplugin("_cov"):
        for module in pkgutil.walk_packages(policies.__path__, "policies."):
            importlib.import_module(module.name)
    with _untraced():
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In one process what needs a whole cluster comes last: it is slow to say what a test of one function says at once. On several, each
    of which takes file by file (``--dist loadfile``), it comes first, and what is short fills the cores at the end."""
    items.sort(key=_rank, reverse=not hasattr(config, "workerinput"))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """Who only hands out tests to workers passes through nothing that counts."""
    if hasattr(session.config, "workerinput") or not session.config.getoption("numprocesses", None):
        return (yield)
    with _untraced():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """The lines of ``policies`` are counted in its own tests and in those of the command, which reads every kind of workload; and in none
    that tries hundreds of random pods, since tracing triples what a test takes: the golden cases and a test of each part are to pass
    through nearly all of it."""
    is_random = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    if (any(map(item.path.is_relative_to, COUNTED)) and not is_random) or item.get_closest_marker("no_cover"):
        return (yield)
    with _untraced():
        return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Of a test that says so itself, ``no_cover``, pytest-cov stops the tracer that it started last. In a worker of several it has started
    two (as the one who tells the workers what to do, and as one of them), and the other one would go on."""
    if item.get_closest_marker("no_cover") is None:
        return (yield)
    with _untraced():
        return (yield)


@contextmanager
def _untraced() -> Iterator[None]:
    """Coverage counts nothing within the block."""
    tracer, of_threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        yield
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
        terminalreporter.section("NOT TRIED HERE", sep="!", red=True, bold=True)
        for reason in dict.fromkeys(missed):
            terminalreporter.line(reason)
