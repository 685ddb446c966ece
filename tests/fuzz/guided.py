"""The coverage-guided fuzzer: atheris (libFuzzer under Python) over our mutations, in a process of its own.

    python -m tests.fuzz.guided CORPUS FINDINGS [libFuzzer's flags, such as -runs=100000 -seed=1]

It goes on after a failure: FINDINGS gets some bodies for each way to fail, with tracebacks, and a body for each new slowest.
Why atheris: it instruments bytecode, so coverage costs a fraction of what a trace function does, and libFuzzer's corpus is the best
tried there is; hypofuzz searches what hypothesis draws, not bytes or documents, and pythonfuzz is archived and traces every line.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

INSTRUMENTED = ("analysis", "catalog", "kube", "policies", "server", "webhook")
SLOW = 0.05
"""Seconds of CPU for which a body is worth a look: a review takes less than a thousandth"""
MOST_ALIKE = 4
"""bodies that are kept of each way to fail"""
HANG = 1.0
"""Seconds of CPU that no body may take"""


class Fuzzed:
    """What one process has found."""

    def __init__(self, findings: Path, check: Any) -> None:
        self._findings = findings
        self._check = check
        self._failed = Counter[str]()
        self._slowest = SLOW

    def one(self, body: bytes) -> None:
        """Judge a body; whatever is raised is kept."""
        start = time.thread_time()
        try:
            self._check(body)
        except Exception as error:  # noqa: BLE001 - it is what is looked for
            self._fails(body, error)
        self._took(body, time.thread_time() - start)

    def _fails(self, body: bytes, error: Exception) -> None:
        kind = kind_of_failure(error)
        self._failed[kind] += 1
        if self._failed[kind] <= MOST_ALIKE:
            name = f"crash-{kind}-{self._failed[kind]}"
            self._keep(name, body)
            self._keep(f"{name}.trace", "".join(traceback.format_exception(error))[-8000:].encode(errors="replace"))

    def _took(self, body: bytes, seconds: float) -> None:
        if seconds > self._slowest:
            self._slowest = seconds
            self._keep(f"{'hang' if seconds > HANG else 'slow'}-{round(seconds * 1000):05}ms", body)

    def _keep(self, name: str, content: bytes) -> None:
        (self._findings / name).write_bytes(content)


def kind_of_failure(error: Exception) -> str:
    """A word for all failures that say the same (before a colon, what differs after it) and are raised by the same functions of ours."""
    frames = [f"{frame.filename}:{frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    ours = [frame for frame in frames if "/tests/fuzz/oracle.py" in frame or "/policies/" in frame or "/webhook/" in frame]
    message = " ".join((str(error).partition(":")[0][:80], *ours))
    return f"{type(error).__name__}-{hashlib.sha256(message.encode(errors='replace')).hexdigest()[:8]}"


def main(corpus: str, findings: str, *flags: str) -> None:
    """Never returns: libFuzzer ends the process."""
    atheris = importlib.import_module("atheris")  # found only where there is a wheel of it
    with atheris.instrument_imports(include=list(INSTRUMENTED)):
        oracle = importlib.import_module("tests.fuzz.oracle")
    bodies = importlib.import_module("tests.fuzz.bodies")
    oracle.snapshots()
    fuzzed = Fuzzed(Path(findings), oracle.check)

    def mutate(body: bytes, most: int, seed: int) -> bytes:
        changed: bytes = bodies.mutated(Random(seed), body)
        return changed[:most]

    atheris.Setup([sys.argv[0], corpus, *flags], fuzzed.one, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
