"""What every test is given, and in which order and beside what it runs."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from cli.terminal import screen
from telemetry import log
from tests.support import shared_tables
from tests.support.counts import PROVE
from tests.support.generators import same_examples
from tests.testcluster.controlplane import starting
from tests.testcluster.fixtures import MISSED, cluster, new_namespace, pool
from tests.testcluster.kubelets.fixtures import kubelets
from tests.testcluster.programs import BUILDING

__all__ = ["cluster", "kubelets", "new_namespace"]
"""fixtures for everybody: one cluster a process, whichever folders its tests are of"""
pytest_plugins = ["tests.support.costs"]

os.environ.setdefault("GOGC", "400")
"""Programs in Go live for a minute or two here: an API server's start takes a tenth less CPU, with 110 MB more."""
same_examples.load()
shared_tables.share()
yaml.safe_load, yaml.safe_load_all = partial(yaml.load, Loader=yaml.CSafeLoader), partial(yaml.load_all, Loader=yaml.CSafeLoader)
"""Tests read megabytes of YAML, and libyaml reads them ten times as fast. Berth names its own loader."""

SHARING = ("test_smoke", "test_lease_of_a_stopping_replica", "audit/test_audit_equals_enforce", "audit/test_stored_pods")
ON_SHARED_CLUSTER = (
    *(f"tests/e2e/{folder}/" for folder in ("access", "actors", "bypasses", "console", "crds", "rules", "webhooks")),
    *(f"tests/e2e/{file}.py" for file in SHARING),
    "tests/bench/test_burst.py",
)
"""Where the fixture ``cluster`` is used, which is one for each process. A file that is not named here has one more."""
LONG = ("e2e", "inspect", "bench", "image", "testcluster", "cluster", "deploy", "fuzz", "docs")
"""Folders whose tests start servers or whole control planes, those that take longest first"""
RENDERED = ("audit", "chart", "console", "notes", "registration", "rights_and_kinds", "values", "workload")
SOURCE = "the parsed source"
TOGETHER = {
    "the shared cluster": ON_SHARED_CLUSTER,
    "real kubelets": ("tests/e2e/kubelets/", "tests/e2e/installation/"),
    "the chart": ("tests/deploy/monitoring/", *(f"tests/deploy/test_{file}.py" for file in RENDERED)),
    SOURCE: tuple(
        f"tests/{name}.py"
        for name in ("docs/test_architecture", "test_documented", "test_generated", "test_layers", "test_names", "test_words")
    ),
}
"""Files that one worker runs one after another: on the same control plane or machines, or with what it has rendered or parsed already"""
A_CORE = 3
"""workers, of which the last gives way to the others"""
MOST_WORKERS = 8
"""Each may have two control planes at a time, of 0.7 GiB each"""
MOST_PLANES = 20
"""of a whole run"""


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
    """Of ``-n auto``: three a core, since most of the time a test of a cluster waits for a process and leaves its core to another."""
    return min(A_CORE * (os.cpu_count() or 1), MOST_WORKERS)


class FilesAndCluster(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """File by file; all that is on the shared cluster in one worker, and all that is on real kubelets. (The groups of ``--dist loadgroup``
    are written into ``Item._nodeid``, which pytest 9.2 does not read.)

    Every third worker takes files that start no server, and gives way to the others (``pytest_configure``): more clusters at a time than
    two a core keep each other waiting until API servers time out.
    """

    def _split_scope(self, nodeid: str) -> str:
        for name, files in TOGETHER.items():
            if nodeid.startswith(files):
                return name
        return nodeid.partition("::")[0]

    def _assign_work_unit(self, node: Any) -> None:
        """Of a worker that gives way: from the end of the queue that has what starts no server."""
        if _gives_way(node.gateway.id) and (scope := self._without_servers()):
            self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:
        """End a worker that gives way where nothing is left but what starts servers."""
        others = any(not _gives_way(other.gateway.id) and not other.shutting_down for other in self.nodes)
        if self.workqueue and others and _gives_way(node.gateway.id) and not self._without_servers():
            if not node.shutting_down:
                node.shutdown()
            return
        super()._reschedule(node)

    def remove_node(self, node: Any) -> str | None:
        """Drop the files that a crashed worker had finished: xdist assigns them again, and their new worker waits for ever."""
        work = self.assigned_work[node]
        for scope in [scope for scope, tests in work.items() if all(tests.values())]:
            del work[scope]
        crashed: str | None = super().remove_node(node)
        return crashed

    def _without_servers(self) -> str | None:
        ends = next(reversed(self.workqueue)), next(iter(self.workqueue))
        return next((scope for scope in ends if (scope not in TOGETHER or scope == SOURCE) and _rank(scope) == len(LONG)), None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesAndCluster | None:
    """Of ``--dist loadfile``."""
    return FilesAndCluster(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Collecting makes objects that stay: looking at them for garbage, then and later, takes a third more."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In one process what needs a whole cluster comes last: it is slow to say what a test of one function says at once. On several, each
    of which takes file by file (``--dist loadfile``), it comes first, and what is short fills the cores at the end; but where programs are
    still being built, it comes last."""
    items.sort(key=lambda item: _rank(item.nodeid), reverse=hasattr(config, "workerinput") == (os.environ.get(BUILDING) == "1"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Control planes that were lent are ended once what comes next needs none."""
    outcome = yield
    if nextitem is None or _rank(nextitem.nodeid) == len(LONG):
        pool(item.config).close()
    return outcome


def _rank(nodeid: str) -> int:
    parts = Path(nodeid.partition("::")[0]).parts
    return next((at for at, folder in enumerate(LONG) if folder in parts), len(LONG))


def _gives_way(worker: str) -> bool:
    return int(worker.removeprefix("gw")) % A_CORE == A_CORE - 1


def pytest_configure(config: pytest.Config) -> None:
    """Lower the priority of a worker that gives way."""
    if _gives_way(getattr(config, "workerinput", {"workerid": "gw0"})["workerid"]):
        os.nice(5)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of several hands over what it could not try, and what became of its control planes. Too many of them fail the run."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["missed"] = session.config.stash.get(MISSED, [])
        output["started"], output["ended"] = list(map(str, starting.started)), pool(session.config).ended
    elif len(starting.started) > MOST_PLANES and not PROVE and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """And it is kept with what others could not."""
    output = getattr(node, "workeroutput", {})
    node.config.stash.setdefault(MISSED, []).extend(output.get("missed", ()))
    starting.started.extend(map(Path, output.get("started", ())))
    pool(node.config).ended.extend(output.get("ended", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What was not tried is said where everybody looks, and how many control planes were started."""
    if starting.started:
        terminalreporter.section(f"control planes started: {len(starting.started)}, at most {MOST_PLANES}", sep="-")
        for reason in pool(config).ended:
            terminalreporter.line(f"not lent again: {reason}")
    if missed := config.stash.get(MISSED, []):
        terminalreporter.section("NOT TRIED HERE", sep="!", red=True, bold=True)
        for reason in dict.fromkeys(missed):
            terminalreporter.line(reason)
