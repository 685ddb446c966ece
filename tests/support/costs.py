"""What tests cost: the most expensive tests, files and fixtures of a run, and a budget of CPU time for each folder.

A pytest plugin. CPU seconds of files and fixtures are those of the worker and of every process below it, the control planes too; those of
a test are the worker's own. Machines differ, so a budget is relative to a loop that is timed at each file of the run (``CALIBRATION``).
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.counts import CHECK, PROVE
from tests.testcluster import go_build

SHOWN = 30
"""rows of each table"""
CALIBRATION = 0.003
"""CPU seconds of ``_calibrate`` on the machine on which the budgets were measured"""
EXCESS = 1.5
"""A folder that costs more than its budget times this fails the run."""
BUDGETS: Mapping[str, float] = {
    "tests": 25,
    "tests/analysis": 45,
    "tests/bench": 25,
    "tests/certs": 20,
    "tests/cli": 65,
    "tests/cluster": 45,
    "tests/console": 40,
    "tests/deploy": 110,
    "tests/docs": 20,
    "tests/documents": 20,
    "tests/e2e": 20,
    "tests/e2e/access": 20,
    "tests/e2e/actors": 20,
    "tests/e2e/audit": 45,
    "tests/e2e/bypasses": 30,
    "tests/e2e/certificates": 25,
    "tests/e2e/console": 35,
    "tests/e2e/crds": 20,
    "tests/e2e/differential": 20,
    "tests/e2e/faults": 50,
    "tests/e2e/gpu_modes": 20,
    "tests/e2e/hostile": 25,
    "tests/e2e/installation": 45,
    "tests/e2e/karpenter": 20,
    "tests/e2e/kubelets": 20,
    "tests/e2e/live": 20,
    "tests/e2e/poison": 30,
    "tests/e2e/queues": 50,
    "tests/e2e/replay": 20,
    "tests/e2e/rules": 60,
    "tests/e2e/scan": 20,
    "tests/e2e/scheduling": 20,
    "tests/e2e/versions": 20,
    "tests/e2e/webhooks": 50,
    "tests/fuzz": 40,
    "tests/image": 20,
    "tests/oracles": 20,
    "tests/pictures": 20,
    "tests/policies": 70,
    "tests/registration": 25,
    "tests/server": 60,
    "tests/testcluster": 30,
    "tests/webhook": 45,
}
"""CPU seconds of a whole ``make test`` by folder of tests/. A folder without a row has the smallest budget."""
TICKS = os.sysconf("SC_CLK_TCK")

Cost = tuple[float, float]
"""(wall, CPU) in seconds"""


@dataclass(slots=True)
class Ledger:
    """What one worker spent, or all of them together."""

    tests: dict[str, Cost] = field(default_factory=dict)
    fixtures: dict[str, Cost] = field(default_factory=dict)
    files: dict[str, Cost] = field(default_factory=dict)
    loops: list[float] = field(default_factory=list)
    """CPU seconds of each calibration loop"""

    def add(self, other: Mapping[str, Any]) -> None:
        """Add what a worker handed over."""
        for mine, name in ((self.tests, "tests"), (self.fixtures, "fixtures"), (self.files, "files")):
            for key, (wall, cpu) in other[name].items():
                before = mine.get(key, (0.0, 0.0))
                mine[key] = (before[0] + wall, before[1] + cpu)
        self.loops += other["loops"]


class Costs:
    """Charges each test, file and fixture with the time that passes while it runs."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.file: tuple[str, float, float] | None = None
        """the file that runs now, and the clocks at its start"""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Charge the test, and its file when another one begins."""
        file = item.nodeid.partition("::")[0]
        if self.file is None or self.file[0] != file:
            self.close_file()
            self.ledger.loops.append(_calibrate())
            self.file = file, time.monotonic(), spent()
        begun, own = time.monotonic(), time.process_time()
        outcome = yield
        self.ledger.tests[item.nodeid] = time.monotonic() - begun, time.process_time() - own
        return outcome

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Generator[None, object, object]:
        """Charge what is set up once for a module or a session."""
        if fixturedef.scope == "function":
            return (yield)
        begun, before = time.monotonic(), spent()
        try:
            return (yield)
        finally:
            name = f"{request.node.nodeid or 'session'} {fixturedef.argname}"
            self.ledger.fixtures[name] = time.monotonic() - begun, spent() - before

    def close_file(self) -> None:
        """Charge the file that ends with the clocks of now."""
        if self.file is not None:
            name, begun, before = self.file
            wall, cpu = self.ledger.files.get(name, (0.0, 0.0))
            self.ledger.files[name] = wall + time.monotonic() - begun, cpu + spent() - before
            self.file = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand over what a worker spent; the run fails where a folder is over its budget."""
        self.close_file()
        if (output := getattr(session.config, "workeroutput", None)) is not None:
            output["costs"] = {name: getattr(self.ledger, name) for name in ("tests", "fixtures", "files", "loops")}
        elif not (CHECK or PROVE) and self.exceeded() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker handed over."""
        if costs := getattr(node, "workeroutput", {}).get("costs"):
            self.ledger.add(costs)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the tables, where enough was run to be worth one."""
        if len(self.ledger.files) < 2:
            return
        for title, rows in (("tests", self.ledger.tests), ("files", self.ledger.files), ("fixtures", self.ledger.fixtures)):
            terminalreporter.section(f"the most expensive {title} (wall s, CPU s)", sep="-")
            for name, (wall, cpu) in sorted(rows.items(), key=lambda row: -max(row[1]))[:SHOWN]:
                terminalreporter.line(f"{wall:8.1f} {cpu:8.1f}  {name}")
        folders, scale = by_folder(self.ledger.files), self.scale()
        terminalreporter.section(f"CPU seconds by folder, and its budget (times {scale:.2f} on this machine)", sep="-")
        for folder, cpu in sorted(folders.items(), key=lambda row: -row[1]):
            terminalreporter.line(f"{cpu:8.1f} {_budget(folder) * scale:8.1f}  {folder}")
        terminalreporter.line(f"{sum(folders.values()):8.1f}           in all, collecting and building left out")
        for line in self.exceeded():
            terminalreporter.line(line, red=True, bold=True)

    def scale(self) -> float:
        """How much slower this machine is than the one of the budgets, by CPU."""
        loops = sorted(self.ledger.loops)
        return loops[len(loops) // 2] / CALIBRATION if loops else 1.0

    def exceeded(self) -> list[str]:
        """A sentence for each folder that is over its budget by half."""
        scale = self.scale()
        return [
            f"{folder} took {cpu:.0f} CPU seconds; its budget in tests/support/costs.py is {_budget(folder) * scale:.0f}"
            for folder, cpu in by_folder(self.ledger.files).items()
            if cpu > _budget(folder) * scale * EXCESS
        ]


def by_folder(files: Mapping[str, Cost]) -> dict[str, float]:
    """CPU seconds of each folder: tests/policies, and tests/e2e/rules below e2e."""
    folders: dict[str, float] = defaultdict(float)
    for file, (_, cpu) in files.items():
        parts = Path(file).parts[:-1]
        folders["/".join(parts[: 3 if parts[1:2] == ("e2e",) else 2])] += cpu
    return folders


def _budget(folder: str) -> float:
    return BUDGETS.get(folder, min(BUDGETS.values()))


def spent() -> float:
    """CPU seconds of this process and of all below it, those that ended and were waited for too (Linux alone), but not of builds."""
    return sum(os.times()[:4]) + sum(_living()) - sum(go_build.building)


def _living() -> Iterable[float]:
    """CPU seconds of each process below this one: utime, stime and those of its waited-for children (proc_pid_stat(5))."""
    times: dict[int, float] = {}
    children: dict[int, list[int]] = defaultdict(list)
    try:
        pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    except OSError:
        return
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        children[int(fields[1])].append(pid)
        times[pid] = sum(map(int, fields[11:15])) / TICKS
    below = children[os.getpid()]
    while below:
        pid = below.pop()
        yield times[pid]
        below += children[pid]


def _calibrate() -> float:
    """CPU seconds of a fixed loop of this interpreter."""
    begun, table = time.thread_time(), {}
    for number in range(60_000):
        table[number & 255] = number * 3 % 7
    return time.thread_time() - begun


def pytest_configure(config: pytest.Config) -> None:
    """Register what charges."""
    config.pluginmanager.register(Costs())
