"""`berth test` as it is typed: exit codes, what goes where, and our own golden cases."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import IO

import pytest
import yaml

from cli.main import main
from tests.cli.policy_cases.test_run import LIMIT, case, write
from tests.support.cases import golden
from tests.support.counts import PROVE
from tests.testcluster.calls import PATIENCE

ROOT = Path(__file__).parents[3]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str]) -> Run:
    """Types `berth test ...`: (exit code, standard output, standard error)."""

    def run(*words: object) -> tuple[int, str, str]:
        try:
            code = main(["test", *map(str, words)])
        except SystemExit as stopped:  # argparse's own way
            code = int(str(stopped.code))
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_our_own_cases_pass(typed: Run) -> None:
    """A golden case, of a pod, of a recorded review or of a claim, is a test case that anybody may run: all in ``make prove``, those of
    three folders and of claims in ``make test``, where tests/policies/test_cases.py decides all by the same code."""
    folders = [golden.CASES] if PROVE else [golden.CASES / name for name in ("dra", "modes", "reviews")]
    number = sum(case.path.is_relative_to(folder) for case in golden.cases() for folder in folders) + len(golden.claim_cases())
    code, out, err = typed(*folders, golden.CLAIM_CASES)
    assert code == 0, out
    assert f"{number} passed, 0 failed;" in out
    assert [line for line in err.splitlines() if "warning" not in line] == []


def test_the_exit_code_says_what_happened(typed: Run, tmp_path: Path) -> None:
    """0 all pass, 1 one fails or too little is exercised, 2 bad input whatever else."""
    write(tmp_path, good=case())
    assert typed(tmp_path)[0] == 0
    assert typed(tmp_path, "--min-coverage", "100%")[0] == 0
    write(
        tmp_path,
        idle=case(
            expect={"unjudged": True}, pod={"spec": {"containers": [{"name": "c"}]}}, policies=[{**LIMIT, "metadata": {"name": "idle"}}]
        ),
    )
    code, out, _ = typed(tmp_path, "--min-coverage", "51")
    assert (code, "50 % is below the minimum of 51 %" in out) == (1, True)
    assert typed(tmp_path, "--min-coverage", "50")[0] == 0
    write(tmp_path, fails=case(expect={}))
    assert typed(tmp_path)[0] == 1
    write(tmp_path, bad=case(whay=1))
    code, out, err = typed(tmp_path)
    assert code == 2
    assert 'whay: unknown field "whay"; did you mean "why"?' in err
    assert "2 passed, 1 failed, 1 invalid" in out


@pytest.mark.parametrize("percent", ["-1", "101", "many", "nan", ""])
def test_a_percentage_is_one(typed: Run, tmp_path: Path, percent: str) -> None:
    """Else it is bad input."""
    assert typed(tmp_path, f"--min-coverage={percent}")[0] == 2


def test_options_stand_for_what_cases_leave_out(typed: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Policies by --policies, from where the command is typed, platforms, facts and the cap of modes."""
    monkeypatch.chdir(tmp_path)
    bare = {key: value for key, value in case(expect={}).items() if key != "policies"}
    write(tmp_path, cases__a=bare, p=LIMIT)
    assert typed("cases")[0] == 2
    assert typed("cases", "--policies", "p.yaml")[0] == 1
    assert typed("cases", "--policies", "p.yaml", "--write")[0] == 0
    assert "violations" in yaml.safe_load((tmp_path / "cases" / "a.yaml").read_text())["expect"]
    assert typed("cases", "--policies", "p.yaml", "--max-mode", "Audit")[0] == 1
    code, _, err = typed("cases", "--policies", "p.yaml", "--platforms", "karpenter")
    assert (code, 'unknown platform "karpenter"; did you mean "karpenter-' in err) == (2, True)


def test_a_read_only_file_is_told(typed: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input can be tested; nothing can be written there."""
    write(tmp_path, a=case(expect={}))
    with (tmp_path / "a.yaml").open() as opened:
        monkeypatch.setattr("sys.stdin", opened)
        code, _, err = typed("-", "--write")
    assert code == 2
    assert "cannot be written" in err


def pass_on(pipe: IO[str], lines: Queue[str]) -> None:
    for line in pipe:
        lines.put(line)


@contextmanager
def watching(folder: Path) -> Iterator[Queue[str]]:
    """`berth test FOLDER --watch`, and its lines as they come."""
    command = [sys.executable, "-P", "-m", "cli.main", "test", str(folder), "--watch"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    lines: Queue[str] = Queue()
    assert process.stdout is not None
    reader = threading.Thread(target=pass_on, args=(process.stdout, lines))
    reader.start()
    try:
        yield lines
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stdout.close()


def test_a_change_is_tested_again(tmp_path: Path) -> None:
    """A case that fails, its expectation mended, then the policy that it names changed."""
    write(tmp_path, cases__a=case(expect={}, policies=["../p.yaml"]), p=LIMIT)
    with watching(tmp_path / "cases") as lines:
        assert "0 passed, 1 failed" in until(lines, "passed")
        write(tmp_path, cases__a=case(policies=["../p.yaml"]))
        assert "1 passed, 0 failed" in until(lines, "passed")
        write(tmp_path, p={**LIMIT, "spec": {"mode": "Enforce", "require": {"gpusPerPod": {"max": 8}}}})
        assert "0 passed, 1 failed" in until(lines, "passed")


def until(lines: Queue[str], word: str) -> str:
    """The next line with this word."""
    while word not in (line := lines.get(timeout=PATIENCE)):
        pass
    return line
