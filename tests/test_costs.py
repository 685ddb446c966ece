"""What a run costs is charged to its files, and a folder over its budget fails the run."""

from __future__ import annotations

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from tests.support import costs
from tests.support.costs import BUDGETS, CALIBRATION, EXCESS, Costs


def measured(cpu: float, *, loop: float = CALIBRATION) -> Costs:
    """A run of one file of tests/docs that took so many CPU seconds, on a machine whose calibration loop takes ``loop``."""
    run = Costs()
    run.ledger.files["tests/docs/test_a.py"] = (1.0, cpu)
    run.ledger.loops.append(loop)
    return run


@pytest.mark.parametrize(("slower", "fails"), [(1.0, True), (2.0, False)])
def test_a_folder_over_its_budget_fails_the_run(slower: float, *, fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By more than half, as this machine's speed scales it; the sentence names the folder, the figure and the budget."""
    monkeypatch.setattr(costs, "CHECK", False)
    monkeypatch.setattr(costs, "PROVE", False)
    run = measured(BUDGETS["tests/docs"] * EXCESS + 1, loop=CALIBRATION * slower)
    session = SimpleNamespace(config=SimpleNamespace(), exitstatus=pytest.ExitCode.OK)
    run.pytest_sessionfinish(session)  # type: ignore[arg-type]
    assert session.exitstatus == (pytest.ExitCode.TESTS_FAILED if fails else pytest.ExitCode.OK)
    taken, budget = BUDGETS["tests/docs"] * EXCESS + 1, BUDGETS["tests/docs"]
    sentence = f"tests/docs took {taken:.0f} CPU seconds; its budget in tests/support/costs.py is {budget:.0f}"
    assert run.exceeded() == ([sentence] if fails else [])


def test_a_folder_that_is_new_has_the_smallest_budget() -> None:
    """A folder without a row in ``BUDGETS`` is held to the smallest budget."""
    run = measured(0)
    run.ledger.files["tests/new/test_a.py"] = 1.0, min(BUDGETS.values()) * EXCESS + 1
    assert [sentence.partition(" ")[0] for sentence in run.exceeded()] == ["tests/new"]


def test_folders_are_those_below_tests_and_below_e2e() -> None:
    """tests/e2e has one row for each kind of cluster tests; a file of tests/policies counts for that folder, however deep it is."""
    files = {"tests/e2e/rules/test_a.py": (1.0, 2.0), "tests/policies/offers/test_b.py": (1.0, 3.0), "tests/policies/test_c.py": (1.0, 4.0)}
    assert costs.by_folder(files) == {"tests/e2e/rules": 2.0, "tests/policies": 7.0}


def test_processes_below_a_test_are_charged_too() -> None:
    """While they run and after they have ended."""
    before = costs.spent()
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        deadline = time.monotonic() + 60
        while costs.spent() < before + 0.2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert costs.spent() >= before + 0.2
    finally:
        busy.kill()
        busy.wait()
    assert costs.spent() >= before + 0.2
