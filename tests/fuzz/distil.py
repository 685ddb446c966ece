"""The kept corpus from a campaign's: of all bodies, shortest first, those that take some branch that none before it took.

    python -m tests.fuzz.distil CORPUS ...

Writes ``tests/fuzz/corpus``; what is in there stays if it still adds something, or is named otherwise than by its digest: those were
found to fail once.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import coverage

from tests.fuzz import oracle
from tests.fuzz.campaign import CORPUS, ROOT
from tests.fuzz.guided import INSTRUMENTED
from tests.fuzz.worlds import snapshots

LONGEST = 3000
"""Bytes of a kept body"""
_DIGEST = re.compile(r"[0-9a-f]{12}")
Branch = tuple[str, int, int]


def distilled(bodies: Iterable[bytes]) -> list[bytes]:
    """Those that add a branch; one that fails is left out."""
    seen: set[Branch] = set()
    kept = []
    for body in sorted(set(bodies), key=lambda body: (len(body), body)):
        taken = branches(body) if len(body) <= LONGEST else set()
        if not taken <= seen:
            seen |= taken
            kept.append(body)
    return kept


def branches(body: bytes) -> set[Branch]:
    """Of our own code, on the way to the answers; none where it fails."""
    tracer = coverage.Coverage(branch=True, data_file=None, source=[str(ROOT / name) for name in INSTRUMENTED], messages=False)
    try:
        with tracer.collect():
            oracle.check(body)
    except Exception:  # noqa: BLE001 - it is for the fuzzer to say
        return set()
    data = tracer.get_data()
    return {(file, *arc) for file in data.measured_files() for arc in data.arcs(file) or ()}


def main(*folders: str) -> None:
    """Read, distil, write."""
    snapshots()
    found = [path.read_bytes() for folder in (*folders, str(CORPUS)) for path in Path(folder).iterdir()]
    kept = distilled(found)
    for path in CORPUS.iterdir():
        if _DIGEST.fullmatch(path.stem):
            path.unlink()
    for body in kept:
        (CORPUS / f"{hashlib.sha256(body).hexdigest()[:12]}.body").write_bytes(body)
    print(f"{len(kept)} bodies, {sum(map(len, kept))} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
