"""What ``berth try`` makes of manifests that nobody here wrote: each one's address and outcome, never its text.

    python -m bench.manifests FOLDER [--platforms P,...] > bench/PUBLIC_MANIFESTS.md

``FOLDER`` has sub-folders of files ``NNN.yaml`` with an ``index.tsv``: number, repository, path.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cli import main as berth
from tests.support import results_page
from tests.testcluster.addons.berth import LIBRARY

_CODE = re.compile(r"BERTH-1\d\d")
_WARNED = re.compile(r"warning: (BERTH-2\d\d)")


class Tried(NamedTuple):
    """One file, and what became of it."""

    repository: str
    path: str
    outcome: str
    warnings: tuple[str, ...]


def tried(folder: Path, platforms: str) -> Iterator[Tried]:
    """Every file of every index under ``folder``, in order."""
    for index in sorted(folder.glob("*/index.tsv")):
        for line in index.read_text().splitlines():
            number, repository, path = line.split("\t")[:3]
            yield _one(index.parent / f"{number}.yaml", repository, path, platforms)


def _one(file: Path, repository: str, path: str, platforms: str) -> Tried:
    errors = io.StringIO()
    words = ["try", "--policies", str(LIBRARY), "--platforms", platforms, "--namespace", "team", "--output", "yaml", str(file)]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        code = berth.main(words)
    text = errors.getvalue()
    denied = ", ".join(sorted(set(_CODE.findall(text))))
    outcome = {0: "admitted", 1: f"denied: {denied}", 2: "bad input"}[code]
    return Tried(repository, path, outcome, tuple(sorted(set(_WARNED.findall(text)))))


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the page to standard output. What ends the command with a traceback ends this too."""
    parser = argparse.ArgumentParser(prog="python -m bench.manifests", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--platforms", default="karpenter-aws")
    given = parser.parse_args(arguments)
    found = list(tried(given.folder, given.platforms))
    sys.stdout.write("\n".join(_page(found, given.platforms)) + "\n")
    return 0


def _page(found: Sequence[Tried], platforms: str) -> Iterator[str]:
    yield from ("# Public manifests", "")
    yield f"`berth try` with the shipped policies and `--platforms {platforms}` over {len(found)} manifests that others wrote."
    yield "Where an index names a file by its number alone, nobody could say which repository it is of."
    yield ""
    yield from results_page.table(("outcome", "files"), [(what, str(n)) for what, n in Counter(one.outcome for one in found).most_common()])
    yield ""
    yield from results_page.table(
        ("warning", "files"), [(w, str(n)) for w, n in Counter(w for one in found for w in one.warnings).most_common()]
    )
    yield ""
    rows = [(one.repository, one.path, one.outcome, " ".join(one.warnings)) for one in found]
    yield from results_page.table(("repository", "file", "outcome", "warnings"), rows)


if __name__ == "__main__":
    sys.exit(main())
