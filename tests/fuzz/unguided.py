"""The same mutations without coverage, in a process of its own, for its memory: libFuzzer's own grows with its corpus.

    python -m tests.fuzz.unguided BODIES SEED

Prints one JSON object: ``failures``, ``slowest`` in seconds of CPU and ``resident`` in bytes after each of twenty windows.
"""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import islice
from random import Random

from tests.fuzz import oracle
from tests.fuzz.wire import fuzzed, resident
from tests.fuzz.worlds import snapshots

WINDOWS = 20


def main(number: int, seed: int) -> None:
    """Judge so many bodies under one world."""
    source, found = fuzzed(Random(seed)), snapshots()
    snapshot = found[seed % len(found)]
    failures: list[str] = []
    slowest, memory = 0.0, []
    for _ in range(WINDOWS):
        for _, body in islice(source, number // WINDOWS):
            started = time.thread_time()
            try:
                oracle.check_under(body, snapshot, unaided=False)
            except Exception as error:  # noqa: BLE001 - it is what is looked for
                failures.append(f"{error!r}: {body!r}")
            slowest = max(slowest, time.thread_time() - started)
        memory.append(resident(os.getpid()))
    print(json.dumps({"failures": failures[:10], "slowest": slowest, "resident": memory}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
