"""Several guided fuzzers at once over one corpus, each in a process of its own, and what they found."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fuzz import donors
from tests.fuzz.bodies import LARGEST

ROOT = Path(__file__).parent.parent.parent
CORPUS = Path(__file__).parent / "corpus"
NO_ATHERIS = (
    "NOT FUZZED: there is no atheris here, so nothing was led by coverage. It has wheels for CPython 3.11 to 3.13 on Linux x86-64:"
    " python -m pip install --no-deps --require-hashes -r tests/fuzz/requirements.txt"
)
FLAGS = (
    f"-max_len={LARGEST}",
    "-len_control=0",  # large ones from the start: a review is no smaller
    "-mutate_depth=3",
    "-entropic_scale_per_exec_time=1",  # a slow body is no better than a fast one that reaches the same
    "-reload=1",  # what another process found
    "-print_final_stats=1",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a campaign came to."""

    bodies: int
    seconds: float
    coverage: int
    """edges of policies/ and webhook/ that some body took"""
    failures: tuple[Path, ...]
    """some bodies for each way to fail, each with its traceback beside it"""
    slowest: float
    """seconds of CPU, under instrumentation and with all checks; 0 where none took 50 ms"""


def needs_atheris() -> None:
    """Skips where there is none; a build machine on which there could be one fails."""
    if importlib.util.find_spec("atheris") is not None:
        return
    if os.environ.get("CI") and sys.platform == "linux" and sys.version_info < (3, 14):
        pytest.fail(NO_ATHERIS)
    pytest.skip(NO_ATHERIS)


def run(folder: Path, bodies: int, processes: int) -> Found:
    """Judge so many bodies. Raises AssertionError where a fuzzer itself ends before."""
    corpus, findings = folder / "corpus", folder / "findings"
    corpus.mkdir()
    findings.mkdir()
    for body in (*donors.seeds(), *kept().values()):
        (corpus / hashlib.sha1(body, usedforsecurity=False).hexdigest()).write_bytes(body)
    started = time.monotonic()
    logs = [_ended(process, log) for process, log in _started(folder, corpus, findings, bodies, processes)]
    return Found(
        bodies=sum(_figure(log, r"number_of_executed_units: (\d+)") for log in logs),
        seconds=time.monotonic() - started,
        coverage=max(_figure(log, r"DONE\s+cov: (\d+)") for log in logs),
        failures=tuple(sorted(path for path in findings.iterdir() if path.name.startswith(("crash", "hang")))),
        slowest=max((int(path.name[5:10]) / 1000 for path in findings.iterdir() if path.name.endswith("ms")), default=0),
    )


def kept() -> dict[str, bytes]:
    """The kept corpus, by file name."""
    return {path.name: path.read_bytes() for path in sorted(CORPUS.iterdir())}


def _started(folder: Path, corpus: Path, findings: Path, bodies: int, processes: int) -> Sequence[tuple[subprocess.Popen[bytes], Path]]:
    out = []
    for number in range(1, processes + 1):
        log = folder / f"log{number}"
        flags = (*FLAGS, f"-runs={bodies // processes}", f"-seed={number}", f"-artifact_prefix={folder}/")
        command = [sys.executable, "-m", "tests.fuzz.guided", str(corpus), str(findings), *flags]
        with log.open("wb") as written:
            out.append((subprocess.Popen(command, cwd=ROOT, stdout=written, stderr=written), log))
    return out


def _ended(process: subprocess.Popen[bytes], log: Path) -> str:
    code = process.wait()
    text = log.read_text(errors="replace")
    assert code == 0, f"the fuzzer ended with {code}:\n{text[-3000:]}"
    return text


def _figure(log: str, pattern: str) -> int:
    found = re.search(pattern, log)
    assert found is not None, f"no {pattern} in what libFuzzer said:\n{log[-3000:]}"
    return int(found[1])
